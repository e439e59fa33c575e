#include "onetap/graph/json.h"

#include "onetap/base/fail.h"
#include "onetap/base/json.h"
#include "onetap/base/text.h"
#include "onetap/graph/attributes.h"
#include "onetap/graph/op.h"

#include <nlohmann/json.hpp>

namespace onetap {
namespace {

using Json = nlohmann::ordered_json;

bool is_extent(std::string_view key) {
  return key == "kernel" || key == "stride" || key == "pad" || key == "dilation";
}

Json attribute_value(const std::string& key, const std::string& text) {
  if (is_extent(key)) {
    const Extent2 extent = attribute_extent(key, text);
    return Json::array({extent.h, extent.w});
  }
  const auto number = parse_int(text);
  return number ? Json(*number) : Json(text);
}

// The spelling that set_attributes takes.
std::string attribute_text(const std::string& key, const nlohmann::json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_unsigned()) return std::to_string(value.get<uint64_t>());
  if (value.is_array() && value.size() == 2 && value[0].is_number_unsigned() && value[1].is_number_unsigned()) {
    return fmt::format("{}x{}", value[0].get<uint64_t>(), value[1].get<uint64_t>());
  }
  fail_usage("expected a number, a pair of numbers or a word for {}", key);
}

Node parse_node(const nlohmann::json& object) {
  const std::string spelled = json_string(object, "op");
  const OpInfo* info = find_op(spelled);
  if (info == nullptr) fail_usage("unknown op '{}'", spelled);
  Node node = default_node(info->op);
  node.name = json_string(object, "name");
  AttributeTexts attributes;
  for (const auto& [key, value] : object.items()) {
    if (key == "name" || key == "op") continue;
    if (key == "inputs") {
      node.inputs = json_strings(object, "inputs");
    } else if (key == "shape" && node.op == Op::kInput) {
      node.shape = whole_numbers(object, "shape");
    } else {
      attributes.emplace_back(key, attribute_text(key, value));
    }
  }
  set_attributes(node, attributes);
  return node;
}

}  // namespace

std::string graph_json(const Graph& graph) {
  Json nodes = Json::array();
  for (const Node& node : graph.nodes()) {
    Json object = {{"name", node.name}, {"op", op_info(node.op).name}};
    if (node.op == Op::kInput) object["shape"] = node.shape;
    if (!node.inputs.empty()) object["inputs"] = node.inputs;
    for (const auto& [key, text] : attribute_texts(node)) object[key] = attribute_value(key, text);
    nodes.push_back(std::move(object));
  }
  return json_text(Json({{"name", graph.name()}, {"nodes", std::move(nodes)}, {"output", graph.output()}}));
}

Graph parse_graph_json(std::string_view text, std::string_view label) {
  const nlohmann::json object = parse_json(text);
  size_t count = 0;
  try {
    Graph graph(json_string(object, "name"));
    for (const nlohmann::json& node : json_list(object, "nodes")) {
      ++count;
      graph.add(parse_node(node));
    }
    graph.set_output(json_string(object, "output"));
    return graph;
  } catch (const nlohmann::json::exception& problem) {
    fail_data("[graph] node {} is not one of a network: {} ({})", count, problem.what(), label);
  } catch (const Error& problem) {
    fail_data("[graph] node {}: {} ({})", count, without_module(problem.what()), label);
  }
}

}  // namespace onetap
