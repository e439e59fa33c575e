// The first byte chooses the layout and how many records the file is said to hold.
#include "onetap/data/cifar.h"

#include "tests/fuzz/fuzz.h"

using namespace onetap;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const CifarLayout& layout = cifar_layout((data[0] & 1) != 0 ? Cifar::k10 : Cifar::k100);
  const int64_t records = data[0] >> 1;
  MemoryDataset images(3, 32, 32);
  const bool accepted =
      fuzz::accepts([&] { parse_cifar(fuzz::text_of(data + 1, size - 1), layout, records, "fuzz", images); });
  if (!accepted) return 0;
  fuzz::require(images.size() == records);
  Image image;
  for (int64_t i = 0; i < images.size(); ++i) {
    fuzz::require(images.label(i) >= 0 && images.label(i) < layout.classes);
    images.read(i, image);
    fuzz::require(image.pixels.size() == 3072);
  }
  return 0;
}
