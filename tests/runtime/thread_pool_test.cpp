#include "onetap/runtime/thread_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <numeric>

namespace onetap {
namespace {

TEST(ThreadPool, EveryPartRunsOnce) {
  for (const int64_t size : {1, 2, 3, 8}) {
    ThreadPool pool(size);
    EXPECT_EQ(pool.size(), size);
    for (int64_t parts = 0; parts < 40; ++parts) {
      std::vector<int> counts(static_cast<size_t>(parts), 0);  // plain ints: the sanitizer sees a part run twice
      pool.run(parts, [&](int64_t part, int64_t) { ++counts[static_cast<size_t>(part)]; });
      EXPECT_EQ(std::count(counts.begin(), counts.end(), 1), parts);
    }
  }
}

TEST(ThreadPool, WhatPartsWroteIsThereAfterwards) {
  ThreadPool pool(4);
  int64_t total = 0;
  for (int round = 0; round < 2000; ++round) {
    int64_t sums[4] = {};
    pool.run(4, [&](int64_t part, int64_t) { sums[part] = part + round; });
    total += std::accumulate(std::begin(sums), std::end(sums), int64_t{0});
  }
  EXPECT_EQ(total, 4 * (1999 * 2000 / 2) + 6 * 2000);
}

TEST(ThreadPool, WorkersAreToldApart) {
  ThreadPool pool(4);
  for (int round = 0; round < 200; ++round) {
    std::atomic<int> inside[4] = {};
    pool.run(16, [&](int64_t, int64_t worker) {
      ASSERT_LT(worker, 4);
      EXPECT_EQ(inside[worker]++, 0) << "two threads with one number";
      --inside[worker];
    });
  }
}

TEST(ThreadPool, WakesThoseWhoFellAsleep) {
  ThreadPool pool(3);
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    std::atomic<int> ran{0};
    pool.run(3, [&](int64_t, int64_t) { ++ran; });
    EXPECT_EQ(ran, 3);
  }
}

TEST(ThreadPool, SeveralPoolsAtOnce) {
  std::vector<std::thread> owners;
  std::atomic<int64_t> ran{0};
  for (int owner = 0; owner < 4; ++owner) {
    owners.emplace_back([&] {
      ThreadPool pool(2);
      for (int round = 0; round < 200; ++round) pool.run(5, [&](int64_t, int64_t) { ++ran; });
    });
  }
  for (std::thread& owner : owners) owner.join();
  EXPECT_EQ(ran, 4 * 200 * 5);
}

}  // namespace
}  // namespace onetap
