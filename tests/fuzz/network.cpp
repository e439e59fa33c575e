// A network that is accepted must have shapes, and survive being written and read again.
#include "onetap/graph/method.h"
#include "onetap/graph/sal.h"
#include "onetap/graph/text.h"
#include "tests/fuzz/fuzz.h"

using namespace onetap;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Graph graph;
  if (!fuzz::accepts([&] { graph = parse_network(fuzz::text_of(data, size)); })) return 0;
  for (const Node& node : graph.nodes()) fuzz::require(!node.shape.empty());
  fuzz::require(parse_network(network_text(graph)) == graph);
  const Method sal = sal_method();
  fuzz::accepts([&] {
    apply_method(graph, sal, "");
    graph.check_classifier(10);
  });
  return 0;
}
