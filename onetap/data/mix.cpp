#include "onetap/data/mix.h"

#include "onetap/base/random.h"

#include <algorithm>
#include <cmath>

namespace onetap {
namespace {

// In (0, 1), without either end: logarithms are taken of it.
double open_uniform(Random& random) {
  return (static_cast<double>(random.next()) + 0.5) / 4294967296.0;
}

double normal(Random& random) {
  constexpr double kTwoPi = 6.28318530717958647692;
  const double radius = std::sqrt(-2 * std::log(open_uniform(random)));
  return radius * std::cos(kTwoPi * open_uniform(random));
}

// The logarithm of a draw from Gamma(shape, 1), by Marsaglia and Tsang: of a small shape the draw itself underflows.
double log_gamma_draw(double shape, Random& random) {
  if (shape < 1) return log_gamma_draw(shape + 1, random) + std::log(open_uniform(random)) / shape;
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = normal(random), root = 1 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    if (std::log(open_uniform(random)) < 0.5 * x * x + d - d * v + d * std::log(v)) return std::log(d * v);
  }
}

double beta_draw(double shape, Random& random) {
  const double a = log_gamma_draw(shape, random), b = log_gamma_draw(shape, random);
  return 1 / (1 + std::exp(b - a));
}

// A box of 1 - `share` of the image around a place anywhere in it; what lies beyond the edge is lost.
Mix cut_box(double share, int64_t size, Random& random) {
  const auto side = static_cast<int64_t>(static_cast<double>(size) * std::sqrt(1 - share));
  const auto edges = [&](float& first, float& last) {
    const auto middle = static_cast<int64_t>(random.below(static_cast<uint32_t>(size)));
    first = static_cast<float>(std::max<int64_t>(0, middle - side / 2));
    last = static_cast<float>(std::min(size, middle - side / 2 + side));
  };
  Mix mix;
  edges(mix.top, mix.bottom);
  edges(mix.left, mix.right);
  const double area = static_cast<double>(mix.bottom - mix.top) * static_cast<double>(mix.right - mix.left);
  mix.share = static_cast<float>(1 - area / static_cast<double>(size * size));
  return mix;
}

}  // namespace

Mix draw_mix(const MixOptions& options, int64_t size, uint64_t seed, int64_t step) {
  if (!options.active()) return {};
  Random random(seed, Purpose::kMix, static_cast<uint32_t>(step), static_cast<uint32_t>(step >> 32));
  const bool heads = random.coin();
  const bool cuts = options.cutmix > 0 && (options.mixup == 0 || heads);
  const double share = beta_draw(cuts ? options.cutmix : options.mixup, random);
  if (cuts) return cut_box(share, size, random);
  Mix mix;
  mix.share = mix.weight = static_cast<float>(share);
  return mix;
}

}  // namespace onetap
