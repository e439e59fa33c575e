// A convolution drawn at random, its data, and the comparison of the planned kernel with the reference.
#pragma once

#include "onetap/base/random.h"
#include "onetap/kernels/conv.h"
#include "onetap/kernels/reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace onetap::testing {

struct ConvCase {
  ConvShape shape;
  ConvBlocking blocking;
  bool bias = true, residual = false, relu = false;
  int64_t x_gap = 0;  // floats between planes
  int64_t skew = 0;   // floats by which x, y and the residual begin beside a cache line

  std::string text() const {
    const ConvShape& s = shape;
    return "in " + std::to_string(s.in) + "x" + std::to_string(s.in_h) + "x" + std::to_string(s.in_w) + " out " +
           std::to_string(s.out) + " kernel " + std::to_string(s.kernel_h) + "x" + std::to_string(s.kernel_w) +
           " stride " + std::to_string(s.stride_h) + "x" + std::to_string(s.stride_w) + " padding " +
           std::to_string(s.padding_h) + "x" + std::to_string(s.padding_w) + " dilation " +
           std::to_string(s.dilation_h) + "x" + std::to_string(s.dilation_w) + " groups " + std::to_string(s.groups) +
           " taps " + std::to_string(s.taps) + " share " + std::to_string(s.share_outputs) + "x" +
           std::to_string(s.share_inputs) + (s.may_be_empty ? " some empty" : "") + " | R " +
           std::to_string(blocking.outputs) + " T " + std::to_string(blocking.vectors) + " channels " +
           std::to_string(blocking.channels) + " tile " + std::to_string(blocking.tile_vectors) +
           (blocking.dense ? " dense" : "") + (residual ? " residual" : "") + (relu ? " relu" : "") + " skew " +
           std::to_string(skew);
  }
};

inline std::vector<float> uniform_floats(int64_t count, Random& random) {
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = random.uniform(-1, 1);
  return values;
}

// Where slices may be empty, a third of the sets keep less than they might, down to nothing.
inline std::vector<uint16_t> uniform_positions(const ConvShape& shape, Random& random) {
  std::vector<uint16_t> positions;
  const auto none = static_cast<uint16_t>(shape.area());
  for (int64_t set = 0; set < shape.layout().sets(); ++set) {
    auto kept = random_choice(none, static_cast<size_t>(shape.taps), random);
    if (shape.may_be_empty && random.below(3) == 0) {
      const uint32_t left = random.below(static_cast<uint32_t>(shape.taps));
      std::fill(kept.begin() + left, kept.end(), none);
    }
    positions.insert(positions.end(), kept.begin(), kept.end());
  }
  return positions;
}

inline ConvCase random_conv_case(uint64_t seed) {
  Random random(seed, Purpose::kTest, 10);
  const auto pick = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random.below(static_cast<uint32_t>(high - low + 1)));
  };
  ConvCase c;
  ConvShape& s = c.shape;
  s.kernel_h = random.coin() ? 3 : pick(1, 7);
  s.kernel_w = random.coin() ? s.kernel_h : pick(1, 7);
  s.stride_h = random.coin() ? 1 : pick(1, 3);
  s.stride_w = random.coin() ? s.stride_h : pick(1, 3);
  s.dilation_h = pick(0, 3) > 0 ? 1 : 2;
  s.dilation_w = pick(0, 3) > 0 ? 1 : 2;
  s.padding_h = random.coin() ? s.kernel_h / 2 * s.dilation_h : pick(0, 4);
  s.padding_w = random.coin() ? s.kernel_w / 2 * s.dilation_w : pick(0, 4);
  const int64_t reach_h = s.dilation_h * (s.kernel_h - 1) + 1, reach_w = s.dilation_w * (s.kernel_w - 1) + 1;
  s.in_h = std::max<int64_t>(random.coin() ? pick(1, 33) : pick(6, 9), reach_h - 2 * s.padding_h);
  s.in_w = std::max<int64_t>(random.coin() ? pick(1, 33) : 8 * pick(1, 4) + pick(-1, 1), reach_w - 2 * s.padding_w);
  s.groups = pick(0, 3) > 0 ? 1 : pick(2, 4);
  const bool depthwise = pick(0, 9) == 0;
  s.in = s.groups * pick(1, 9);
  s.out = s.groups * pick(1, 11);
  if (depthwise) s.groups = s.in = pick(1, 12), s.out = s.groups * pick(1, 2);
  if (s.area() > 1 && pick(0, 2) > 0) {
    s.taps = random.coin() ? 1 : pick(1, s.area());
    s.share_outputs = random.coin() ? pick(1, 4) : pick(1, s.out);
    s.share_inputs = random.coin() ? 1 : pick(1, s.in_per_group());
    s.may_be_empty = pick(0, 2) == 0;
  }
  c.blocking.outputs = static_cast<int>(pick(1, kMaxOutputs));
  c.blocking.vectors = static_cast<int>(pick(1, kMaxVectors));
  c.blocking.channels = pick(1, 10);
  c.blocking.tile_vectors = pick(1, 20);
  c.blocking.dense = pick(0, 4) == 0;
  c.bias = random.coin();
  c.residual = random.coin();
  c.relu = random.coin();
  c.x_gap = random.coin() ? 0 : pick(1, 20);
  c.skew = random.coin() ? 0 : pick(1, 15);
  return c;
}

