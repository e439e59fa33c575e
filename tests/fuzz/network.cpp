// A network that is accepted must have shapes, and survive being written and read again.
#include "onetap/graph/method.h"
#include "onetap/graph/method_table.h"
#include "onetap/graph/shift.h"
#include "onetap/graph/text.h"
#include "tests/fuzz/fuzz.h"

using namespace onetap;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Graph graph;
  if (!fuzz::accepts([&] { graph = parse_network(fuzz::text_of(data, size)); })) return 0;
  for (const Node& node : graph.nodes()) fuzz::require(!node.shape.empty());
  fuzz::require(parse_network(network_text(graph)) == graph);
  for (const MethodInfo& row : method_table()) {
    Graph changed = graph;
    if (!fuzz::accepts([&] { apply_method(changed, Method(row), ""); })) continue;
    fuzz::require(parse_network(network_text(changed)) == changed);
    for (const Node& node : changed.nodes()) {
      if (node.op == Op::kShift) fuzz::require(shift_codes(node, node.shape[0]).size() <= 1u << 20);
    }
    fuzz::accepts([&] { changed.check_classifier(10); });
  }
  return 0;
}
