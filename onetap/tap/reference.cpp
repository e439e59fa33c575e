#include "onetap/tap/reference.h"

#include "onetap/base/fail.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

namespace onetap {
namespace {

using Values = std::vector<float>;

constexpr int64_t kMaxLive = int64_t{1} << 32;

// One plane (channel) of an image.
template <typename T>
struct Plane {
  T* data;
  int64_t height, width;
};

template <typename T>
Plane<T> plane(T* values, const Shape& shape, int64_t channel) {
  return {values + channel * shape[1] * shape[2], shape[1], shape[2]};
}

// The outputs i in [first, last) whose input i * stride + offset lies inside 0..extent-1.
struct Range {
  int64_t first, last;
};

Range inside(int64_t outputs, int64_t stride, int64_t offset, int64_t extent) {
  const int64_t first = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
  const int64_t last = extent - 1 - offset < 0 ? 0 : (extent - 1 - offset) / stride + 1;
  return {first, std::max(first, std::min(outputs, last))};
}

// out += weight * in, shifted to one position of the kernel.
void add_tap(Plane<const float> in, Plane<float> out, float weight, const Node& node, int64_t position) {
  const int64_t down = position / node.kernel.w * node.dilation.h - node.padding.h;
  const int64_t right = position % node.kernel.w * node.dilation.w - node.padding.w;
  const Range rows = inside(out.height, node.stride.h, down, in.height);
  const Range columns = inside(out.width, node.stride.w, right, in.width);
  for (int64_t y = rows.first; y < rows.last; ++y) {
    const float* from = in.data + (y * node.stride.h + down) * in.width + right;
    float* to = out.data + y * out.width;
    if (node.stride.w == 1) {
      for (int64_t x = columns.first; x < columns.last; ++x) to[x] += weight * from[x];
    } else {
      for (int64_t x = columns.first; x < columns.last; ++x) to[x] += weight * from[x * node.stride.w];
    }
  }
}

// Dense and tap convolutions differ in which positions they visit.
Values convolve(const TapNet& net, const Node& node, const Values& x) {
  const LayerTensors& tensors = net.tensors(node);
  const Shape& in_shape = net.graph.source(node).shape;
  const int64_t in = in_shape[0] / node.groups, out_per_group = node.out / node.groups;
  const bool is_tap = node.op == Op::kTapConv;
  const int64_t per_slice = is_tap ? node.method.taps : node.kernel.area();
  Values y(static_cast<size_t>(element_count(node.shape)), 0.0f);
  for (int64_t d = 0; d < node.out; ++d) {
    const Plane<float> to = plane(y.data(), node.shape, d);
    if (node.bias) std::fill_n(to.data, to.height * to.width, tensors.bias[static_cast<size_t>(d)]);
    for (int64_t c = 0; c < in; ++c) {
      const Plane<const float> from = plane(x.data(), in_shape, d / out_per_group * in + c);
      for (int64_t i = 0; i < per_slice; ++i) {
        const float weight = tensors.weight[static_cast<size_t>((d * in + c) * per_slice + i)];
        const int64_t position =
            is_tap ? tensors.positions[static_cast<size_t>((d / node.method.share * in + c) * per_slice + i)] : i;
        add_tap(from, to, weight, node, position);
      }
    }
  }
  return y;
}

Values linear(const TapNet& net, const Node& node, const Values& x) {
  const LayerTensors& tensors = net.tensors(node);
  Values y(static_cast<size_t>(node.out));
  for (size_t d = 0; d < y.size(); ++d) {
    float sum = node.bias ? tensors.bias[d] : 0.0f;
    for (size_t c = 0; c < x.size(); ++c) sum += tensors.weight[d * x.size() + c] * x[c];
    y[d] = sum;
  }
  return y;
}

Values affine(const TapNet& net, const Node& node, const Values& x) {
  const LayerTensors& tensors = net.tensors(node);
  const size_t pixels = x.size() / tensors.weight.size();
  Values y(x.size());
  for (size_t i = 0; i < x.size(); ++i) y[i] = tensors.weight[i / pixels] * x[i] + tensors.bias[i / pixels];
  return y;
}

Values pool(const Node& node, const Shape& in_shape, const Values& x) {
  const bool is_max = node.op == Op::kMaxPool;
  Values y(static_cast<size_t>(element_count(node.shape)));
  for (int64_t c = 0; c < node.shape[0]; ++c) {
    const Plane<const float> from = plane(x.data(), in_shape, c);
    const Plane<float> to = plane(y.data(), node.shape, c);
    for (int64_t oy = 0; oy < to.height; ++oy) {
      for (int64_t ox = 0; ox < to.width; ++ox) {
        float value = is_max ? -std::numeric_limits<float>::infinity() : 0.0f;
        for (int64_t k = 0; k < node.kernel.area(); ++k) {
          const int64_t iy = oy * node.stride.h - node.padding.h + k / node.kernel.w;
          const int64_t ix = ox * node.stride.w - node.padding.w + k % node.kernel.w;
          if (iy < 0 || iy >= from.height || ix < 0 || ix >= from.width) continue;
          const float pixel = from.data[iy * from.width + ix];
          value = is_max ? std::max(value, pixel) : value + pixel;
        }
        to.data[oy * to.width + ox] = is_max ? value : value / static_cast<float>(node.kernel.area());
      }
    }
  }
  return y;
}

Values global_mean(const Node& node, const Values& x) {
  Values y(static_cast<size_t>(node.shape[0]));
  const size_t pixels = x.size() / y.size();
  for (size_t c = 0; c < y.size(); ++c) {
    double sum = 0;
    for (size_t i = 0; i < pixels; ++i) sum += x[c * pixels + i];
    y[c] = static_cast<float>(sum / static_cast<double>(pixels));
  }
  return y;
}

Values subsample(const Node& node, const Shape& in_shape, const Values& x) {
  Values y(static_cast<size_t>(element_count(node.shape)), 0.0f);
  const int64_t front = (node.out - in_shape[0]) / 2;
  for (int64_t c = 0; c < in_shape[0]; ++c) {
    const Plane<const float> from = plane(x.data(), in_shape, c);
    const Plane<float> to = plane(y.data(), node.shape, front + c);
    for (int64_t oy = 0; oy < to.height; ++oy) {
      for (int64_t ox = 0; ox < to.width; ++ox) {
        to.data[oy * to.width + ox] = from.data[oy * node.stride.h * from.width + ox * node.stride.w];
      }
    }
  }
  return y;
}

Values run_node(const TapNet& net, const Node& node, const std::vector<const Values*>& inputs) {
  const Values& x = *inputs[0];
  const Shape& in_shape = net.graph.source(node).shape;
  switch (node.op) {
    case Op::kConv:
    case Op::kTapConv:
      return convolve(net, node, x);
    case Op::kLinear:
      return linear(net, node, x);
    case Op::kAffine:
      return affine(net, node, x);
    case Op::kAvgPool:
    case Op::kMaxPool:
      return pool(node, in_shape, x);
    case Op::kGlobalAvgPool:
      return global_mean(node, x);
    case Op::kSubsample:
      return subsample(node, in_shape, x);
    case Op::kFlatten:
      return x;
    case Op::kRelu: {
      Values y(x.size());
      for (size_t i = 0; i < x.size(); ++i) y[i] = std::max(x[i], 0.0f);
      return y;
    }
    case Op::kAdd: {
      Values y = x;
      for (size_t k = 1; k < inputs.size(); ++k) {
        for (size_t i = 0; i < y.size(); ++i) y[i] += (*inputs[k])[i];
      }
      return y;
    }
    case Op::kConcat: {
      Values y;
      for (const Values* input : inputs) y.insert(y.end(), input->begin(), input->end());
      return y;
    }
    default:
      fail("[tap] {}: op without an executor", node.name);
  }
}

}  // namespace

std::vector<float> run_reference(const TapNet& net, const float* image) {
  const std::vector<Node>& nodes = net.graph.nodes();
  std::unordered_map<std::string, size_t> last_use;
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const std::string& input : nodes[i].inputs) last_use[input] = i;
  }
  last_use[net.graph.output()] = nodes.size();

  std::unordered_map<std::string, Values> values;
  int64_t live = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = nodes[i];
    live += element_count(node.shape);
    if (live > kMaxLive) fail_usage("[tap] {} needs more than 2^32 values at once", net.graph.name());
    if (node.op == Op::kInput) {
      values[node.name].assign(image, image + element_count(node.shape));
      continue;
    }
    std::vector<const Values*> inputs;
    for (const std::string& input : node.inputs) inputs.push_back(&values.at(input));
    Values result = run_node(net, node, inputs);
    values[node.name] = std::move(result);
    for (const std::string& input : node.inputs) {
      if (last_use[input] != i || values.count(input) == 0) continue;
      live -= element_count(net.graph.node(input).shape);
      values.erase(input);
    }
  }
  return std::move(values.at(net.graph.output()));
}

}  // namespace onetap
