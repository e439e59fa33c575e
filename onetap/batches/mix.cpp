#include "onetap/batches/mix.h"

namespace onetap {

torch::Tensor mixed(const torch::Tensor& images, const Mix& mix) {
  const torch::NoGradGuard no_grad;
  const auto own = images.to(torch::kFloat32), others = own.flip(0);
  auto result = mix.weight == 1 ? own.clone() : own * mix.weight + others * (1 - mix.weight);
  const auto top = static_cast<int64_t>(mix.top), left = static_cast<int64_t>(mix.left);
  const auto height = static_cast<int64_t>(mix.bottom) - top, width = static_cast<int64_t>(mix.right) - left;
  const auto box = [&](const torch::Tensor& all) { return all.narrow(2, top, height).narrow(3, left, width); };
  if (height > 0 && width > 0) box(result).copy_(box(others));
  return result.to(images.scalar_type()).contiguous(images.suggest_memory_format());
}

}  // namespace onetap
