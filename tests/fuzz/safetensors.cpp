// Every tensor of an accepted file can be read to its last byte.
#include "onetap/base/safetensors.h"

#include "tests/fuzz/fuzz.h"

using namespace onetap;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::accepts([&] {
    const auto file = SafetensorsFile::parse(std::string(fuzz::text_of(data, size)), "fuzz");
    unsigned sum = 0;
    for (const TensorView& tensor : file.tensors()) {
      const auto* bytes = static_cast<const uint8_t*>(tensor.data);
      for (uint64_t i = 0; i < tensor.bytes(); ++i) sum += bytes[i];
      fuzz::require(file.find(tensor.name) != nullptr);
    }
    volatile unsigned keep = sum;
    (void)keep;
  });
  return 0;
}
