#include "onetap/tap/fold.h"

#include "onetap/graph/method_table.h"
#include "onetap/graph/uses.h"

namespace onetap {
namespace {

// Names of the convolutions whose result only one batch norm reads, by the name of that batch norm.
std::map<std::string, std::string> foldable(const Graph& graph) {
  const Uses uses(graph);
  std::map<std::string, std::string> conv_of;
  for (const Node& node : graph.nodes()) {
    if (node.op != Op::kConv) continue;
    const Node* reader = uses.only_reader(node);
    if (reader != nullptr && reader->op == Op::kBatchNorm) conv_of[reader->name] = node.name;
  }
  return conv_of;
}

}  // namespace

FrozenForm frozen_form(const Graph& trained) {
  const std::map<std::string, std::string> conv_of = foldable(trained);
  FrozenForm form;
  form.graph = Graph(trained.name());
  for (const auto& [batch_norm, conv] : conv_of) form.folded[conv] = batch_norm;

  const auto frozen_name = [&](const std::string& name) {
    const auto found = conv_of.find(name);
    return found == conv_of.end() ? name : found->second;
  };
  for (Node node : trained.nodes()) {
    if (conv_of.count(node.name) != 0) continue;
    for (std::string& input : node.inputs) input = frozen_name(input);
    if (form.folded.count(node.name) != 0) node.bias = true;
    if (node.op == Op::kBatchNorm) node.op = Op::kAffine;
    if (node.op == Op::kConv) {
      const TapLayout kept = tap_layout(trained, trained.node(node.name));
      node.op = node.method.info().frozen;
      node.method = node.op == Op::kTapConv ? frozen_taps(kept) : Method{};
    }
    form.graph.add(std::move(node));
  }
  form.graph.set_output(frozen_name(trained.output()));
  return form;
}

}  // namespace onetap
