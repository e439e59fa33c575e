#include "onetap/graph/op.h"

#include "onetap/base/fail.h"
#include "onetap/graph/method_table.h"
#include "onetap/graph/tap_layout.h"

#include <algorithm>
#include <limits>

namespace onetap {
namespace {

using A = Attribute;

// Bounds that no real network meets, so that sizes multiply without overflow.
constexpr int64_t kMaxExtent = int64_t{1} << 20;
constexpr int64_t kMaxElements = int64_t{1} << 40;

void check_range(const Node& node, const char* what, int64_t value, int64_t low, int64_t high) {
  if (value < low || value > high) {
    fail_usage("[graph] {}: expected {} in {}..{}, got {}", node.name, what, low, high, value);
  }
}

void check_extents(const Node& node) {
  const struct {
    const char* name;
    Extent2 value;
    int64_t low, high;
  } rows[] = {{"kernel", node.kernel, 1, 64},
              {"stride", node.stride, 1, 64},
              {"pad", node.padding, 0, 1024},
              {"dilation", node.dilation, 1, 64}};
  for (const auto& row : rows) {
    check_range(node, row.name, row.value.h, row.low, row.high);
    check_range(node, row.name, row.value.w, row.low, row.high);
  }
}

void check_image(const Node& node, const Shape& shape) {
  if (shape.size() != 3) {
    fail_usage("[graph] {}: expected an image C x H x W, got {}", node.name, shape_text(shape));
  }
}

int64_t window_count(const Node& node, const char* axis, int64_t extent, int64_t kernel, int64_t stride,
                     int64_t padding, int64_t dilation) {
  const int64_t span = dilation * (kernel - 1) + 1;
  const int64_t padded = extent + 2 * padding;
  if (span > padded) {
    fail_usage("[graph] {}: a kernel that spans {} does not fit {} {} with padding {}", node.name, span, extent, axis,
               padding);
  }
  return (padded - span) / stride + 1;
}

Shape windows(const Node& node, const Shape& in, int64_t channels) {
  return {channels, window_count(node, "rows", in[1], node.kernel.h, node.stride.h, node.padding.h, node.dilation.h),
          window_count(node, "columns", in[2], node.kernel.w, node.stride.w, node.padding.w, node.dilation.w)};
}

// What the row of the table asks of a node; `keys` are checked one by one.
void check_blocks(const Node& node, const MethodKey& key, int64_t in_channels) {
  const BlockShare& share = node.method.blocks(key.name);
  if (!share.has_all_outputs() && (share.outputs < 1 || share.outputs > node.out)) {
    fail_usage("[graph] {}: expected {} in 1..{} (its output channels), got {}", node.name, key.name, node.out,
               share_text(share));
  }
  if (const int64_t inputs = in_channels / node.groups; share.inputs < 1 || share.inputs > inputs) {
    fail_usage("[graph] {}: expected {} by 1..{} inputs (its input channels per group), got {}", node.name, key.name,
               inputs, share_text(share));
  }
}

void check_method_key(const Node& node, const MethodKey& key, int64_t in_channels) {
  if (key.is_word()) return;
  if (key.is_share()) return check_blocks(node, key, in_channels);
  if (const double* real = std::get_if<double>(&node.method.value(key.name))) {
    if (!(*real >= key.low && *real <= key.high)) {
      fail_usage("[graph] {}: expected {} in {}..{}, got {}", node.name, key.name, key.low, key.high, *real);
    }
    return;
  }
  const int64_t value = node.method.number(key.name);
  const auto low = static_cast<int64_t>(key.low);
  switch (key.limit) {
    case MethodKey::Limit::kPositions:
      if (value < low || value > node.kernel.area()) {
        fail_usage("[graph] {}: expected {} in {}..{} for a {}x{} kernel, got {}", node.name, key.name, low,
                   node.kernel.area(), node.kernel.h, node.kernel.w, value);
      }
      break;
    case MethodKey::Limit::kNone:
      check_range(node, key.name.c_str(), value, low, static_cast<int64_t>(key.high));
  }
}

void check_method(const Node& node, int64_t in_channels) {
  const MethodInfo& method = node.method.info();
  const bool fits = method.op == node.op || (node.op == Op::kLinear && method.may_be_linear);
  if (!fits) {
    fail_usage("[graph] {}: a {} cannot have the method '{}'", node.name, op_info(node.op).name, method.name);
  }
  if (method.rewrite != nullptr) {
    fail_usage("[graph] {}: method '{}' stands for other nodes: write a shift or an activeshift and a 1x1 conv",
               node.name, method.name);
  }
  if (method.needs_positions && node.kernel.area() < 2) {
    fail_usage("[graph] {}: one tap of a slice needs a kernel with more than one position, got 1x1", node.name);
  }
  for (const MethodKey& key : method.keys) check_method_key(node, key, in_channels);
  if (!method.may_have_bias && node.bias) {
    fail_usage("[graph] {}: expected no bias with method={}, got bias=1", node.name, method.name);
  }
}

Shape conv_shape(const Node& node, const Shape& in) {
  check_image(node, in);
  check_extents(node);
  check_range(node, "out", node.out, 1, kMaxExtent);
  check_range(node, "groups", node.groups, 1, kMaxExtent);
  if (in[0] % node.groups != 0 || node.out % node.groups != 0) {
    fail_usage("[graph] {}: expected groups to divide {} inputs and {} outputs, got {}", node.name, in[0], node.out,
               node.groups);
  }
  check_method(node, in[0]);
  if (node.out * (in[0] / node.groups) > kMaxElements / node.kernel.area()) {
    fail_usage("[graph] {}: more than 2^40 weights", node.name);
  }
  if (const TapLayout layout = tap_layout(node, in[0]); layout.dropped > layout.weights()) {
    fail_usage("[graph] {}: expected dropped of at most {} (its weights), got {}", node.name, layout.weights(),
               layout.dropped);
  }
  return windows(node, in, node.out);
}

Shape pool_shape(const Node& node, const Shape& in) {
  check_image(node, in);
  check_extents(node);
  if (node.padding.h * 2 > node.kernel.h || node.padding.w * 2 > node.kernel.w) {
    fail_usage("[graph] {}: expected a pad of at most half the kernel {}x{}, got {}x{}", node.name, node.kernel.h,
               node.kernel.w, node.padding.h, node.padding.w);
  }
  return windows(node, in, in[0]);
}

Shape subsample_shape(const Node& node, const Shape& in) {
  check_image(node, in);
  check_extents(node);
  check_range(node, "out", node.out, in[0], kMaxExtent);
  return {node.out, (in[1] - 1) / node.stride.h + 1, (in[2] - 1) / node.stride.w + 1};
}

Shape shift_shape(const Node& node, const Shape& in) {
  check_image(node, in);
  check_extents(node);
  if (node.kernel.h % 2 == 0 || node.kernel.w % 2 == 0) {
    fail_usage("[graph] {}: expected a kernel with a centre, got {}x{}", node.name, node.kernel.h, node.kernel.w);
  }
  if (node.counts.empty()) return in;
  const auto positions = static_cast<int64_t>(node.counts.size());
  if (positions != node.kernel.area()) {
    fail_usage("[graph] {}: expected {} counts for a {}x{} kernel, got {}", node.name, node.kernel.area(),
               node.kernel.h, node.kernel.w, positions);
  }
  int64_t sum = 0;
  for (const int64_t count : node.counts) {
    check_range(node, "every count", count, 0, in[0]);
    sum += count;
  }
  if (sum != in[0]) fail_usage("[graph] {}: expected counts of {} channels in all, got {}", node.name, in[0], sum);
  return in;
}

Shape active_shift_shape(const Node& node, const Shape& in) {
  check_image(node, in);
  check_extents(node);
  return {in[0], (in[1] - 1) / node.stride.h + 1, (in[2] - 1) / node.stride.w + 1};
}

Shape add_shape(const Node& node, const std::vector<Shape>& inputs) {
  for (const Shape& shape : inputs) {
    if (shape != inputs[0]) {
      fail_usage("[graph] {}: expected equal shapes to add, got {} and {}", node.name, shape_text(inputs[0]),
                 shape_text(shape));
    }
  }
  return inputs[0];
}

Shape mul_shape(const Node& node, const std::vector<Shape>& inputs) {
  const Shape& factor = inputs[1];
  const bool is_per_channel =
      inputs[0].size() == 3 && factor[0] == inputs[0][0] && (factor.size() == 1 || (factor[1] == 1 && factor[2] == 1));
  if (factor != inputs[0] && !is_per_channel) {
    fail_usage("[graph] {}: expected a second factor of shape {} or one number per channel, got {}", node.name,
               shape_text(inputs[0]), shape_text(factor));
  }
  return inputs[0];
}

Shape pad_shape(const Node& node, const Shape& in) {
  check_image(node, in);
  if (node.sides.size() != 4) {
    fail_usage("[graph] {}: expected sides=TOP,LEFT,BOTTOM,RIGHT, got {} numbers", node.name, node.sides.size());
  }
  for (const int64_t side : node.sides) check_range(node, "every side", side, 0, 1024);
  return {in[0], in[1] + node.sides[0] + node.sides[2], in[2] + node.sides[1] + node.sides[3]};
}

Shape concat_shape(const Node& node, const std::vector<Shape>& inputs) {
  Shape sum = inputs[0];
  for (size_t i = 1; i < inputs.size(); ++i) {
    const Shape& next = inputs[i];
    if (next.size() != sum.size() || !std::equal(next.begin() + 1, next.end(), sum.begin() + 1)) {
      fail_usage("[graph] {}: expected shapes that differ in channels only, got {} and {}", node.name,
                 shape_text(inputs[0]), shape_text(next));
    }
    sum[0] += next[0];
  }
  return sum;
}

Shape linear_shape(const Node& node, const Shape& in) {
  if (in.size() != 1) {
    fail_usage("[graph] {}: expected a vector (flatten or pool first), got {}", node.name, shape_text(in));
  }
  check_range(node, "out", node.out, 1, kMaxExtent);
  check_method(node, in[0]);
  return {node.out};
}

int64_t elements(const Node& node, const Shape& shape) {
  int64_t product = 1;
  for (const int64_t extent : shape) {
    check_range(node, "every extent", extent, 1, kMaxExtent);
    if (product > kMaxElements / extent) fail_usage("[graph] {}: more than 2^40 values", node.name);
    product *= extent;
  }
  return product;
}

Shape shape_by_op(const Node& node, const std::vector<Shape>& inputs) {
  switch (node.op) {
    case Op::kInput:
      if (node.shape.size() != 1 && node.shape.size() != 3) {
        fail_usage("[graph] {}: expected an input shape CxHxW or C, got '{}'", node.name, shape_text(node.shape));
      }
      return node.shape;
    case Op::kConv:
    case Op::kTapConv:
      return conv_shape(node, inputs[0]);
    case Op::kAdd:
      return add_shape(node, inputs);
    case Op::kConcat:
      return concat_shape(node, inputs);
    case Op::kAvgPool:
    case Op::kMaxPool:
      return pool_shape(node, inputs[0]);
    case Op::kSubsample:
      return subsample_shape(node, inputs[0]);
    case Op::kLinear:
      return linear_shape(node, inputs[0]);
    case Op::kShift:
      return shift_shape(node, inputs[0]);
    case Op::kActiveShift:
      return active_shift_shape(node, inputs[0]);
    case Op::kFlatten:
      return {elements(node, inputs[0])};
    case Op::kGlobalAvgPool:
      check_image(node, inputs[0]);
      return {inputs[0][0]};
    case Op::kBatchNorm:
      if (!(node.epsilon >= 0 && node.epsilon <= 1)) {
        fail_usage("[graph] {}: expected eps in 0..1, got {}", node.name, node.epsilon);
      }
      [[fallthrough]];
    case Op::kAffine:
      check_image(node, inputs[0]);
      return inputs[0];
    case Op::kMul:
      return mul_shape(node, inputs);
    case Op::kPad:
      return pad_shape(node, inputs[0]);
    case Op::kRelu:
    case Op::kRelu6:
    case Op::kSigmoid:
    case Op::kHardSigmoid:
    case Op::kHardSwish:
    case Op::kSilu:
      return inputs[0];
  }
  fail("[graph] {}: op without a shape rule", node.name);
}

}  // namespace

bool OpInfo::has(Attribute attribute) const {
  return std::find(attributes.begin(), attributes.end(), attribute) != attributes.end();
}

const std::vector<OpInfo>& op_table() {
  constexpr int kMany = 64;
  static const std::vector<OpInfo> table = {
      {Op::kInput, "input", 0, 0, {}, "the image: NAME = input CxHxW"},
      {Op::kConv,
       "conv",
       1,
       1,
       {A::kOut, A::kKernel, A::kStride, A::kPadding, A::kDilation, A::kGroups, A::kBias, A::kMethod},
       "2-d convolution"},
      {Op::kBatchNorm, "bn", 1, 1, {A::kEpsilon}, "batch normalisation"},
      {Op::kRelu, "relu", 1, 1, {}, "max(x, 0)"},
      {Op::kAdd, "add", 2, kMany, {}, "sum of equal shapes"},
      {Op::kConcat, "concat", 2, kMany, {}, "channels of all inputs, one after the other"},
      {Op::kAvgPool, "avgpool", 1, 1, {A::kKernel, A::kStride, A::kPadding}, "window mean, padding counted as zeros"},
      {Op::kMaxPool, "maxpool", 1, 1, {A::kKernel, A::kStride, A::kPadding}, "window maximum"},
      {Op::kGlobalAvgPool, "gap", 1, 1, {}, "mean over all pixels: CxHxW to C"},
      {Op::kSubsample,
       "subsample",
       1,
       1,
       {A::kOut, A::kStride},
       "every stride-th pixel, channels zero-padded to out (shortcut A)"},
      {Op::kFlatten, "flatten", 1, 1, {}, "CxHxW to C*H*W"},
      {Op::kLinear, "linear", 1, 1, {A::kOut, A::kBias, A::kMethod}, "fully connected layer"},
      {Op::kShift,
       "shift",
       1,
       1,
       {A::kKernel, A::kDilation, A::kCounts},
       "every channel moved by whole pixels, by a fixed table"},
      {Op::kActiveShift, "activeshift", 1, 1, {A::kStride}, "every channel moved by two trained numbers"},
      {Op::kRelu6, "relu6", 1, 1, {}, "min(max(x, 0), 6)"},
      {Op::kSigmoid, "sigmoid", 1, 1, {}, "1 / (1 + exp(-x))"},
      {Op::kHardSigmoid, "hardsigmoid", 1, 1, {}, "min(max(x / 6 + 1/2, 0), 1)"},
      {Op::kHardSwish, "hardswish", 1, 1, {}, "x hardsigmoid(x)"},
      {Op::kSilu, "silu", 1, 1, {}, "x sigmoid(x)"},
      {Op::kMul, "mul", 2, 2, {}, "product with an equal shape, or with one factor per channel"},
      {Op::kPad, "pad", 1, 1, {A::kSides, A::kFill}, "pixels around the image: zeros, or the lowest number"},
      {Op::kTapConv,
       "tapconv",
       1,
       1,
       {A::kOut, A::kKernel, A::kStride, A::kPadding, A::kDilation, A::kGroups, A::kBias, A::kTaps},
       "frozen: convolution with `taps` weights per kernel slice"},
      {Op::kAffine, "affine", 1, 1, {}, "frozen: scale and shift per channel"},
  };
  return table;
}

const OpInfo& op_info(Op op) {
  for (const OpInfo& info : op_table()) {
    if (info.op == op) return info;
  }
  fail("[graph] op {} is missing from the table", static_cast<int>(op));
}

const OpInfo* find_op(std::string_view name) {
  for (const OpInfo& info : op_table()) {
    if (info.name == name) return &info;
  }
  return nullptr;
}

float pad_value(const Node& node) {
  return node.fill == PadFill::kZero ? 0.0f : -std::numeric_limits<float>::infinity();
}

bool is_activation(Op op) {
  return op == Op::kRelu || op == Op::kRelu6 || op == Op::kSigmoid || op == Op::kHardSigmoid || op == Op::kHardSwish ||
         op == Op::kSilu;
}

Node default_node(Op op) {
  Node node;
  node.op = op;
  node.bias = op == Op::kLinear;
  if (op == Op::kPad) node.sides = {0, 0, 0, 0};
  if (op == Op::kTapConv) node.method = frozen_taps(1, 1);
  return node;
}

Shape infer_shape(const Node& node, const std::vector<Shape>& inputs) {
  const OpInfo& info = op_info(node.op);
  const int count = static_cast<int>(inputs.size());
  if (count < info.min_inputs || count > info.max_inputs) {
    const std::string range = info.max_inputs > info.min_inputs
                                  ? fmt::format("{} to {}", info.min_inputs, info.max_inputs)
                                  : std::to_string(info.min_inputs);
    fail_usage("[graph] {}: expected {} input(s) for {}, got {}", node.name, range, info.name, count);
  }
  Shape shape = shape_by_op(node, inputs);
  if (shape.empty()) fail_usage("[graph] {}: expected a shape C or CxHxW, got none", node.name);
  elements(node, shape);
  return shape;
}

}  // namespace onetap
