#include "onetap/graph/method.h"

#include "onetap/base/fail.h"
#include "onetap/base/text.h"
#include "onetap/graph/method_table.h"

#include <algorithm>
#include <set>

namespace onetap {
namespace {

bool is_trainable(const Node& node) {
  return node.op == Op::kConv || node.op == Op::kLinear;
}

std::vector<std::string> spatial_convs(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes()) {
    if (node.op == Op::kConv && node.kernel.area() > 1) names.push_back(node.name);
  }
  return names;
}

const char* layer_kind(const MethodInfo& method) {
  return method.layers == MethodInfo::Layers::kAll ? "layer with weights" : "k x k convolution";
}

// Layers that can have the method, and those that have it by default.
struct Choice {
  std::vector<std::string> all, usual;
};

Choice choice_for(const Graph& graph, const MethodInfo& method) {
  if (method.layers == MethodInfo::Layers::kSpatialButFirst) return {spatial_convs(graph), prunable_convs(graph)};
  Choice choice;
  for (const Node& node : graph.nodes()) {
    const bool fits = node.op == Op::kConv || (node.op == Op::kLinear && method.may_be_linear);
    if (fits) choice.all.push_back(node.name);
  }
  choice.usual = choice.all;
  return choice;
}

std::vector<std::string> select(const Graph& graph, const MethodInfo& method, const std::string& patterns) {
  const auto [all, usual] = choice_for(graph, method);
  return select_names(all, usual, patterns, fmt::format("{} of {}", layer_kind(method), graph.name()));
}

}  // namespace

std::vector<std::string> select_names(const std::vector<std::string>& all, const std::vector<std::string>& usual,
                                      const std::string& patterns, const std::string& what) {
  if (trim(patterns).empty()) return usual;
  std::vector<std::string> chosen;
  bool first = true;
  for (std::string_view pattern : split(patterns, ',')) {
    pattern = trim(pattern);
    const bool exclude = !pattern.empty() && pattern.front() == '!';
    if (exclude) pattern.remove_prefix(1);
    if (first && exclude) chosen = usual;  // "!layer1.*" alone takes from the default
    first = false;
    bool matched = false;
    for (const std::string& name : all) {
      if (!glob_match(pattern, name)) continue;
      matched = true;
      const auto at = std::find(chosen.begin(), chosen.end(), name);
      if (exclude && at != chosen.end()) chosen.erase(at);
      if (!exclude && at == chosen.end()) chosen.push_back(name);
    }
    if (!matched) {
      fail_usage("[graph] no {} matches '{}'{}", what, pattern,
                 all.empty() ? std::string(" (it has none)") : fmt::format(" (try '{}')", all.back()));
    }
  }
  return chosen;
}

std::vector<std::string> prunable_convs(const Graph& graph) {
  const Node* first = nullptr;
  for (const Node& node : graph.nodes()) {
    if (node.op == Op::kConv && first == nullptr) first = &node;
  }
  std::vector<std::string> names = spatial_convs(graph);
  if (first != nullptr) names.erase(std::remove(names.begin(), names.end(), first->name), names.end());
  return names;
}

void apply_method(Graph& graph, const Method& method, const std::string& patterns) {
  for (const MethodKey& key : method.info().keys) {
    const int64_t* value = std::get_if<int64_t>(&method.value(key.name));
    if (value != nullptr && static_cast<double>(*value) < key.low) {
      fail_usage("[graph] expected {} of at least {}, got {}", key.name, key.low, *value);
    }
  }
  const std::vector<std::string> chosen = select(graph, method.info(), patterns);
  if (!method.is_dense() && chosen.empty()) {
    fail_usage("[graph] {} has no {} to give a method to (--method conv trains it as it is)", graph.name(),
               layer_kind(method.info()));
  }
  const auto rewrite = method.info().rewrite;
  Graph changed(graph.name());
  for (Node node : graph.nodes()) {
    const bool is_chosen = std::find(chosen.begin(), chosen.end(), node.name) != chosen.end();
    if (is_trainable(node)) node.method = is_chosen && rewrite == nullptr ? method : Method{};
    if (is_chosen && rewrite != nullptr) {
      rewrite(method, node, changed);
    } else {
      changed.add(std::move(node));
    }
  }
  changed.set_output(graph.output());
  graph = std::move(changed);
}

bool has_methods(const Graph& graph) {
  const auto& nodes = graph.nodes();
  return std::any_of(nodes.begin(), nodes.end(),
                     [](const Node& node) { return is_trainable(node) && !node.method.is_dense(); });
}

bool has_soft_form(const Graph& graph) {
  const auto& nodes = graph.nodes();
  return std::any_of(nodes.begin(), nodes.end(),
                     [](const Node& node) { return is_trainable(node) && node.method.info().has_soft_form; });
}

const char* only_form(const Graph& graph) {
  return method_summary(graph) == "dense" ? "dense" : "trained";
}

std::string method_text(const Node& node) {
  const bool is_conv = node.op == Op::kConv || node.op == Op::kTapConv;
  if (!is_conv && node.method.is_dense()) return "";
  if (node.method.is_dense()) return "dense";
  std::string text = node.method.name();
  for (const MethodKey& key : node.method.info().keys) {
    if (key.is_shown) text += fmt::format(" {}={}", key.name, method_value_text(node.method.value(key.name)));
  }
  return text;
}

std::string method_summary(const Graph& graph) {
  std::set<std::string> kinds;
  for (const Node& node : graph.nodes()) {
    if (!node.method.is_dense()) kinds.insert(method_text(node));
    // What a method that rewrites leaves.
    if (node.op == Op::kShift) kinds.insert("shift");
    if (node.op == Op::kActiveShift) kinds.insert("active-shift");
  }
  return kinds.empty() ? "dense" : join({kinds.begin(), kinds.end()}, "; ");
}

}  // namespace onetap
