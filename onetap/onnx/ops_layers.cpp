// Operators with weights.
#include "onetap/base/fail.h"
#include "onetap/base/text.h"
#include "onetap/graph/batch_norm.h"
#include "onetap/graph/op.h"
#include "onetap/onnx/converter.h"
#include "onetap/onnx/names.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace onetap {
namespace {

// The layer is called like its weight.
void name_by_weight(Draft& draft, const std::string& initialiser) {
  const std::string layer = layer_of_weight(initialiser);
  if (layer.empty()) return;
  draft.wishes.insert(draft.wishes.begin(), layer);
  draft.is_named_by_weight = true;
}

void read_bias(Converter& converter, const Operator& op, int index, int64_t outputs, float factor, Draft& draft) {
  if (!op.has_input(index)) return;
  const OnnxConstant& bias = converter.floats(op, index);
  draft.bias_bytes = bias.bytes;
  std::vector<float>& values = draft.tensors["bias"];
  values = converter.weights(op, bias);
  if (values.size() == 1) {
    converter.count_weights(op, outputs);
    values.assign(static_cast<size_t>(outputs), values[0]);
  }
  if (static_cast<int64_t>(values.size()) != outputs) {
    op.refuse(fmt::format("a bias of {} numbers, got {}", outputs, bias.count()));
  }
  for (float& value : values) value *= factor;
  draft.node.bias = true;
}

// Factors and terms of the vector that a linear layer reads are taken in by its weights and bias. Returns what is read
// then.
OnnxValue without_affine(Converter& converter, OnnxValue x, int64_t outputs, Draft& draft) {
  while (!draft.weight_bytes) {
    Draft& affine = converter.draft(x);
    if (affine.node.op != Op::kAffine || affine.node.shape.size() != 1 || affine.rounding) break;
    const std::vector<float>&scale = affine.tensors.at("weight"), &shift = affine.tensors.at("bias");
    std::vector<float>&weight = draft.tensors["weight"], &bias = draft.tensors["bias"];
    bias.resize(static_cast<size_t>(outputs), 0);
    for (size_t d = 0; d < bias.size(); ++d) {
      double sum = bias[d];
      for (size_t c = 0; c < scale.size(); ++c) {
        float& factor = weight[d * scale.size() + c];
        sum += static_cast<double>(factor) * shift[c];
        factor *= scale[c];
      }
      bias[d] = static_cast<float>(sum);
    }
    draft.node.bias = true;
    x.draft = affine.inputs[0];
  }
  return x;
}

OnnxValue add_linear(Converter& converter, const Operator& op, const OnnxValue& input, int64_t outputs, Draft draft) {
  const Op kind = Op::kLinear;
  const OnnxValue x = without_affine(converter, input, outputs, draft);
  const bool bias = draft.node.bias;
  draft.node = default_node(kind);
  draft.node.bias = bias;
  draft.node.out = outputs;
  return converter.add(op, std::move(draft), {x});
}

// A 1x1 convolution of an image of one pixel, which the network has as a vector.
OnnxValue convert_vector_conv(Converter& converter, const Operator& op, const OnnxValue& x, const OnnxConstant& weight,
                              const Extent2& kernel, Draft draft) {
  if (kernel.area() != 1 || op.integer("group", 1) != 1) {
    op.refuse(fmt::format("a 1x1 kernel and one group for an image of one pixel, got {}x{} and {} groups", kernel.h,
                          kernel.w, op.integer("group", 1)));
  }
  if (!padding_of(op, x.dims, kernel, draft.node.stride).is_zero()) op.refuse("no pads around an image of one pixel");
  OnnxValue y = add_linear(converter, op, x, weight.dims[0], std::move(draft));
  y.dims = {weight.dims[0], 1, 1};
  return y;
}

// Zeros around the image that nobody else reads are padding of the convolution.
OnnxValue without_pad(Converter& converter, const std::string& name, const OnnxValue& x, Sides& sides) {
  const Draft& pad = converter.draft(x);
  if (pad.rounding || pad.node.op != Op::kPad || pad.node.fill != PadFill::kZero || !converter.has_one_reader(name))
    return x;
  Sides all = sides;
  all.top += pad.node.sides[0];
  all.left += pad.node.sides[1];
  all.bottom += pad.node.sides[2];
  all.right += pad.node.sides[3];
  if (!all.is_symmetric()) return x;
  sides = all;
  OnnxValue source;
  source.draft = pad.inputs[0];
  source.dims = converter.shape(source);
  return source;
}

OnnxValue convert_conv(Converter& converter, const Operator& op) {
  OnnxValue x = converter.computed(op, 0);
  const OnnxConstant& weight = converter.floats(op, 1);
  if (weight.dims.size() != 4 || x.dims.size() != 3) {
    op.refuse(fmt::format("a 2-d convolution, got weights of {} and an input of {} extents", weight.dims.size(),
                          x.dims.size() + 1));
  }
  if (weight.count() == 0) op.refuse("weights, got none");
  const Extent2 kernel{weight.dims[2], weight.dims[3]};
  if (op.pair("kernel_shape", 0) != kernel && op.find("kernel_shape") != nullptr) {
    op.refuse(fmt::format("kernel_shape {}x{} as its weights have, got another", kernel.h, kernel.w));
  }
  Draft draft;
  draft.node = default_node(Op::kConv);
  Node& node = draft.node;
  node.out = weight.dims[0];
  node.kernel = kernel;
  node.stride = op.pair("strides", 1);
  node.dilation = op.pair("dilations", 1);
  node.groups = op.integer("group", 1);
  if (node.groups < 1 || node.groups > x.dims[0] || weight.dims[1] < 1 || weight.dims[1] > x.dims[0] ||
      weight.dims[1] * node.groups != x.dims[0]) {
    op.refuse(
        fmt::format("weights for {} channels, got {} of each of {} groups", x.dims[0], weight.dims[1], node.groups));
  }
  draft.tensors["weight"] = converter.weights(op, weight);
  draft.weight_bytes = weight.bytes;
  read_bias(converter, op, 2, node.out, 1, draft);
  name_by_weight(draft, op.node.input(1));
  if (converter.shape(x).size() == 1) return convert_vector_conv(converter, op, x, weight, kernel, std::move(draft));

  const Extent2 span{node.dilation.h * (kernel.h - 1) + 1, node.dilation.w * (kernel.w - 1) + 1};
  Sides sides = padding_of(op, x.dims, span, node.stride);
  x = without_pad(converter, op.node.input(0), x, sides);
  if (sides.is_symmetric()) {
    node.padding = {sides.top, sides.left};
  } else {
    x = add_pad(converter, op, x, sides, PadFill::kZero);
  }
  return converter.add(op, std::move(draft), {x});
}

// [in, out] as [out, in].
std::vector<float> transposed(const std::vector<float>& values, int64_t rows, int64_t columns) {
  std::vector<float> result(values.size());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t k = 0; k < columns; ++k) {
      result[static_cast<size_t>(k * rows + i)] = values[static_cast<size_t>(i * columns + k)];
    }
  }
  return result;
}

