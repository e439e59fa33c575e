#include "onetap/runtime/choose.h"

#include "onetap/base/random.h"
#include "onetap/kernels/conv.h"
#include "onetap/runtime/layer.h"

#include <algorithm>
#include <chrono>
#include <limits>

namespace onetap {
namespace {

// Time of a multiply-add in a kernel of so many outputs, relative to one that keeps the multipliers busy: a lone output
// waits for its loads.
constexpr double kTapCost[kMaxOutputs] = {2.5, 1.8, 1.55, 1.4};
constexpr double kDenseCost = 1.2;

// A pack may take a part of the second cache, beside the streams and the planes that it is made from. Smaller ones that
// stay in the first cache were slower even for lone outputs: sums are then put down and taken up again more often.
constexpr int64_t kPackBytes = 128 << 10;
constexpr int64_t kTilesInPack = 2;
constexpr int64_t kMaxChannels = 96;

// Kernel slices of a group up to which a convolution runs plane by plane.
constexpr int64_t kFewSlices = 8;

int64_t even_share(int64_t count, int64_t most) {
  const int64_t pieces = (count + most - 1) / most;
  return (count + pieces - 1) / pieces;
}

// Input channels whose packs fit, in blocks of about one size.
int64_t channels_that_fit(const ConvShape& shape, int64_t tile_floats) {
  const int64_t copies = shape.kernel_w * std::min(shape.stride_h, shape.kernel_h);
  const int64_t halo = (shape.kernel_h - 1) * shape.dilation_h / shape.stride_h * shape.out_w();
  const int64_t fit = kPackBytes / 4 / std::max<int64_t>(1, copies * (tile_floats + halo));
  return even_share(shape.in_per_group(), std::clamp<int64_t>(fit, 4, kMaxChannels));
}

}  // namespace

bool runs_by_planes(const ConvShape& shape) {
  return shape.groups > 1 && shape.in_per_group() * shape.out_per_group() <= kFewSlices;
}

ConvBlocking choose_blocking(const ConvShape& shape, const KernelSet& kernels) {
  const int64_t sharing =
      shape.taps == 0 ? shape.out_per_group() : std::min(shape.share_outputs, shape.out_per_group());
  ConvBlocking blocking;
  blocking.outputs = static_cast<int>(std::min<int64_t>(sharing, kMaxOutputs));
  const double pruned = static_cast<double>(shape.taps_per_slice()) * kTapCost[blocking.outputs - 1];
  blocking.dense = shape.taps == 0 || pruned > static_cast<double>(shape.area()) * kDenseCost;
  if (blocking.dense) blocking.outputs = static_cast<int>(std::min<int64_t>(shape.out_per_group(), kMaxOutputs));
  blocking.vectors = kernels.max_vectors(blocking.outputs);
  const int64_t vectors = (shape.out_h() * shape.out_w() + kernels.lanes - 1) / kernels.lanes;
  // A plane that is little more than a tile is one: cut in two it would leave narrow tiles of registers.
  const int64_t usual = blocking.vectors * kTilesInPack;
  blocking.tile_vectors = vectors <= usual + blocking.vectors ? vectors : usual;
  blocking.channels = channels_that_fit(shape, blocking.tile_vectors * kernels.lanes);
  return blocking;
}

ConvBlocking tune_blocking(const ConvShape& shape, const ConvWeights& weights, const KernelSet& kernels) {
  const ConvBlocking rule = choose_blocking(shape, kernels);
  std::vector<ConvBlocking> candidates = {rule};
  const auto consider = [&](const ConvBlocking& blocking) {
    if (std::find(candidates.begin(), candidates.end(), blocking) == candidates.end()) candidates.push_back(blocking);
  };
  for (const bool dense : {rule.dense, shape.taps == 0 || !rule.dense}) {
    ConvBlocking base = rule;
    base.dense = dense;
    if (dense) base.outputs = static_cast<int>(std::min<int64_t>(shape.out_per_group(), kMaxOutputs));
    if (!dense) base.outputs = static_cast<int>(std::min<int64_t>(shape.share_outputs, base.outputs));
    const int most = kernels.max_vectors(base.outputs);
    for (int vectors = most; vectors >= std::max(1, most - 2); --vectors) {
      for (const int64_t tiles : {1, 2, 4}) {
        for (const int64_t channels : {rule.channels / 2, rule.channels, rule.channels * 2, rule.channels * 3}) {
          ConvBlocking blocking = base;
          blocking.vectors = vectors;
          blocking.tile_vectors = vectors * tiles;
          blocking.channels = even_share(shape.in_per_group(), std::max<int64_t>(4, channels));
          consider(blocking);
        }
      }
    }
  }

  Random random(0, Purpose::kTest, 2);
  const int64_t y_plane = plane_stride(shape.out_h() * shape.out_w(), plan_options());
  auto x = aligned_array<float>(shape.in * shape.in_h * shape.in_w);
  auto y = aligned_array<float>(shape.out * y_plane);
  for (int64_t i = 0; i < shape.in * shape.in_h * shape.in_w; ++i) x[static_cast<size_t>(i)] = random.uniform(-1, 1);
  ConvIo io;
  io.x = x.get();
  io.x_plane = shape.in_h * shape.in_w;
  io.y = y.get();
  io.y_plane = y_plane;

  // Rounds over all of them, so that a machine that slows down does so for all; losers leave after the first round.
  using Clock = std::chrono::steady_clock;
  std::vector<double> best(candidates.size(), std::numeric_limits<double>::infinity());
  constexpr int kRounds = 4;
  constexpr double kHopeless = 1.25;
  for (int round = 0; round < kRounds; ++round) {
    const double leader = *std::min_element(best.begin(), best.end());
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (round > 0 && best[i] > leader * kHopeless) continue;
      const ConvPlan plan(shape, weights, candidates[i], kernels);
      auto scratch = aligned_array<float>(plan.scratch_floats());
      for (int repeat = 0; repeat < 3; ++repeat) {
        const auto start = Clock::now();
        run_conv(kernels, plan, io, scratch.get());
        best[i] = std::min(best[i], std::chrono::duration<double>(Clock::now() - start).count());
      }
    }
  }
  return candidates[static_cast<size_t>(std::min_element(best.begin(), best.end()) - best.begin())];
}

}  // namespace onetap
