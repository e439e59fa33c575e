// In a build without CUDA.
#include "onetap/base/fail.h"
#include "onetap/batches/crop.h"

namespace onetap {

bool crops_on_gpu() {
  return false;
}

void detail::crop_on_gpu(const PackedBatch&, const View&, const torch::Tensor&) {
  fail("[batches] expected a build with CUDA, got one without");
}

}  // namespace onetap
