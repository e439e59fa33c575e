// Counter-based random numbers (Philox4x32-10): every draw is a function of (seed, purpose, ids).
//
// Nothing in onetap carries generator state from one step to the next, so a resumed run needs none:
// the order of epoch 7 and the crop of image 123 in it are computed, not remembered.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace onetap {

// What a stream of draws is for; two purposes never share numbers.
enum class Purpose : uint32_t {
  kTest = 0,
  kShuffle = 1,
  kAugment = 2,
  kShapes = 3,
  kRandomNet = 4,
  kMix = 5,
  kSplit = 6
};

class Random {
 public:
  // All of it is constexpr so that GPU code may call it.
  constexpr Random(uint64_t seed, Purpose purpose, uint32_t a = 0, uint32_t b = 0)
      : key_{low(seed), high(seed)}, counter_{0, a, b, static_cast<uint32_t>(purpose)} {}

  constexpr uint32_t next() {
    if (used_ == 4) {
      block_ = philox(counter_, key_);
      ++counter_[0];
      used_ = 0;
    }
    return block_[used_++];
  }

  // Uniform in [0, 1), 24 bits.
  constexpr float uniform() { return static_cast<float>(next() >> 8) * (1.0f / 16777216.0f); }

  constexpr float uniform(float low, float high) { return low + (high - low) * uniform(); }

  // Uniform in 0..n-1 without bias, n >= 1.
  constexpr uint32_t below(uint32_t n) {
    const uint32_t reject_under = static_cast<uint32_t>(-n) % n;
    for (;;) {
      const uint64_t product = static_cast<uint64_t>(next()) * n;
      if (static_cast<uint32_t>(product) >= reject_under) return static_cast<uint32_t>(product >> 32);
    }
  }

  constexpr bool coin() { return (next() & 1u) != 0; }

  // The generator itself, exposed so that a test can hold it against the published vectors.
  static constexpr std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
    for (int round = 0; round < 10; ++round) {
      const uint64_t p0 = 0xD2511F53ull * counter[0];
      const uint64_t p1 = 0xCD9E8D57ull * counter[2];
      counter = {high(p1) ^ counter[1] ^ key[0], low(p1), high(p0) ^ counter[3] ^ key[1], low(p0)};
      key[0] += 0x9E3779B9u;
      key[1] += 0xBB67AE85u;
    }
    return counter;
  }

 private:
  static constexpr uint32_t low(uint64_t x) { return static_cast<uint32_t>(x); }
  static constexpr uint32_t high(uint64_t x) { return static_cast<uint32_t>(x >> 32); }

  std::array<uint32_t, 2> key_;
  std::array<uint32_t, 4> counter_;  // draws / 4, a, b, purpose: two streams cannot meet
  std::array<uint32_t, 4> block_{};
  size_t used_ = 4;
};

// `count` different numbers of 0..n-1, ascending.
std::vector<uint16_t> random_choice(uint16_t n, size_t count, Random& random);

// A permutation of 0..n-1 (Fisher-Yates), n < 2^32.
std::vector<uint32_t> permutation(uint32_t n, Random random);

}  // namespace onetap
