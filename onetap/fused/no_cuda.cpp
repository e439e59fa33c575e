// In a build without CUDA.
#include "onetap/fused/ops.h"

namespace onetap::fused {

std::unique_ptr<Ops> cuda_ops() {
  return nullptr;
}

}  // namespace onetap::fused
