#include "onetap/onnx/flat_nodes.h"

#include "onetap/base/fail.h"

#include <map>
#include <unordered_map>
#include <utility>

namespace onetap {
namespace {

constexpr int64_t kFirstOpset = 9, kLastOpset = 20;
constexpr size_t kMaxNodes = 100000;
constexpr size_t kMaxCopied = size_t{1} << 28;  // bytes of functions' nodes, call by call
constexpr int kMaxDepth = 32;                   // of calls

template <typename Opsets>
int64_t own_opset(const Opsets& opsets, int64_t otherwise) {
  for (const onnx::Opset& opset : opsets) {
    if (is_onnx_domain(opset.domain())) return opset.version();
  }
  return otherwise;
}

class Flattener {
 public:
  explicit Flattener(const ModelSource& source) : source_(source) {
    for (const onnx::Function& function : source.model().functions()) {
      functions_[{function.domain(), function.name()}] = &function;
    }
  }

  std::vector<FlatNode> flatten() {
    const int64_t opset = own_opset(source_.model().opset_import(), 0);
    check_opset(opset);
    for (const onnx::Node& node : source_.model().graph().node()) add(node, opset, 0);
    return std::move(flat_);
  }

 private:
  using NewNames = std::unordered_map<std::string, std::string>;

  void check_opset(int64_t opset) const {
    if (opset >= kFirstOpset && opset <= kLastOpset) return;
    fail_data("[onnx] expected opset {} to {}, got {}: export with opset_version=18 ({})", kFirstOpset, kLastOpset,
              opset, source_.label());
  }

  void add(const onnx::Node& node, int64_t opset, int depth) {
    const auto function = functions_.find({node.domain(), node.op_type()});
    if (function != functions_.end()) return call(*function->second, node, opset, depth);
    if (flat_.size() >= kMaxNodes)
      fail_data("[onnx] expected at most {} nodes, got more ({})", kMaxNodes, source_.label());
    flat_.push_back({node, opset});
  }

  // What a function computes, with the caller's names for its inputs and outputs and names of this call for the rest.
  void call(const onnx::Function& function, const onnx::Node& caller, int64_t opset, int depth) {
    if (depth >= kMaxDepth || ++calls_ > kMaxNodes) {
      fail_data("[onnx] expected functions that do not call themselves, got '{}' ({})", function.name(),
                source_.label());
    }
    const std::string scope = fmt::format("{}#{}/", caller.name().empty() ? function.name() : caller.name(), calls_);
    NewNames names = {{"", ""}};  // an input that is left out
    const auto name_all = [&](const auto& inner, const auto& outer) {
      for (int i = 0; i < inner.size(); ++i) names[inner.Get(i)] = i < outer.size() ? outer.Get(i) : "";
    };
    name_all(function.input(), caller.input());
    std::vector<std::pair<std::string, std::string>> given_on;  // outputs that have a name already, such as inputs
    for (int i = 0; i < function.output_size() && i < caller.output_size(); ++i) {
      if (caller.output(i).empty()) continue;  // nobody reads it
      const auto [found, is_new] = names.emplace(function.output(i), caller.output(i));
      if (!is_new) given_on.emplace_back(found->second, caller.output(i));
    }
    const auto renamed = [&](const std::string& inner) {
      const auto found = names.find(inner);
      return found != names.end() ? found->second : scope + inner;
    };
    const int64_t inner_opset = own_opset(function.opset_import(), opset);
    check_opset(inner_opset);
    for (onnx::Node node : function.node()) {
      copied_ += node.ByteSizeLong();
      if (copied_ > kMaxCopied) {
        fail_data("[onnx] expected calls of functions with at most {} bytes, got more ('{}', {})", kMaxCopied,
                  function.name(), source_.label());
      }
      for (std::string& input : *node.mutable_input()) input = renamed(input);
      for (std::string& output : *node.mutable_output()) output = renamed(output);
      node.set_name(scope + (node.name().empty() ? node.op_type() : node.name()));
      fill_attributes(function, caller, node);
      add(node, inner_opset, depth + 1);
    }
    for (const auto& [input, output] : given_on) {
      onnx::Node same;
      same.set_op_type("Identity");
      same.set_name(scope + "Identity");
      same.add_input(input);
      same.add_output(output);
      add(same, inner_opset, depth + 1);
    }
  }

  static const onnx::Attribute* find(const google::protobuf::RepeatedPtrField<onnx::Attribute>& list,
                                     const std::string& name) {
    for (const onnx::Attribute& attribute : list) {
      if (attribute.name() == name) return &attribute;
    }
    return nullptr;
  }

  // Attributes that stand for those of the call, or for the function's defaults; without either they are left out.
  static void fill_attributes(const onnx::Function& function, const onnx::Node& caller, onnx::Node& node) {
    google::protobuf::RepeatedPtrField<onnx::Attribute> filled;
    for (const onnx::Attribute& attribute : node.attribute()) {
      if (attribute.ref_attr_name().empty()) {
        *filled.Add() = attribute;
        continue;
      }
      const onnx::Attribute* given = find(caller.attribute(), attribute.ref_attr_name());
      if (given == nullptr) given = find(function.attribute_proto(), attribute.ref_attr_name());
      if (given == nullptr) continue;
      *filled.Add() = *given;
      filled.rbegin()->set_name(attribute.name());
    }
    node.mutable_attribute()->Swap(&filled);
  }

  const ModelSource& source_;
  std::map<std::pair<std::string, std::string>, const onnx::Function*> functions_;  // by domain and name
  std::vector<FlatNode> flat_;
  size_t calls_ = 0, copied_ = 0;
};

}  // namespace

bool is_onnx_domain(const std::string& domain) {
  return domain.empty() || domain == "ai.onnx";
}

std::vector<FlatNode> flat_nodes(const ModelSource& source) {
  return Flattener(source).flatten();
}

}  // namespace onetap
