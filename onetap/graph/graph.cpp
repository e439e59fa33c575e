#include "onetap/graph/graph.h"

#include "onetap/base/fail.h"
#include "onetap/graph/method_table.h"
#include "onetap/graph/op.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

namespace onetap {
namespace {

constexpr size_t kMaxNodes = 100000;
constexpr size_t kMaxName = 200;

// Names become names of parameters in files and of modules in LibTorch: words joined by dots.
void check_name(const std::string& name) {
  const auto allowed = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
  };
  const bool dots_ok =
      name.find("..") == std::string::npos && !name.empty() && name.front() != '.' && name.back() != '.';
  if (!dots_ok || name.size() > kMaxName || !std::all_of(name.begin(), name.end(), allowed)) {
    fail_usage("[graph] expected a name of letters, digits, '_', '-' and single dots, got '{}'",
               name.substr(0, kMaxName));
  }
}

}  // namespace

std::string shape_text(const Shape& shape) {
  return fmt::format("{}", fmt::join(shape, "x"));
}

bool Node::operator==(const Node& other) const {
  return name == other.name && op == other.op && inputs == other.inputs && out == other.out && kernel == other.kernel &&
         stride == other.stride && padding == other.padding && dilation == other.dilation && groups == other.groups &&
         bias == other.bias && counts == other.counts && sides == other.sides && fill == other.fill &&
         epsilon == other.epsilon && method == other.method && shape == other.shape;
}

bool Node::is_pruned() const {
  return (op == Op::kConv || op == Op::kTapConv) && method.info().keep != nullptr;
}

Graph::Graph(std::string name) : name_(std::move(name)) {
  check_name(name_);
}

const std::string& Graph::add(Node node) {
  check_name(node.name);
  if (nodes_.size() >= kMaxNodes) fail_usage("[graph] more than {} nodes", kMaxNodes);
  if (index_.count(node.name) != 0) fail_usage("[graph] two nodes are called '{}'", node.name);
  if (prefixes_.count(node.name) != 0) {
    fail_usage("[graph] '{}' is a node and also the front part of another node's name", node.name);
  }
  std::vector<std::string> fronts;
  for (size_t dot = node.name.find('.'); dot != std::string::npos; dot = node.name.find('.', dot + 1)) {
    fronts.push_back(node.name.substr(0, dot));
    if (index_.count(fronts.back()) != 0) {
      fail_usage("[graph] '{}' is a node and also the front part of '{}'", fronts.back(), node.name);
    }
  }
  std::vector<Shape> shapes;
  for (const std::string& input : node.inputs) {
    const Node* source = find(input);
    if (source == nullptr) {
      fail_usage("[graph] {}: expected an input defined before it, got '{}'", node.name, input);
    }
    shapes.push_back(source->shape);
  }
  node.shape = infer_shape(node, shapes);

  for (std::string& front : fronts) prefixes_[std::move(front)] = true;
  index_[node.name] = nodes_.size();
  nodes_.push_back(std::move(node));
  return nodes_.back().name;
}

const std::string& Graph::output() const {
  if (nodes_.empty()) fail_usage("[graph] the network has no nodes");
  return output_.empty() ? nodes_.back().name : output_;
}

void Graph::set_output(const std::string& name) {
  output_ = node(name).name;
}

const Node* Graph::find(std::string_view name) const {
  const auto found = index_.find(std::string(name));
  return found == index_.end() ? nullptr : &nodes_[found->second];
}

const Node& Graph::node(std::string_view name) const {
  const Node* found = find(name);
  if (found == nullptr) fail_usage("[graph] there is no node '{}' in {}", name, name_);
  return *found;
}

const Node& Graph::input() const {
  const Node* found = nullptr;
  for (const Node& node : nodes_) {
    if (node.op != Op::kInput) continue;
    if (found != nullptr) fail_usage("[graph] expected one input, got '{}' and '{}'", found->name, node.name);
    found = &node;
  }
  if (found == nullptr) fail_usage("[graph] {} has no input node", name_);
  return *found;
}

void Graph::set_method(std::string_view name, const Method& method) {
  const Node& old = node(name);
  if (old.op != Op::kConv && old.op != Op::kLinear && old.op != Op::kTapConv) {
    fail_usage("[graph] {}: only a conv, a tapconv or a linear layer has a method", name);
  }
  Node changed = old;
  changed.method = method;
  infer_shape(changed, {source(old).shape});
  nodes_[index_.at(changed.name)] = std::move(changed);
}

void Graph::check_classifier(int64_t classes) const {
  input();
  const Shape& result = node(output()).shape;
  if (result.size() != 1 || (classes > 0 && result[0] != classes)) {
    fail_usage("[graph] expected {} values from output '{}' of {}{}, got {}",
               classes > 0 ? std::to_string(classes) : "a vector of", output(), name_,
               classes > 0 ? ", one for each class of the data" : "", shape_text(result));
  }
}

int64_t element_count(const Shape& shape) {
  int64_t product = 1;
  for (const int64_t extent : shape) product *= extent;
  return product;
}

int64_t in_channels(const Graph& graph, const Node& node) {
  return graph.source(node).shape[0];
}

}  // namespace onetap
