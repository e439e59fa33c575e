// What both directions agree on: the largest batch, and names of a model as names of a network: words of letters,
// digits, '_' and '-' joined by dots.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace onetap {

constexpr int64_t kMaxBatch = 1 << 20;  // images in a model of a fixed batch, written or read

// "layer1.0.conv1.weight" is the weight of layer1.0.conv1; empty if the name is no such one.
std::string layer_of_weight(std::string_view initialiser);

// Names for what an operator computes, best first. PyTorch's exporter by TorchScript writes the path of modules, each
// with the name that it has in its parent: "/layer1/layer1.0/conv1/Conv" is layer1.0.conv1, and "/layer1/layer1.0/Add"
// is layer1.0, or layer1.0.Add beside layers of that module. Our own "pool/mean" is pool. Other names are kept, with
// '_' for what a network's name cannot have.
std::vector<std::string> operator_names(std::string_view name, std::string_view op_type);

// Names that are free beside those taken: a name is no front part of another one ("a" of "a.b").
class NameTable {
 public:
  // The first of them that is free; else the last one as wish_2, wish_3, ..., its dots as '_' if the part before one is
  // a name.
  std::string take(const std::vector<std::string>& wishes);

 private:
  bool is_free(const std::string& name) const;
  bool has_name_in_front(const std::string& name) const;

  std::set<std::string> names_, fronts_;
  std::map<std::string, int64_t> numbers_;  // given to a wish
};

}  // namespace onetap
