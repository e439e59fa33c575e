#include "onetap/tap/codes.h"

#include "tests/support/support.h"

#include <numeric>

namespace onetap {
namespace {

using testing::expect_error;
using Codes = std::vector<uint16_t>;
using Counts = std::vector<int64_t>;

TapLayout layout(int64_t outputs, int64_t inputs, int64_t taps, int64_t share_outputs, int64_t share_inputs) {
  return {outputs, inputs, 4, taps, share_outputs, share_inputs, true};
}

TEST(Codes, ArePackedFromTheLowestBit) {
  EXPECT_EQ(pack_codes({1, 2, 8}, 4), std::string("\x21\x08", 2));
  EXPECT_EQ(pack_codes({31, 1}, 5), std::string("\x3f\x00", 2));
  for (const int bits : {1, 3, 4, 5, 6, 12}) {
    Codes codes;
    for (uint32_t i = 0; i < 100; ++i) codes.push_back(static_cast<uint16_t>((i * 7919) % (1u << bits)));
    EXPECT_EQ(unpack_codes(pack_codes(codes, bits), codes.size(), bits, "t"), codes);
  }
  expect_error(ErrorKind::kData, "zero bits", [] { unpack_codes("\x11", 1, 4, "t"); });
}

// Four positions take two bits; with "none" they take three.
TEST(Codes, OfEmptySlicesArePackedToo) {
  const TapLayout blocks = layout(3, 3, 2, 2, 2);
  ASSERT_EQ(blocks.bits(), 3);
  const Codes codes = {0, 3, 1, 4, 4, 4, 2, 3};
  check_codes(blocks, codes, "c");
  const std::string packed = pack_codes(codes, 3);
  EXPECT_EQ(packed.size(), packed_bytes(8, 3));
  EXPECT_EQ(unpack_codes(packed, 8, 3, "t"), codes);
}

TEST(Codes, AreAscendingAndNoneComesLast) {
  const TapLayout pairs = layout(1, 1, 3, 1, 1);
  for (const Codes& good : {Codes{0, 1, 2}, {0, 3, 4}, {2, 4, 4}, {4, 4, 4}})
    EXPECT_NO_THROW(check_codes(pairs, good, "c"));
  for (const Codes& bad : {Codes{0, 0, 1}, {4, 0, 1}, {1, 4, 2}, {2, 1, 4}}) {
    expect_error(ErrorKind::kData, "ascending", [&] { check_codes(pairs, bad, "c"); });
  }
  expect_error(ErrorKind::kData, "positions < 5, got 5 (c)", [&] { check_codes(pairs, {0, 1, 5}, "c"); });
  expect_error(ErrorKind::kData, "expected 3 values of positions, got 2 (c)", [&] { check_codes(pairs, {0, 1}, "c"); });
  TapLayout full = pairs;
  full.may_be_empty = false;
  expect_error(ErrorKind::kData, "positions < 4, got 4 (c)", [&] { check_codes(full, {0, 1, 4}, "c"); });
}

// 3 outputs and 3 inputs in blocks of 2x2: areas 4, 2, 2 and 1.
TEST(Codes, CountSlicesNotSets) {
  const TapLayout blocks = layout(3, 3, 1, 2, 2);
  EXPECT_EQ(count_slices(blocks, {0, 1, 0, 3}), (Counts{4 + 2, 2, 0, 1}));
  EXPECT_EQ(count_slices(blocks, {4, 1, 4, 1}), (Counts{0, 2 + 1, 0, 0}));
}

TEST(Codes, WeightsGoToThePositionsOfTheirBlock) {
  const TapLayout blocks = layout(2, 3, 2, 2, 2);  // blocks of 2x2 and 2x1
  const std::vector<float> weight = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  EXPECT_EQ(spread_weights(blocks, {0, 3, 1, 4}, weight.data()),
            (std::vector<float>{1, 0, 0, 2, 3, 0, 0, 4,  0, 5,  0, 0,     // output 0
                                7, 0, 0, 8, 9, 0, 0, 10, 0, 11, 0, 0}));  // output 1; 6 and 12 are of empty entries
}

TEST(Codes, AtRandomAreWhole) {
  for (const int64_t share_inputs : {1, 2, 5}) {
    TapLayout blocks = layout(7, 5, 2, 3, share_inputs);
    Random random(1, Purpose::kTest);
    check_codes(blocks, random_codes(blocks, random), "c");
    blocks.may_be_empty = false;
    const Codes codes = random_codes(blocks, random);
    check_codes(blocks, codes, "c");
    const Counts counts = count_slices(blocks, codes);
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), int64_t{0}), 7 * 5 * 2);
  }
}

}  // namespace
}  // namespace onetap
