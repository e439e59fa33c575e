#include "onetap/data/score.h"

#include "onetap/data/source.h"
#include "tests/support/huge_stacks.h"
#include "tests/support/support.h"

#include <atomic>
#include <cmath>

namespace onetap {
namespace {

using testing::expect_error;

TEST(Score, AccuracyAndLossByHand) {
  Predictions predictions;
  predictions.classes = 2;
  predictions.labels = {0, 1, 1};
  predictions.outputs = {2, 0, 0, 0, -1, 3};
  EXPECT_DOUBLE_EQ(predictions.accuracy(), 2.0 / 3);  // the tie goes to the first class
  EXPECT_NEAR(predictions.loss(), (std::log1p(std::exp(-2)) + std::log(2) + std::log1p(std::exp(-4))) / 3, 1e-6);
}

TEST(Score, ThreadsDoNotChangeTheOrder) {
  const DataSource source = open_data("shapes:train=1,test=30");
  ScoreOptions options;
  std::atomic<int> calls{0};
  const auto first_pixel = [&](const float* image) {
    ++calls;
    std::vector<float> outputs(10, 0.0f);
    outputs[0] = image[0] + image[500];
    return outputs;
  };
  const Predictions one = score_classifier(*source.test, options, first_pixel);
  options.threads = 4;
  std::atomic<int64_t> seen{0};
  options.progress = [&](int64_t images) { seen = images; };
  const Predictions four = score_classifier(*source.test, options, first_pixel);
  EXPECT_EQ(calls, 60);
  EXPECT_EQ(one.outputs, four.outputs);
  EXPECT_EQ(one.labels, four.labels);
  EXPECT_EQ(compare_outputs(one, four).largest, 0);
  options.images = 7;
  EXPECT_EQ(score_classifier(*source.test, options, first_pixel).images(), 7);
}

TEST(Score, WhatAThreadThrowsIsThrownHere) {
  const DataSource source = open_data("shapes:train=1,test=30");
  ScoreOptions options;
  options.threads = 3;
  options.progress = [](int64_t) {};
  expect_error(ErrorKind::kData, "broken", [&] {
    score_classifier(*source.test, options,
                     [](const float*) -> std::vector<float> { throw Error(ErrorKind::kData, "[x] broken"); });
  });
  expect_error(ErrorKind::kUsage, "labels below 2", [&] {
    score_classifier(*source.test, options, [](const float*) { return std::vector<float>(2, 0.0f); });
  });
}

TEST(Score, ANanIsADifference) {
  Predictions a, b;
  a.classes = b.classes = 1;
  a.labels = b.labels = {0, 0};
  a.outputs = {1, 2};
  b.outputs = {NAN, 2};
  EXPECT_FALSE(compare_outputs(a, b).relative() <= 1);
}

TEST(Predictions, OutputsThatAreNotFiniteNameNoClass) {
  Predictions said;
  said.classes = 2;
  said.labels = {0, 0, 1, 0};
  said.outputs = {NAN, NAN, 1, 0, 0, INFINITY, 1, NAN};
  EXPECT_DOUBLE_EQ(said.accuracy(), 0.25);
  EXPECT_DOUBLE_EQ(said.accuracy(2), 0.25);
  EXPECT_FALSE(said.is_finite());
  expect_error(ErrorKind::kFailure, "[x] expected finite outputs, got nan or inf (a.tap)",
               [&] { said.check_finite("x", "a.tap"); });
  said.outputs = {1, 0, 1, 0, 0, 1, 1, 0};
  said.check_finite("x", "a.tap");
}

TEST(Score, AThreadThatCannotStartIsAnError) {
  if (!testing::HugeStacks::kPossible) GTEST_SKIP() << "skipped: sanitizers shadow every stack";
  const DataSource source = open_data("shapes:train=1,test=30");
  ScoreOptions options;
  options.threads = 64;
  const testing::HugeStacks huge;
  expect_error(ErrorKind::kFailure, "[score] expected 64 threads, got ", [&] {
    score_classifier(*source.test, options, [](const float*) { return std::vector<float>(10, 0.0f); });
  });
}

TEST(Predictions, TopFiveAndConfusion) {
  Predictions said;
  said.classes = 3;
  said.labels = {0, 0, 2};
  said.outputs = {3, 2, 1, 1, 3, 2, 5, 5, 5};  // right; taken for 1, third of its answers; a tie, which the first wins
  EXPECT_DOUBLE_EQ(said.accuracy(), 1.0 / 3);
  EXPECT_DOUBLE_EQ(said.accuracy(2), 1.0 / 3);
  EXPECT_DOUBLE_EQ(said.accuracy(3), 1.0);
  EXPECT_EQ(said.confusion(), (std::vector<int64_t>{1, 1, 0, 0, 0, 0, 1, 0, 0}));
}

}  // namespace
}  // namespace onetap
