// A network is data: nodes in topological order, each with an op, attributes, inputs by name and,
// after inference, the shape of its output for one image.
#pragma once

#include "onetap/graph/batch_norm.h"
#include "onetap/graph/share.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

namespace onetap {

// Shape of one image's tensor: [C, H, W], or [C] after pooling or flattening.
using Shape = std::vector<int64_t>;

// "3x32x32".
std::string shape_text(const Shape& shape);

// A pair of rows and columns: kernel, stride, padding or dilation.
struct Extent2 {
  int64_t h = 1;
  int64_t w = 1;

  int64_t area() const { return h * w; }
  bool operator==(const Extent2& other) const { return h == other.h && w == other.w; }
  bool operator!=(const Extent2& other) const { return !(*this == other); }
};

enum class Op {
  kInput,
  kConv,
  kBatchNorm,
  kRelu,
  kAdd,
  kConcat,
  kAvgPool,
  kMaxPool,
  kGlobalAvgPool,
  kSubsample,  // every stride-th pixel, channels zero-padded to `out`, half of the zeros before the channels
  kFlatten,
  kLinear,
  kShift,        // every channel moved by whole pixels, by a fixed table (shift.h); zeros come in
  kActiveShift,  // every channel moved by two trained numbers, bilinear between pixels, every stride-th pixel
  kRelu6,        // min(max(x, 0), 6)
  kSigmoid,
  kHardSigmoid,  // min(max(x / 6 + 1/2, 0), 1)
  kHardSwish,    // x hardsigmoid(x)
  kSilu,         // x sigmoid(x)
  kMul,          // product with a value of the same shape, or with one factor per channel
  kPad,          // pixels around the image
  // Ops of frozen networks alone.
  kTapConv,  // a convolution with `taps` weights and positions per kernel slice
  kAffine,   // scale and shift per channel: a batch norm that no convolution could take in
};

// What a pad puts around the image: zeros, or what no maximum takes.
enum class PadFill { kZero, kLowest };

struct MethodInfo;  // a row of the table of methods: method_table.h

// What a key of a method may hold.
using MethodValue = std::variant<int64_t, double, std::string, BlockShare>;

// How a conv node is trained and what it becomes: a row of the table of methods and the values of its keys.
// Architecture and method are independent. A tapconv has one too: the row of what is frozen, with its taps and share.
class Method {
 public:
  Method();                                // conv: every weight, trained as it is
  explicit Method(std::string_view name);  // its keys at their defaults; kUsage if there is no such method
  explicit Method(const MethodInfo& info);

  const MethodInfo& info() const { return *info_; }
  const std::string& name() const;
  bool is_dense() const;  // conv

  // The value of a key that the method has, of its own type.
  int64_t number(std::string_view key) const;
  double real(std::string_view key) const;
  const std::string& word(std::string_view key) const;
  const BlockShare& blocks(std::string_view key) const;
  const MethodValue& value(std::string_view key) const;
  // A whole number for blocks is one of outputs.
  Method& set(std::string_view key, MethodValue value);

  bool operator==(const Method& other) const { return info_ == other.info_ && values_ == other.values_; }
  bool operator!=(const Method& other) const { return !(*this == other); }

 private:
  size_t index(std::string_view key) const;

  const MethodInfo* info_;           // rows stay where they are
  std::vector<MethodValue> values_;  // of the row's keys, in their order
};

// One node. Which attributes an op has, and their defaults, is said once, in op.h.
struct Node {
  std::string name;
  Op op = Op::kInput;
  std::vector<std::string> inputs;

  int64_t out = 0;
  Extent2 kernel{1, 1};
  Extent2 stride{1, 1};
  Extent2 padding{0, 0};
  Extent2 dilation{1, 1};
  int64_t groups = 1;
  bool bias = false;
  std::vector<int64_t> counts;  // shift: channels that move by each position of the kernel; empty: as many by each
  std::vector<int64_t> sides;   // pad: rows above, columns to the left, rows below, columns to the right
  PadFill fill = PadFill::kZero;
  double epsilon = kBatchNormEpsilon;  // bn: added to the variance
  Method method;

  Shape shape;  // of the output; given for an input node, inferred for the others

  // Keeps some positions of every kernel slice, now or once it is frozen: it has a TapLayout.
  bool is_pruned() const;
  bool operator==(const Node& other) const;
};

class Graph {
 public:
  explicit Graph(std::string name = "network");

  const std::string& name() const { return name_; }
  const std::vector<Node>& nodes() const { return nodes_; }

  // Appends a node, checks it against its inputs and infers its shape; returns its name.
  const std::string& add(Node node);

  // The node whose value is the network's result: the last one unless set.
  const std::string& output() const;
  void set_output(const std::string& name);

  const Node* find(std::string_view name) const;
  const Node& node(std::string_view name) const;  // kUsage if there is none
  const Node& input() const;                      // the one input node

  // The node's only (first) input.
  const Node& source(const Node& node) const { return this->node(node.inputs.at(0)); }

  // Gives a conv, tapconv or linear node another method; checks that the node can have it.
  void set_method(std::string_view name, const Method& method);

  // Throws unless there is exactly one input and the result has `classes` values; 0 checks any vector.
  void check_classifier(int64_t classes) const;

  bool operator==(const Graph& other) const {
    return name_ == other.name_ && nodes_ == other.nodes_ && output() == other.output();
  }

 private:
  std::string name_;
  std::vector<Node> nodes_;
  std::string output_;
  std::unordered_map<std::string, size_t> index_;
  std::unordered_map<std::string, bool> prefixes_;  // every "a.b" above a node "a.b.c"
};

// Values in a tensor of this shape.
int64_t element_count(const Shape& shape);

// Number of input channels a conv or linear node sees.
int64_t in_channels(const Graph& graph, const Node& node);

}  // namespace onetap
