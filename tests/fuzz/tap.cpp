// A frozen network that is accepted is whole: it is written and read again to the same bytes, it runs, and what is made
// of it (a network of floats, a dense one, C) is made or refused.
#include "onetap/emit/c_project.h"
#include "onetap/emit/dense_form.h"
#include "onetap/quant/float_net.h"
#include "onetap/runtime/int8_reference.h"
#include "onetap/runtime/reference.h"
#include "onetap/runtime/session.h"
#include "onetap/tap/tap_file.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/small_net.h"

using namespace onetap;

namespace {

// Little to plan, and few weights where pruned ones are zeros.
bool is_small_in_c(const TapNet& net) {
  int64_t rows = 0, weights = 0;
  for (const Node& node : net.graph.nodes()) {
    if (node.shape.size() == 3) rows += node.shape[1];
    if (!layer_shapes(net.graph, node).weight.empty()) weights += element_count(dense_shape(net.graph, node));
    if (rows > 1024 || weights > fuzz::kFewValues) return false;
  }
  return net.graph.nodes().size() <= 64;
}

void make_others(const TapNet& net) {
  fuzz::accepts([&] {
    if (net.is_int8()) fuzz::require(!float_net(net).is_int8());
  });
  fuzz::accepts([&] {
    const CSizes sizes = c_sizes(net, RowMode::kRows), dense = c_sizes(dense_form(net), RowMode::kLayers);
    fuzz::require(dense.positions <= sizes.positions && sizes.weights <= dense.weights);
    fuzz::require(sizes.arena >= 0 && sizes.flash() > 0);
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::accepts([&] {
    const TapNet net = parse_tap(std::string(fuzz::text_of(data, size)), "fuzz");
    const std::string again = tap_bytes(net);
    fuzz::require(tap_bytes(parse_tap(again, "again")) == again);
    if (!fuzz::is_small(net)) return;
    const std::vector<float> image(static_cast<size_t>(element_count(net.graph.input().shape)), 0.5f);
    const auto result = net.is_int8() ? Int8Reference(net).run(image.data()) : run_reference(net, image.data());
    fuzz::require(static_cast<int64_t>(result.size()) == element_count(net.graph.node(net.graph.output()).shape));
    // Not for the numbers, which may be anything: for what a strange shape makes the kernels read and write.
    Session session(std::make_shared<const Model>(net));
    std::vector<float> fast(result.size());
    session.run(image.data(), 1, fast.data());
    if (is_small_in_c(net)) make_others(net);
  });
  return 0;
}
