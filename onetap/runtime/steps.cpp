#include "onetap/runtime/steps.h"

#include "onetap/base/fail.h"
#include "onetap/graph/op.h"
#include "onetap/kernels/activations.h"
#include "onetap/kernels/conv.h"
#include "onetap/kernels/planes.h"
#include "onetap/runtime/choose.h"
#include "onetap/runtime/int8_steps.h"
#include "onetap/runtime/layer.h"
#include "onetap/tap/moves.h"

#include <algorithm>

namespace onetap {
namespace {

int64_t conv_bytes(const LayerSource& source) {
  const ConvShape shape = conv_shape(source.net.graph, source.node);
  if (runs_by_planes(shape)) return plane_plan_bytes(shape, source.options.dense, source.kernels);
  ConvBlocking blocking = choose_blocking(shape, source.kernels);
  // Tuning may choose either form, and every position takes the most.
  blocking.dense = blocking.dense || source.options.dense || source.options.tune;
  return conv_plan_bytes(shape, blocking, source.kernels);
}

void prepare_conv(const LayerSource& source, Model::Layer& layer) {
  const ConvShape shape = conv_shape(source.net.graph, source.node);
  const ConvWeights weights = conv_weights(source.net, source.node);
  if (runs_by_planes(shape)) {
    layer.planes = std::make_unique<PlanePlan>(shape, weights, source.options.dense, source.kernels);
    return;
  }
  ConvBlocking blocking = source.options.tune ? source.tuned.find_or_tune(shape, weights, source.kernels)
                                              : choose_blocking(shape, source.kernels);
  if (source.options.dense && !blocking.dense) {
    ConvShape full = shape;
    full.taps = 0;
    blocking = choose_blocking(full, source.kernels);
  }
  layer.conv = std::make_unique<ConvPlan>(shape, weights, blocking, source.kernels);
}

PlaneShape moved_shape(const LayerSource& source) {
  const Node& node = source.node;
  const Shape& in = source.net.graph.source(node).shape;
  return {in[0], in[1], in[2], in[0], node.shape[1], node.shape[2], node.stride.h, node.stride.w, in[0]};
}

int64_t moved_bytes(const LayerSource& source) {
  const PlaneShape shape = moved_shape(source);
  return plane_plan_bytes(shape, shape.out * (source.node.op == Op::kShift ? 1 : 4), source.kernels);
}

void prepare_moved(const LayerSource& source, Model::Layer& layer) {
  layer.planes =
      std::make_unique<PlanePlan>(moved_shape(source), moved_taps(source.net, source.node), nullptr, source.kernels);
}

int64_t weight_bytes(const LayerSource& source) {
  const LayerTensors& tensors = source.net.tensors(source.node);
  return static_cast<int64_t>(tensors.weight.count() + tensors.bias.count()) * 4;
}

void prepare_weights(const LayerSource& source, Model::Layer& layer) {
  const Tensor& bias = source.net.tensors(source.node).bias;
  layer.weight = dense_weight(source.net, source.node);
  layer.bias.assign(floats_of(source.node, bias), floats_of(source.node, bias) + bias.count());
}

void prepare_pool(const LayerSource& source, Model::Layer& layer) {
  layer.pool = pool_shape(source.net.graph, source.node);
}

ConvIo planes_of(const StepContext& context) {
  const PlannedStep& step = context.step();
  const auto x = context.input<float>(step.inputs[0]);
  const auto y = context.output<float>();
  ConvIo io;
  io.x = x.data;
  io.x_plane = x.value->plane_stride;
  io.y = y.data;
  io.y_plane = y.value->plane_stride;
  if (step.residual >= 0) {
    const auto residual = context.input<float>(step.residual);
    io.residual = residual.data;
    io.residual_plane = residual.value->plane_stride;
  }
  io.relu = step.relu;
  return io;
}

// More parts than threads: one that comes late leaves its own to the others.
void run_planes_f32(const StepContext& context) {
  const PlanePlan& plan = *context.layer().planes;
  const KernelSet& kernels = context.model.kernels();
  const ConvIo io = planes_of(context);
  const int64_t threads = context.split ? context.pool.size() : 1;
  if (threads == 1) {
    run_planes(kernels, plan, io, context.scratch_of<float>(context.worker));
    return;
  }
  const int64_t parts = std::min(plan.shape().groups, threads * 3);
  context.pool.run(parts, [&](int64_t part, int64_t member) {
    run_planes(kernels, plan, io, context.scratch_of<float>(member), part, parts);
  });
}

void run_conv_f32(const StepContext& context) {
  if (context.layer().planes != nullptr) return run_planes_f32(context);
  const ConvPlan& plan = *context.layer().conv;
  const KernelSet& kernels = context.model.kernels();
  const ConvIo io = planes_of(context);
  const ConvCut cut = context.split ? cut_conv(plan, context.pool.size()) : ConvCut();
  if (cut.parts == 1) {
    run_conv(kernels, plan, io, context.scratch_of<float>(context.worker));
    return;
  }
  context.pool.run(cut.parts, [&](int64_t part, int64_t member) {
    run_conv(kernels, plan, io, context.scratch_of<float>(member), cut, part);
  });
}

void run_linear_f32(const StepContext& context) {
  const Model::Layer& layer = context.layer();
  const auto x = context.input<float>(context.step().inputs[0]);
  const auto y = context.output<float>();
  context.model.kernels().linear(x.value->channels, y.value->channels, layer.weight.data(),
                                 layer.bias.empty() ? nullptr : layer.bias.data(), x.data, y.data, context.step().relu);
}

void run_affine_f32(const StepContext& context) {
  const Model::Layer& layer = context.layer();
  const auto x = context.input<float>(context.step().inputs[0]);
  const auto y = context.output<float>();
  const PlannedValue& out = *y.value;
  for (int64_t c = 0; c < out.channels; ++c) {
    context.model.kernels().affine({1, out.pixels, out.plane_stride}, layer.weight.data() + c, layer.bias.data() + c,
                                   x.plane(c), y.plane(c), context.step().relu);
  }
}

// Calls work(elements, offset of a, offset of b, offset of y) over planes, or over all at once where they lie alike.
template <typename Work>
void over_planes(const PlannedValue& a, const PlannedValue& b, const PlannedValue& y, Work&& work) {
  if (a.plane_stride == y.plane_stride && b.plane_stride == y.plane_stride) {
    work(y.elements(), 0, 0, 0);
    return;
  }
  for (int64_t c = 0; c < y.channels; ++c) {
    work(y.pixels, c * a.plane_stride, c * b.plane_stride, c * y.plane_stride);
  }
}

void run_relu_f32(const StepContext& context) {
  const auto x = context.input<float>(context.step().inputs[0]);
  const auto y = context.output<float>();
  over_planes(*x.value, *x.value, *y.value, [&](int64_t count, int64_t from, int64_t, int64_t to) {
    context.model.kernels().relu(count, x.data + from, y.data + to);
  });
}

template <Activation kind>
void run_activation_f32(const StepContext& context) {
  const auto x = context.input<float>(context.step().inputs[0]);
  const auto y = context.output<float>();
  for (int64_t c = 0; c < y.value->channels; ++c) activate_all<kind>(y.value->pixels, x.plane(c), y.plane(c));
}

// By values of the same shape, or by one factor for all pixels of a channel.
void run_mul_f32(const StepContext& context) {
  const auto x = context.input<float>(context.step().inputs[0]);
  const auto factor = context.input<float>(context.step().inputs[1]);
  const auto y = context.output<float>();
  const bool is_per_channel = factor.value->pixels == 1;
  for (int64_t c = 0; c < y.value->channels; ++c) {
    const float *from = x.plane(c), *by = factor.plane(c);
    float* to = y.plane(c);
    if (is_per_channel) {
      for (int64_t i = 0; i < y.value->pixels; ++i) to[i] = from[i] * by[0];
    } else {
      for (int64_t i = 0; i < y.value->pixels; ++i) to[i] = from[i] * by[i];
    }
  }
}

void run_pad_f32(const StepContext& context) {
  const Node& node = *context.step().node;
  const Shape& in = context.step().source->shape;
  const auto x = context.input<float>(context.step().inputs[0]);
  const auto y = context.output<float>();
  for (int64_t c = 0; c < in[0]; ++c) {
    float* to = y.plane(c);
    std::fill_n(to, y.value->pixels, pad_value(node));
    for (int64_t row = 0; row < in[1]; ++row) {
      std::copy_n(x.plane(c) + row * in[2], in[2], to + (row + node.sides[0]) * node.shape[2] + node.sides[1]);
    }
  }
}

void run_add_f32(const StepContext& context) {
  const PlannedStep& step = context.step();
  const auto y = context.output<float>();
  const size_t last = step.inputs.size() - 1;
  ValueView<const float> sum = context.input<float>(step.inputs[0]);
  for (size_t k = 1; k <= last; ++k) {
    const auto other = context.input<float>(step.inputs[k]);
    over_planes(*sum.value, *other.value, *y.value, [&](int64_t count, int64_t a, int64_t b, int64_t to) {
      context.model.kernels().add(count, sum.data + a, other.data + b, y.data + to, step.relu && k == last);
    });
    sum = {y.value, y.data};
  }
}

void run_pool_f32(const StepContext& context) {
  const auto x = context.input<float>(context.step().inputs[0]);
  const auto y = context.output<float>();
  context.model.kernels().pool(context.layer().pool, x.data, x.value->plane_stride, y.data, y.value->plane_stride);
}

void run_global_mean_f32(const StepContext& context) {
  const auto x = context.input<float>(context.step().inputs[0]);
  context.model.kernels().global_mean({x.value->channels, x.value->pixels, x.value->plane_stride}, x.data,
                                      context.output<float>().data);
}

// Every stride-th pixel, the channels behind (out - in) / 2 channels of zeros.
void run_subsample_f32(const StepContext& context) {
  const Node& node = *context.step().node;
  const auto x = context.input<float>(context.step().inputs[0]);
  const auto y = context.output<float>();
  const int64_t in = x.value->channels, in_columns = context.step().source->shape[2];
  const int64_t front = (node.out - in) / 2, rows = node.shape[1], columns = node.shape[2];
  for (int64_t c = 0; c < node.out; ++c) {
    float* to = y.plane(c);
    if (c < front || c >= front + in) {
      std::fill_n(to, rows * columns, 0.0f);
      continue;
    }
    const float* from = x.plane(c - front);
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = 0; column < columns; ++column) {
        to[row * columns + column] = from[row * node.stride.h * in_columns + column * node.stride.w];
      }
    }
  }
}

