// Turns the operators of a model, in order, into drafts of a network's nodes. ops_*.cpp have what becomes of each.
#pragma once

#include "onetap/base/error.h"
#include "onetap/onnx/flat_nodes.h"
#include "onetap/onnx/import.h"
#include "onetap/onnx/model_source.h"

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace onetap {

// How a QuantizeLinear rounds a value to bytes.
struct OnnxRounding {
  float scale = 0;
  DType dtype = DType::kU8;
  std::string where;  // the operator, for messages

  bool operator==(const OnnxRounding& other) const { return scale == other.scale && dtype == other.dtype; }
};

// A node of the network without a name, its inputs by their places in the list of drafts.
struct Draft {
  Node node;
  std::vector<int> inputs;
  std::map<std::string, std::vector<float>> tensors;          // weight, bias, running_mean, running_var
  std::shared_ptr<const OnnxBytes> weight_bytes, bias_bytes;  // where the model has them
  std::optional<OnnxRounding> rounding;                       // of what it computes, before anybody reads it
  std::string where;                                          // the operator, for messages
  std::vector<std::string> wishes;                            // names, best first
  bool is_named_by_weight = false;                            // such a name goes before all others
  bool is_shared = false;                                     // values that others read are this one too
  std::vector<bool> reads_alone;                              // of a relu6 and a mul: who reads an input, by inputs
};

// A value of the model: a constant, or what a draft computes of one image.
struct OnnxValue {
  std::shared_ptr<const OnnxConstant> constant;
  int draft = -1;
  // Extents behind the batch. A draft's own shape has one extent where the model keeps CxHxW of one pixel.
  std::vector<int64_t> dims;

  bool is_bytes = false;  // behind a QuantizeLinear, before its DequantizeLinear
  // Of a mean over rows alone, or columns, before the other one: the axis that has 1 now, or kGone where it was taken
  // away. 0: no such mean.
  static constexpr int64_t kGone = 4;
  int64_t mean_axis = 0;

  bool is_constant() const { return constant != nullptr; }
};

// One operator with its attributes.
class Operator {
 public:
  Operator(const FlatNode& flat, const std::string& label) : node(flat.node), opset(flat.opset), label_(label) {}

  // kData: "[onnx] Clip 'relu6' (opset 13): expected <what> (model.onnx)".
  [[noreturn]] void refuse(const std::string& expected) const;
  // The same of an error that says what is expected.
  [[noreturn]] void refuse(const Error& problem) const;
  // kData if there are more than a constant may have.
  void check_extents(size_t count) const;
  // "Clip 'relu6' (opset 13)".
  std::string where() const;

  const onnx::Attribute* find(std::string_view name) const;
  int64_t integer(std::string_view name, int64_t usual) const;
  float real(std::string_view name, float usual) const;
  std::string word(std::string_view name, std::string_view usual) const;
  std::optional<std::vector<int64_t>> integers(std::string_view name) const;
  // Rows and columns; both `usual` if the attribute is not there.
  Extent2 pair(std::string_view name, int64_t usual) const;
  bool has_input(int index) const { return index < node.input_size() && !node.input(index).empty(); }

  const onnx::Node& node;
  const int64_t opset;

 private:
  const std::string& label_;
};

class Converter {
 public:
  Converter(const ModelSource& source, const ImportOptions& options);

  ImportedNet convert();

  // --- for the operators

  // An input that must be there; kData if nothing has made it yet.
  const OnnxValue& input(const Operator& op, int index);
  // What a draft computes / a constant of floats / whole numbers; kData with the operator if the input is not one.
  const OnnxValue& computed(const Operator& op, int index);
  const OnnxConstant& floats(const Operator& op, int index);
  const std::vector<int64_t>& integers(const Operator& op, int index);

  // The axes of an operator, attributes or input 1, counted from the front and in order.
  std::vector<int64_t> axes(const Operator& op, size_t rank);
  // Extents behind an Unsqueeze, and behind a Squeeze; without axes that one takes every 1 away but the first `kept`.
  std::vector<int64_t> unsqueezed(const Operator& op, std::vector<int64_t> dims);
  std::vector<int64_t> squeezed(const Operator& op, const std::vector<int64_t>& dims, size_t kept);

  Draft& draft(const OnnxValue& value) { return drafts_[static_cast<size_t>(value.draft)]; }
  const Shape& shape(const OnnxValue& value) { return draft(value).node.shape; }
  // One operator alone reads the value, which may thus be changed in place.
  bool has_one_reader(const std::string& value) const;
  bool is_result(const std::string& value) const { return value == output_name_; }
  int64_t batch() const { return batch_; }

  // The numbers of a tensor; errors name the operator. kData if all that were read are too many.
  OnnxConstant constant(const Operator& op, const onnx::Tensor& tensor);
  // What an operator computes of constants; kData if there is too much of it for the size of the model.
  OnnxValue folded(const Operator& op, OnnxConstant constant);
  // A new draft of these inputs: checks it and infers its shape.
  OnnxValue add(const Operator& op, Draft draft, const std::vector<OnnxValue>& inputs);
  OnnxValue add(const Operator& op, Op kind, const std::vector<OnnxValue>& inputs);
  // A copy of a constant's floats as weights of the network; kData if all of them are too many.
  std::vector<float> weights(const Operator& op, const OnnxConstant& constant);
  // So many weights that are not in the model, such as one number repeated for every channel.
  void count_weights(const Operator& op, int64_t count);
  void note(std::string text) { notes_.push_back(std::move(text)); }

 private:
  void read_input();
  void read_output();
  void find_needed();
  bool reads_constants_alone(const Operator& op);
  void mark_shared(const onnx::Node& node, int draft);
  void convert_node(const FlatNode& flat);
  void check_draft(const Draft& draft) const;
  void name_drafts(const std::vector<bool>& is_needed);
  ImportedNet build();
  void release_constants(const onnx::Node& node);
  [[noreturn]] void refuse_model(const std::string& expected) const;

  const ModelSource& source_;
  const ImportOptions& options_;
  std::vector<FlatNode> nodes_;
  std::vector<bool> is_needed_;
  std::unordered_map<std::string, const onnx::Tensor*> initialisers_;
  std::unordered_map<std::string, OnnxValue> values_;
  std::unordered_map<std::string, int> readers_, unread_;  // of a value: in all, and those that are not converted yet
  std::vector<Draft> drafts_;
  std::vector<std::string> notes_;
  std::string output_name_;
  int64_t batch_ = 1;
  int64_t weight_count_ = 0, read_count_ = 0, folded_count_ = 0;  // numbers
};

// What an operator becomes: the value of its first output.
using ConvertOperator = OnnxValue (*)(Converter& converter, const Operator& op);
// Null if there is none.
ConvertOperator find_layer_operator(const std::string& op_type);     // ops_layers.cpp: convolutions, linear, batch norm
ConvertOperator find_function_operator(const std::string& op_type);  // ops_functions.cpp: Relu, Clip, Sigmoid, ...
ConvertOperator find_plain_operator(const std::string& op_type);     // ops_plain.cpp: sums, products, pools
ConvertOperator find_shape_operator(const std::string& op_type);  // ops_shape.cpp: shapes, pads, what changes nothing
ConvertOperator find_rounding_operator(const std::string& op_type);  // ops_rounding.cpp: to bytes and back
// ops_constants.cpp: operators all of whose inputs are constants, as those that compute a shape.
ConvertOperator find_constant_operator(const std::string& op_type);

// ops_constants.cpp: what Shape gives of these extents; from opset 15 on it may have a start and an end.
OnnxValue shape_value(const Operator& op, const std::vector<int64_t>& dims);
// ops_rounding.cpp: integers as the floats that they stand for.
OnnxValue fold_dequantize(Converter& converter, const Operator& op);

// Padding above, to the left, below, to the right.
struct Sides {
  int64_t top = 0, left = 0, bottom = 0, right = 0;

  bool is_symmetric() const { return top == bottom && left == right; }
  bool is_zero() const { return top == 0 && left == 0 && bottom == 0 && right == 0; }
};
// Of pads and auto_pad, for windows of this span over an image CxHxW.
Sides padding_of(const Operator& op, const std::vector<int64_t>& image, Extent2 span, Extent2 stride);
OnnxValue add_pad(Converter& converter, const Operator& op, const OnnxValue& x, const Sides& sides, PadFill fill);

// The value with other extents: as it is, or flattened; kData if it would be another order of numbers.
OnnxValue reshaped(Converter& converter, const Operator& op, const OnnxValue& x, const std::vector<int64_t>& dims);

// ops_functions.cpp: a sixth of x = relu6(y + 3), or of a product with that: hardsigmoid and hardswish, written by
// hand. Nothing for another x; `name` is that of x.
std::optional<OnnxValue> sixth(Converter& converter, const Operator& op, const OnnxValue& x, const std::string& name);
// ops_functions.cpp: the op that y times this factor is, where that is a (hard) sigmoid of y.
std::optional<Op> gate_of(Converter& converter, const OnnxValue& y, const OnnxValue& factor);

// x times `scale` plus `shift` per channel (empty: 1, 0): taken in by the layer that made x where nobody else reads it.
// Of a vector it is else an affine that the linear layers behind it take in; the network itself has none of vectors.
OnnxValue scaled(Converter& converter, const Operator& op, const OnnxValue& x, const std::string& name,
                 std::vector<float> scale, std::vector<float> shift);

}  // namespace onetap
