// A model that is accepted is a whole network: it freezes, its form for training is one, and both run.
#include "onetap/graph/text.h"
#include "onetap/onnx/import.h"
#include "onetap/onnx/writer.h"
#include "onetap/runtime/int8_reference.h"
#include "onetap/runtime/reference.h"
#include "onetap/runtime/session.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/small_net.h"

using namespace onetap;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::accepts([&] {
    const ImportedNet imported = parse_onnx(std::string(fuzz::text_of(data, size)), "fuzz");
    const ImportedNet trainable = trainable_net(imported);
    fuzz::require(parse_network(network_text(trainable.graph)) == trainable.graph);
    const TapNet net = frozen_net(imported);
    const TapNet again = frozen_net(trainable);
    if (!fuzz::is_small(net) || !fuzz::is_small(again)) return;
    const std::vector<float> image(static_cast<size_t>(element_count(net.graph.input().shape)), 0.5f);
    const auto result = net.is_int8() ? Int8Reference(net).run(image.data()) : run_reference(net, image.data());
    fuzz::require(run_reference(again, image.data()).size() == result.size());
    Session session(std::make_shared<const Model>(net));
    std::vector<float> fast(result.size());
    session.run(image.data(), 1, fast.data());
    // What is written is read again.
    const TapNet written = frozen_net(parse_onnx(onnx_model(net), "again"));
    fuzz::require(written.is_int8() == net.is_int8());
    // Integers give what they gave; NaNs of floats are not equal.
    if (net.is_int8()) {
      fuzz::require(Int8Reference(written).run(image.data()) == result);
    } else {
      fuzz::require(run_reference(written, image.data()).size() == result.size());
    }
  });
  return 0;
}
