// The table of training methods. A row says everything about a method that does not need LibTorch: its spelling, its
// keys, which convolutions can have it, what they become when they are frozen and what that costs. Network files,
// recipes, flags, checks and counts walk the rows; the layer itself is found by the row's name (nn/trained_conv.h).
//
// A new method is one row here and one file with its layer.
#pragma once

#include "onetap/graph/graph.h"
#include "onetap/graph/tap_layout.h"

#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace onetap {

// A setting of a method: a whole number, a number, one of several words or blocks of slices, as `usual` is.
struct MethodKey {
  // What the largest number depends on, node by node.
  enum class Limit { kNone, kPositions };

  std::string name;  // in network files
  std::string help;
  MethodValue usual;
  double low = 0, high = 0;        // of a number, both ends included
  Limit limit = Limit::kNone;      // of a number in a node, beside `high`
  std::vector<std::string> words;  // one of these
  std::string recipe_key;          // its name in recipes and, with dashes, its flag; "": as in network files
  bool is_shown = true;            // in summaries, and in network files even where it has its default

  const std::string& in_recipes() const { return recipe_key.empty() ? name : recipe_key; }
  bool is_word() const { return std::holds_alternative<std::string>(usual); }
  bool is_share() const { return std::holds_alternative<BlockShare>(usual); }
};

struct MethodInfo {
  std::string name;
  std::string help;  // what is trained, after the name in the help of --method
  std::vector<MethodKey> keys;

  bool needs_positions = false;  // a kernel with more than one position
  bool may_be_linear = false;    // linear layers can have it, too
  // Layers that have it unless a recipe names them.
  enum class Layers { kSpatialButFirst, kAll } layers = Layers::kSpatialButFirst;
  bool needs_init = false;  // starts from weights that are trained
  bool may_have_bias = true;
  // Trained in another form than it is frozen in, which the falling temperature brings together: tests tell both.
  bool has_soft_form = false;

  // A method that is another network: adds what stands in place of `conv`, whose inputs are there, and ends with a node
  // of its name. Null: the conv stays, and a layer of this method trains it.
  void (*rewrite)(const Method& method, const Node& conv, Graph& network) = nullptr;

  Op frozen = Op::kConv;      // what a conv becomes: a conv with every weight, or a tapconv
  std::string frozen_method;  // of such a conv (find_frozen_method); "": dense
  // Which positions a slice keeps: sets taps and sharing of a layout whose sizes are there. Null: all of them.
  void (*keep)(const Method& method, TapLayout& layout) = nullptr;
  int weight_bits = 32;     // that store a frozen weight
  bool has_scales = false;  // a frozen layer stores a number for every output beside its weights
  // Numbers that are trained beside the weights. Null: none.
  int64_t (*extra_parameters)(const Graph& graph, const Node& node) = nullptr;

  Op op = Op::kConv;  // nodes that have it: methods of training are for convs

  const MethodKey* find_key(std::string_view key) const;
};

// Methods that a conv can have; `conv` itself is the first. Rows stay where they are.
const std::deque<MethodInfo>& method_table();
const MethodInfo* find_method(std::string_view name);
std::vector<std::string> method_names();

// What conv and linear layers of frozen networks say about their weights: `binary`, one bit and a scale per output.
// Nobody trains by it. Null if there is none of the name.
const MethodInfo* find_frozen_method(std::string_view name);

// Adds a row. Call it before networks and recipes are read: fields of recipes are made from the table once. kUsage if
// the name is taken, or if a key is another method's of another type.
const MethodInfo& add_method(MethodInfo info);

// Every key of the table once, in order, as the first method that has it describes it.
std::vector<const MethodKey*> method_keys();

// The "method" of a tapconv: what a frozen layer still says about its positions.
Method frozen_taps(const TapLayout& layout);
Method frozen_taps(int64_t taps, int64_t share);

// From its spelling in a network file: a message without a place, for the caller knows it.
MethodValue parse_method_value(const MethodKey& key, std::string_view text);
std::string method_value_text(const MethodValue& value);

}  // namespace onetap