// Gemm and MatMul: x times a matrix of constants.
OnnxValue convert_matrix(Converter& converter, const Operator& op) {
  const bool is_gemm = op.node.op_type() == "Gemm";
  const OnnxValue x = converter.computed(op, 0);
  const OnnxConstant& weight = converter.floats(op, 1);
  const bool is_turned = is_gemm && op.integer("transB", 0) != 0;  // [out, in], as layers have it
  if (weight.dims.size() != 2 || x.dims.size() != 1 || (is_gemm && op.integer("transA", 0) != 0)) {
    op.refuse("vectors times a matrix of constants (a linear layer), got another product");
  }
  const int64_t inputs = weight.dims[is_turned ? 1 : 0], outputs = weight.dims[is_turned ? 0 : 1];
  if (inputs != x.dims[0]) op.refuse(fmt::format("a matrix for {} inputs, got {}", x.dims[0], inputs));
  Draft draft;
  std::vector<float>& values = draft.tensors["weight"];
  values = converter.weights(op, weight);
  draft.weight_bytes = weight.bytes;
  if (!is_turned) values = transposed(values, inputs, outputs);
  if (const float alpha = is_gemm ? op.real("alpha", 1) : 1; alpha != 1) {
    for (float& value : values) value *= alpha;
  }
  draft.node.bias = false;
  if (is_gemm) read_bias(converter, op, 2, outputs, op.real("beta", 1), draft);
  name_by_weight(draft, op.node.input(1));
  return add_linear(converter, op, x, outputs, std::move(draft));
}

// A model has it as a float; a network as what was meant: 0.001, not 0.0010000000474974513.
double as_written(float value) {
  return parse_double(fmt::format("{}", value)).value_or(static_cast<double>(value));
}

OnnxValue convert_batch_norm(Converter& converter, const Operator& op) {
  const OnnxValue x = converter.computed(op, 0);
  if (op.integer("training_mode", 0) != 0) op.refuse("training_mode 0 (a model exported in eval mode), got 1");
  if (op.integer("spatial", 1) != 1) op.refuse("spatial 1 (statistics per channel), got 0");
  const char* parts[] = {"weight", "bias", "running_mean", "running_var"};
  const int64_t channels = x.dims.empty() ? 0 : x.dims[0];
  Draft draft;
  draft.node = default_node(Op::kBatchNorm);
  draft.node.epsilon = as_written(op.real("epsilon", static_cast<float>(kBatchNormEpsilon)));
  for (int i = 0; i < 4; ++i) {
    const OnnxConstant& values = converter.floats(op, i + 1);
    if (static_cast<int64_t>(values.count()) != channels) {
      op.refuse(fmt::format("{} numbers in input {}, got {}", channels, i + 1, values.count()));
    }
    draft.tensors[parts[i]] = converter.weights(op, values);
  }
  const std::vector<float>& variance = draft.tensors["running_var"];
  if (!std::all_of(variance.begin(), variance.end(), [](float value) { return value >= 0; })) {
    op.refuse("variances of 0 or more, got a negative one");
  }
  name_by_weight(draft, op.node.input(1));
  if (converter.shape(x).size() == 3) return converter.add(op, std::move(draft), {x});
  // Of a vector: taken in by the linear layer before it.
  std::vector<float> scale, shift;
  for (size_t c = 0; c < variance.size(); ++c) {
    const double factor = draft.tensors["weight"][c] / std::sqrt(static_cast<double>(variance[c]) + draft.node.epsilon);
    scale.push_back(static_cast<float>(factor));
    shift.push_back(static_cast<float>(draft.tensors["bias"][c] - draft.tensors["running_mean"][c] * factor));
  }
  return scaled(converter, op, x, op.node.input(0), std::move(scale), std::move(shift));
}

}  // namespace

ConvertOperator find_layer_operator(const std::string& op_type) {
  static const std::unordered_map<std::string, ConvertOperator> table = {
      {"Conv", convert_conv},
      {"Gemm", convert_matrix},
      {"MatMul", convert_matrix},
      {"BatchNormalization", convert_batch_norm},
  };
  const auto found = table.find(op_type);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace onetap
