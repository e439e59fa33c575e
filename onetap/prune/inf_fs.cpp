#include "onetap/prune/inf_fs.h"

#include "onetap/base/fail.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace onetap {
namespace {

// Ranks from 0 of a column's values; equal values have their mean.
void rank_column(const double* values, double* ranks, size_t count) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  for (size_t first = 0; first < count;) {
    size_t end = first + 1;
    while (end < count && values[order[end]] == values[order[first]]) ++end;
    const double mean = (static_cast<double>(first) + static_cast<double>(end - 1)) / 2;
    for (; first < end; ++first) ranks[order[first]] = mean;
  }
}

torch::Tensor checked(const torch::Tensor& features) {
  if (features.dim() != 2 || features.size(0) < 2 || features.size(1) < 1) {
    fail_usage("[prune] expected features of two or more images, got {} of {}", features.numel(),
               features.dim() > 0 ? features.size(0) : 0);
  }
  const torch::Tensor plain = features.detach().to(torch::kCPU, torch::kFloat64).contiguous();
  if (!torch::isfinite(plain).all().item<bool>()) fail("[prune] the network's responses are not finite");
  return plain;
}

}  // namespace

torch::Tensor rank_correlation(const torch::Tensor& features) {
  const torch::Tensor columns = checked(features).t().contiguous();
  torch::Tensor ranks = torch::empty_like(columns);
  const int64_t samples = columns.size(1);
  for (int64_t i = 0; i < columns.size(0); ++i) {
    rank_column(columns.data_ptr<double>() + i * samples, ranks.data_ptr<double>() + i * samples,
                static_cast<size_t>(samples));
  }
  const torch::Tensor centred = ranks - ranks.mean(1, /*keepdim=*/true);
  const torch::Tensor length = centred.norm(2, 1, /*keepdim=*/true);
  const torch::Tensor unit = torch::where(length > 0, centred / length.clamp_min(1e-300), torch::zeros_like(centred));
  return unit.mm(unit.t()).clamp(-1, 1);
}

torch::Tensor inf_fs(const torch::Tensor& features, double alpha) {
  const torch::Tensor plain = checked(features);
  const int64_t count = plain.size(1);
  torch::Tensor sd = plain.std(0, /*unbiased=*/true);
  const torch::Tensor varies = (sd > 0).to(torch::kFloat64);
  const double largest = sd.max().item<double>();
  if (!(largest > 0)) return torch::zeros({count}, torch::kFloat64);
  sd = sd / largest;
  const torch::Tensor pairs = varies.unsqueeze(1) * varies.unsqueeze(0);
  const torch::Tensor links = alpha * torch::maximum(sd.unsqueeze(1), sd.unsqueeze(0)) +
                              (1 - alpha) * (1 - rank_correlation(plain).abs()) * pairs;
  const double radius = torch::linalg_eigvalsh(links).abs().max().item<double>();
  if (!(radius > 0)) return torch::zeros({count}, torch::kFloat64);
  const torch::Tensor ones = torch::ones({count, 1}, torch::kFloat64);
  const torch::Tensor paths = torch::eye(count, torch::kFloat64) - (0.9 / radius) * links;
  return (torch::linalg_solve(paths, ones) - ones).squeeze(1);
}

}  // namespace onetap
