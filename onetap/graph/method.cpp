#include "onetap/graph/method.h"

#include "onetap/base/fail.h"
#include "onetap/base/text.h"
#include "onetap/graph/method_table.h"

#include <algorithm>
#include <set>

namespace onetap {
namespace {

std::vector<std::string> spatial_convs(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes()) {
    if (node.op == Op::kConv && node.kernel.area() > 1) names.push_back(node.name);
  }
  return names;
}

std::vector<std::string> select(const Graph& graph, const std::string& patterns) {
  if (trim(patterns).empty()) return prunable_convs(graph);
  const std::vector<std::string> all = spatial_convs(graph);
  std::vector<std::string> chosen;
  bool first = true;
  for (std::string_view pattern : split(patterns, ',')) {
    pattern = trim(pattern);
    const bool exclude = !pattern.empty() && pattern.front() == '!';
    if (exclude) pattern.remove_prefix(1);
    if (first && exclude) chosen = prunable_convs(graph);  // "!layer1.*" alone takes from the default
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
      fail_usage("[graph] no k x k convolution of {} matches '{}'{}", graph.name(), pattern,
                 all.empty() ? std::string(" (it has none)") : fmt::format(" (try '{}')", all.back()));
    }
  }
  return chosen;
}

}  // namespace

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
  const std::vector<std::string> chosen = select(graph, patterns);
  if (!method.is_dense() && chosen.empty()) {
    fail_usage("[graph] {} has no k x k convolution to give a method to", graph.name());
  }
  std::vector<std::string> convs;
  for (const Node& node : graph.nodes()) {
    if (node.op == Op::kConv) convs.push_back(node.name);
  }
  for (const std::string& name : convs) {
    const bool is_chosen = std::find(chosen.begin(), chosen.end(), name) != chosen.end();
    graph.set_method(name, is_chosen ? method : Method{});
  }
}

bool has_methods(const Graph& graph) {
  const auto& nodes = graph.nodes();
  return std::any_of(nodes.begin(), nodes.end(),
                     [](const Node& node) { return node.op == Op::kConv && !node.method.is_dense(); });
}

bool has_soft_form(const Graph& graph) {
  const auto& nodes = graph.nodes();
  return std::any_of(nodes.begin(), nodes.end(),
                     [](const Node& node) { return node.op == Op::kConv && node.method.info().has_soft_form; });
}

std::string method_text(const Node& node) {
  if (node.op != Op::kConv && node.op != Op::kTapConv) return "";
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
    const bool is_conv = node.op == Op::kConv || node.op == Op::kTapConv;
    if (is_conv && !node.method.is_dense()) kinds.insert(method_text(node));
  }
  return kinds.empty() ? "dense" : join({kinds.begin(), kinds.end()}, "; ");
}

}  // namespace onetap
