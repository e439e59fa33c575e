#include "onetap/base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace onetap {
namespace {

// The known answers published with the generator (Random123, philox4x32-10).
TEST(Random, PhiloxKnownAnswers) {
  using Block = std::array<uint32_t, 4>;
  EXPECT_EQ(Random::philox({0, 0, 0, 0}, {0, 0}), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(Random::philox({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Random::philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, SameStreamSameNumbersOtherStreamOthers) {
  const auto first = [](uint64_t seed, Purpose purpose, uint32_t a, uint32_t b) {
    return Random(seed, purpose, a, b).next();
  };
  EXPECT_EQ(first(1, Purpose::kShuffle, 2, 3), first(1, Purpose::kShuffle, 2, 3));
  std::set<uint32_t> values;
  for (uint64_t seed : {0ull, 1ull, 1ull << 32}) {
    for (Purpose purpose : {Purpose::kShuffle, Purpose::kAugment}) {
      for (uint32_t a : {0u, 1u}) {
        for (uint32_t b : {0u, 1u}) values.insert(first(seed, purpose, a, b));
      }
    }
  }
  EXPECT_EQ(values.size(), 3u * 2 * 2 * 2);
}

TEST(Random, BelowIsEvenAndInRange) {
  Random random(7, Purpose::kTest);
  std::array<int, 7> counts{};
  constexpr int kDraws = 70000;
  for (int i = 0; i < kDraws; ++i) ++counts.at(random.below(7));
  // Each count has mean 10000 and standard deviation below 93; five of them are not reached by chance.
  for (const int count : counts) EXPECT_NEAR(count, kDraws / 7, 5 * 93);
}

TEST(Random, UniformStaysBelowOne) {
  Random random(3, Purpose::kTest);
  double sum = 0;
  for (int i = 0; i < 10000; ++i) {
    const float value = random.uniform();
    ASSERT_GE(value, 0.0f);
    ASSERT_LT(value, 1.0f);
    sum += value;
  }
  EXPECT_NEAR(sum / 10000, 0.5, 5 * 0.2887 / 100);  // sd of the mean of n uniforms is 0.2887 / sqrt(n)
}

TEST(Random, PermutationHoldsEveryIndexOnce) {
  const auto order = permutation(1000, Random(5, Purpose::kShuffle, 1));
  EXPECT_EQ(std::set<uint32_t>(order.begin(), order.end()).size(), 1000u);
  EXPECT_EQ(*std::max_element(order.begin(), order.end()), 999u);
  EXPECT_NE(order, permutation(1000, Random(5, Purpose::kShuffle, 2)));
  EXPECT_EQ(order, permutation(1000, Random(5, Purpose::kShuffle, 1)));
  EXPECT_TRUE(permutation(0, Random(5, Purpose::kShuffle)).empty());
}

}  // namespace
}  // namespace onetap
