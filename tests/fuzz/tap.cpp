// A frozen network that is accepted is whole: it is written and read again to the same bytes, and it runs.
#include "onetap/runtime/int8_reference.h"
#include "onetap/runtime/reference.h"
#include "onetap/runtime/session.h"
#include "onetap/tap/tap_file.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/small_net.h"

using namespace onetap;

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
  });
  return 0;
}