// Runs the case in `parts` parts and compares with the reference; reads or writes beyond the buffers are for the
// sanitizer to find, so x ends where its last plane does.
inline void expect_matches_reference(const KernelSet& kernels, const ConvCase& c, uint64_t seed,
                                     const ConvCut& cut = {}) {
  const ConvShape& s = c.shape;
  Random random(seed, Purpose::kTest, 11);
  const int64_t in_pixels = s.in_h * s.in_w, pixels = s.out_h() * s.out_w();
  const auto weight = uniform_floats(s.out * s.in_per_group() * s.taps_per_slice(), random);
  const auto bias = uniform_floats(s.out, random);
  const auto positions = s.taps > 0 ? uniform_positions(s, random) : std::vector<uint16_t>();
  const ConvWeights weights{weight.data(), s.taps > 0 ? positions.data() : nullptr, c.bias ? bias.data() : nullptr};
  const auto x = uniform_floats(s.in * in_pixels, random);
  const auto residual = uniform_floats(s.out * pixels, random);
  std::vector<float> expected(static_cast<size_t>(s.out * pixels));
  reference::conv(s, weights, x.data(), expected.data());
  for (size_t i = 0; i < expected.size(); ++i) {
    if (c.residual) expected[i] += residual[i];
    if (c.relu) expected[i] = std::max(expected[i], 0.0f);
  }

  const int64_t x_plane = in_pixels + c.x_gap, y_plane = round_up(pixels, kLineFloats) + 16 * c.skew;
  auto x_memory = aligned_array<float>(c.skew + (s.in - 1) * x_plane + in_pixels);
  auto y_memory = aligned_array<float>(c.skew + s.out * y_plane);
  auto r_memory = aligned_array<float>(c.skew + s.out * y_plane);
  std::fill_n(r_memory.get(), c.skew + s.out * y_plane, 1e9f);
  ConvIo io;
  io.x_plane = x_plane;
  io.y = y_memory.get() + c.skew;
  io.y_plane = y_plane;
  io.relu = c.relu;
  for (int64_t i = 0; i < s.in; ++i) {
    if (i > 0) std::fill_n(x_memory.get() + c.skew + i * x_plane - c.x_gap, c.x_gap, 1e9f);
    std::copy_n(x.data() + i * in_pixels, in_pixels, x_memory.get() + c.skew + i * x_plane);
  }
  for (int64_t d = 0; d < s.out; ++d) {
    std::copy_n(residual.data() + d * pixels, pixels, r_memory.get() + c.skew + d * y_plane);
  }
  io.x = x_memory.get() + c.skew;
  if (c.residual) {
    io.residual = r_memory.get() + c.skew;
    io.residual_plane = y_plane;
  }
  const ConvPlan plan(s, weights, c.blocking, kernels);
  auto scratch = aligned_array<float>(plan.scratch_floats());
  std::fill_n(scratch.get(), plan.scratch_floats(), 1e9f);
  for (int64_t part = 0; part < cut.parts; ++part) run_conv(kernels, plan, io, scratch.get(), cut, part);
  const double scale = std::sqrt(static_cast<double>(s.in_per_group() * s.taps_per_slice())) + 1;
  double worst = 0;
  for (int64_t d = 0; d < s.out; ++d) {
    for (int64_t i = 0; i < pixels; ++i) {
      const double gap =
          std::abs(static_cast<double>(io.y[d * y_plane + i]) - expected[static_cast<size_t>(d * pixels + i)]);
      worst = std::max(worst, std::isnan(gap) ? 1e9 : gap);
    }
  }
  EXPECT_LT(worst, 1e-6 * scale) << kernels.name << " seed " << seed << " parts " << cut.parts << ": " << c.text();
}

}  // namespace onetap::testing