// Concat and flatten. A vector's parts follow each other without gaps, planes keep theirs.
void run_copy_f32(const StepContext& context) {
  const auto y = context.output<float>();
  float* to = y.data;
  for (const int value : context.step().inputs) {
    const auto from = context.input<float>(value);
    for (int64_t c = 0; c < from.value->channels; ++c) {
      std::copy_n(from.plane(c), from.value->pixels, to);
      to += y.value->plane_stride > 1 ? y.value->plane_stride : from.value->pixels;
    }
  }
}

}  // namespace

const std::vector<StepKind>& step_table() {
  constexpr DType kF32 = DType::kF32;
  static const std::vector<StepKind> table = {
      {Op::kConv, kF32, conv_bytes, prepare_conv, run_conv_f32},
      {Op::kTapConv, kF32, conv_bytes, prepare_conv, run_conv_f32},
      {Op::kShift, kF32, moved_bytes, prepare_moved, run_planes_f32},
      {Op::kActiveShift, kF32, moved_bytes, prepare_moved, run_planes_f32},
      {Op::kLinear, kF32, weight_bytes, prepare_weights, run_linear_f32},
      {Op::kAffine, kF32, weight_bytes, prepare_weights, run_affine_f32},
      {Op::kRelu, kF32, nullptr, nullptr, run_relu_f32},
      {Op::kAdd, kF32, nullptr, nullptr, run_add_f32},
      {Op::kAvgPool, kF32, nullptr, prepare_pool, run_pool_f32},
      {Op::kMaxPool, kF32, nullptr, prepare_pool, run_pool_f32},
      {Op::kGlobalAvgPool, kF32, nullptr, nullptr, run_global_mean_f32},
      {Op::kSubsample, kF32, nullptr, nullptr, run_subsample_f32},
      {Op::kConcat, kF32, nullptr, nullptr, run_copy_f32},
      {Op::kFlatten, kF32, nullptr, nullptr, run_copy_f32},
      {Op::kRelu6, kF32, nullptr, nullptr, run_activation_f32<Activation::kRelu6>},
      {Op::kSigmoid, kF32, nullptr, nullptr, run_activation_f32<Activation::kSigmoid>},
      {Op::kHardSigmoid, kF32, nullptr, nullptr, run_activation_f32<Activation::kHardSigmoid>},
      {Op::kHardSwish, kF32, nullptr, nullptr, run_activation_f32<Activation::kHardSwish>},
      {Op::kSilu, kF32, nullptr, nullptr, run_activation_f32<Activation::kSilu>},
      {Op::kMul, kF32, nullptr, nullptr, run_mul_f32},
      {Op::kPad, kF32, nullptr, nullptr, run_pad_f32},
  };
  return table;
}

const StepKind& find_step(const Node& node, DType dtype) {
  for (const auto* table : {&step_table(), &int8_step_table()}) {
    for (const StepKind& kind : *table) {
      if (kind.op == node.op && kind.dtype == dtype) return kind;
    }
  }
  fail("[runtime] expected an op that the runtime supports, got {} of {} ('{}')", op_info(node.op).name,
       dtype_name(dtype), node.name);
}

}  // namespace onetap
