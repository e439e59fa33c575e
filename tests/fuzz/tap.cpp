// A frozen network that is accepted is whole: it is written and read again to the same bytes, and it runs.
#include "onetap/runtime/reference.h"
#include "onetap/runtime/session.h"
#include "onetap/tap/tap_file.h"
#include "tests/fuzz/fuzz.h"

using namespace onetap;

namespace {

constexpr int64_t kFewValues = 1 << 16;

bool is_small(const TapNet& net) {
  int64_t values = 0, weights = 0;
  for (const Node& node : net.graph.nodes()) {
    if (element_count(node.shape) > kFewValues) return false;
    values += element_count(node.shape);
    const auto found = net.layers.find(node.name);
    if (found != net.layers.end()) {
      weights += static_cast<int64_t>(found->second.weight.count()) * element_count(node.shape);
    }
    if (values > kFewValues || weights > (int64_t{1} << 22)) return false;
    if (node.kernel.area() * element_count(node.shape) > (int64_t{1} << 20)) return false;  // pools
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::accepts([&] {
    const TapNet net = parse_tap(std::string(fuzz::text_of(data, size)), "fuzz");
    const std::string again = tap_bytes(net);
    fuzz::require(tap_bytes(parse_tap(again, "again")) == again);
    if (!is_small(net)) return;
    const std::vector<float> image(static_cast<size_t>(element_count(net.graph.input().shape)), 0.5f);
    const auto result = run_reference(net, image.data());
    fuzz::require(static_cast<int64_t>(result.size()) == element_count(net.graph.node(net.graph.output()).shape));
    // Not for the numbers, which may be anything: for what a strange shape makes the kernels read and write.
    Session session(std::make_shared<const Model>(net));
    std::vector<float> fast(result.size());
    session.run(image.data(), 1, fast.data());
  });
  return 0;
}
