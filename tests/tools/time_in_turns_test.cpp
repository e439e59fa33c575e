#include "tools/onetap/time_in_turns.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace onetap::tool {
namespace {

// Says that every repetition took so long, and notes in a common list that it was its turn.
class Fake : public Benchmark {
 public:
  Fake(char name, double took, std::string& turns) : name_(name), took_(took), turns_(turns) {}

  void run(int64_t times, std::vector<double>& seconds) override {
    turns_ += name_;
    most_times_ = std::max(most_times_, times);
    // The first call of all is cold.
    for (int64_t i = 0; i < times; ++i) seconds.push_back(is_warm_ ? took_ : 100 * took_);
    is_warm_ = true;
  }
  int64_t most_times() const { return most_times_; }

 private:
  char name_;
  double took_;
  std::string& turns_;
  bool is_warm_ = false;
  int64_t most_times_ = 0;
};

TEST(TimeInTurns, EveryoneGetsItsSecondsTurnByTurn) {
  std::string turns;
  Fake fast('f', 0.001, turns), slow('s', 0.5, turns);
  TurnOptions options;
  options.seconds = 1;
  options.turn_seconds = 0.25;
  const auto seconds = time_in_turns({&fast, &slow}, options);
  // Two calls of each to warm up, then in turns until the slower to get there has its second: four turns of 0.25 s.
  EXPECT_EQ(turns, "ffss" + std::string("fsfsfsfs"));
  EXPECT_EQ(fast.most_times(), 250);
  EXPECT_EQ(slow.most_times(), 2);  // to warm up; a turn has room for one half
  ASSERT_EQ(seconds.size(), 2u);
  EXPECT_EQ(seconds[0].size(), 1000u);
  EXPECT_EQ(seconds[1].size(), 4u);
  // What was cold is not counted.
  EXPECT_EQ(*std::max_element(seconds[0].begin(), seconds[0].end()), 0.001);
  EXPECT_EQ(*std::max_element(seconds[1].begin(), seconds[1].end()), 0.5);
}

// Its first repetitions take `first` seconds each, all others `later`.
class Unsteady : public Benchmark {
 public:
  Unsteady(int64_t disturbed, double first, double later) : disturbed_(disturbed), first_(first), later_(later) {}

  void run(int64_t times, std::vector<double>& seconds) override {
    ++calls_;
    for (int64_t i = 0; i < times; ++i) seconds.push_back(done_++ < disturbed_ ? first_ : later_);
  }
  int64_t calls() const { return calls_; }

 private:
  int64_t disturbed_;
  double first_, later_;
  int64_t done_ = 0, calls_ = 0;
};

TEST(TimeInTurns, AWarmUpThatWasDisturbedDoesNotMakeTheRestLong) {
  // A turn of one repetition in place of 2000: a thousand turns for each second, and all the others' work beside them.
  Unsteady slow_at_first(3, 0.02, 1e-5);
  std::string turns;
  Fake other('o', 0.001, turns);
  TurnOptions options;
  options.seconds = 1;
  options.turn_seconds = 0.02;
  const auto seconds = time_in_turns({&slow_at_first, &other}, options);
  EXPECT_LE(slow_at_first.calls(), 2 + 50 + 5);
  EXPECT_LE(seconds[1].size(), 1000u + 5 * 20);
}

TEST(TimeInTurns, WhatBecomesSlowGetsFewerRepetitions) {
  // The first turn has 2000 repetitions and takes 1.013 s; 20 of the later ones fill a turn, 987 what is left.
  Unsteady slow_later(1000, 1e-5, 1e-3);
  TurnOptions options;
  options.seconds = 2;
  options.turn_seconds = 0.02;
  const auto seconds = time_in_turns({&slow_later}, options);
  EXPECT_LE(seconds[0].size(), 2000u + 987 + 2 * 20);
}

TEST(TimeInTurns, ProgressEndsAtOne) {
  std::string turns;
  Fake one('a', 0.1, turns);
  std::vector<double> shares;
  TurnOptions options;
  options.seconds = 0.2;
  options.turn_seconds = 0.1;
  options.progress = [&](double share) { shares.push_back(share); };
  time_in_turns({&one}, options);
  ASSERT_EQ(shares.size(), 2u);
  EXPECT_NEAR(shares[0], 0.5, 1e-9);
  EXPECT_NEAR(shares[1], 1.0, 1e-9);
}

TEST(TimeInTurns, Quantiles) {
  std::vector<double> values;
  for (int i = 100; i >= 0; --i) values.push_back(i);
  const Quantiles found = quantiles(values);
  EXPECT_EQ(found.p10, 10);
  EXPECT_EQ(found.median, 50);
  EXPECT_EQ(found.p90, 90);
  EXPECT_EQ(quantiles({7}).p90, 7);
  EXPECT_EQ(quantiles({}).median, 0);
}

}  // namespace
}  // namespace onetap::tool
