#include "onetap/plan/arena.h"

#include "onetap/base/align.h"
#include "onetap/base/random.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace onetap {
namespace {

TEST(Arena, WhatLivesTogetherDoesNotOverlap) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Random random(seed, Purpose::kTest);
    const int64_t alignment = int64_t{1} << random.below(7);
    std::vector<Lifetime> values(1 + random.below(20));
    int64_t sum = 0, most = 0;
    for (Lifetime& value : values) {
      value.bytes = 1 + random.below(100);
      value.first = static_cast<int>(random.below(10));
      value.last = value.first + static_cast<int>(random.below(5));
      sum += round_up(value.bytes, alignment);
    }
    const int64_t total = place_values(values, alignment);
    for (int step = 0; step < 16; ++step) {
      int64_t live = 0;
      for (const Lifetime& value : values) {
        if (value.first <= step && step <= value.last) live += round_up(value.bytes, alignment);
      }
      most = std::max(most, live);
    }
    EXPECT_LE(total, sum);
    EXPECT_GE(total, most);
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(values[i].offset % alignment, 0);
      EXPECT_LE(values[i].offset + values[i].bytes, total);
      for (size_t j = 0; j < i; ++j) {
        const Lifetime &a = values[i], &b = values[j];
        const bool together = a.first <= b.last && b.first <= a.last;
        const bool overlap = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
        EXPECT_FALSE(together && overlap) << "seed " << seed << " values " << i << " and " << j;
      }
    }
  }
}

TEST(Arena, AChainNeedsTwoBuffers) {
  std::vector<Lifetime> values;
  for (int i = 0; i < 10; ++i) values.push_back({160, i, i + 1, 0});
  EXPECT_EQ(place_values(values, 1), 320);
  // 160 is 2.5 lines: each buffer is rounded up to 192.
  EXPECT_EQ(place_values(values, 64), 384);
}

}  // namespace
}  // namespace onetap
