#include "onetap/recipe/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace onetap {
namespace {

constexpr int64_t kSteps = 391;  // CIFAR: 50000 images in batches of 128, the last one smaller

TEST(Schedule, TemperatureFallsGeometricallyFromT0ToT1) {
  const Schedule schedule(Recipe{}, kSteps);
  const int64_t total = 300 * kSteps;
  EXPECT_EQ(schedule.total_steps(), total);
  EXPECT_EQ(schedule.temperature(0), 6.7);
  EXPECT_NEAR(schedule.temperature(total), 0.02, 1e-12);
  // alpha = (T1/T0)^(1/steps) = 0.9999504...: what the paper's rounded 0.99994 stands for.
  EXPECT_NEAR(schedule.temperature(1) / 6.7, 0.9999504, 1e-7);
  EXPECT_NEAR(schedule.temperature(total / 2), std::sqrt(6.7 * 0.02), 1e-9);
}

TEST(Schedule, AlphaAndFloorCanBePinned) {
  Recipe recipe;
  recipe.alpha = 0.5;
  recipe.t_floor = 0.1;
  const Schedule schedule(recipe, kSteps);
  EXPECT_DOUBLE_EQ(schedule.temperature(3), 6.7 / 8);
  EXPECT_DOUBLE_EQ(schedule.temperature(100), 0.1);
}

TEST(Schedule, StepDropsByTenEveryHundredEpochs) {
  Recipe recipe;
  const Schedule thirds(recipe, kSteps);
  EXPECT_DOUBLE_EQ(thirds.learning_rate(0), 0.1);
  EXPECT_DOUBLE_EQ(thirds.learning_rate(100 * kSteps - 1), 0.1);
  EXPECT_DOUBLE_EQ(thirds.learning_rate(100 * kSteps), 0.01);
  EXPECT_NEAR(thirds.learning_rate(200 * kSteps), 0.001, 1e-15);
  recipe.epochs = 400;
  recipe.lr_every = 100;
  EXPECT_NEAR(Schedule(recipe, kSteps).learning_rate(399 * kSteps), 0.0001, 1e-15);
}

TEST(Schedule, AnExtensionKeepsTheLastRateAndTemperature) {
  Recipe recipe;
  recipe.epochs = 30;
  recipe.schedule = LrSchedule::kCosine;
  const Schedule planned(recipe, kSteps);
  recipe.extend = 5;
  const Schedule longer(recipe, kSteps);
  const int64_t end = 30 * kSteps;
  EXPECT_EQ(longer.total_steps(), 35 * kSteps);
  for (const int64_t step : {int64_t{0}, end / 3, end - 1}) {
    EXPECT_EQ(longer.learning_rate(step), planned.learning_rate(step));
    EXPECT_EQ(longer.temperature(step), planned.temperature(step));
  }
  for (const int64_t step : {end, end + 3 * kSteps}) {
    EXPECT_EQ(longer.learning_rate(step), planned.learning_rate(end - 1));
    EXPECT_NEAR(longer.temperature(step), 0.02, 1e-12);
  }
  recipe.extend_lr = 0.01;
  EXPECT_EQ(Schedule(recipe, kSteps).learning_rate(end), 0.01);
  recipe.t_end = 0.5;
  EXPECT_EQ(Schedule(recipe, kSteps).settled_step(), end / 2);
}

TEST(Schedule, MilestonesAreEpochsThatNeedNotBeWhole) {
  Recipe recipe;
  recipe.epochs = 164;
  recipe.lr_milestones = "81, 122";
  const Schedule whole(recipe, kSteps);
  EXPECT_DOUBLE_EQ(whole.learning_rate(0), 0.1);
  EXPECT_DOUBLE_EQ(whole.learning_rate(81 * kSteps - 1), 0.1);
  EXPECT_DOUBLE_EQ(whole.learning_rate(81 * kSteps), 0.01);
  EXPECT_DOUBLE_EQ(whole.learning_rate(122 * kSteps - 1), 0.01);
  EXPECT_NEAR(whole.learning_rate(122 * kSteps), 0.001, 1e-15);
  EXPECT_NEAR(whole.learning_rate(164 * kSteps - 1), 0.001, 1e-15);
  recipe.lr_milestones = "2.5";
  recipe.lr_factor = 0.5;
  const Schedule half(recipe, 10);
  EXPECT_DOUBLE_EQ(half.learning_rate(24), 0.1);
  EXPECT_DOUBLE_EQ(half.learning_rate(25), 0.05);
}

// T1 after 70 of 100 steps, and from there on.
TEST(Schedule, TheTemperatureMayBeDoneBeforeTheEnd) {
  Recipe recipe;
  recipe.epochs = 10;
  recipe.t_end = 0.7;
  const Schedule schedule(recipe, 10);
  EXPECT_DOUBLE_EQ(schedule.temperature(0), 6.7);
  EXPECT_NEAR(schedule.temperature(35), std::sqrt(6.7 * 0.02), 1e-9);
  EXPECT_GT(schedule.temperature(69), 0.021);
  for (int64_t step = 70; step <= 100; ++step) EXPECT_NEAR(schedule.temperature(step), 0.02, 1e-12);
  recipe.alpha = 0.9;  // a pinned factor stops there, too
  EXPECT_NEAR(Schedule(recipe, 10).temperature(100), 6.7 * std::pow(0.9, 70), 1e-9);
}

// Falls to T1 in 80 of 100 steps and is hard from there on, also in the epochs by which the run is extended, and
// whatever the floor of the temperature.
TEST(Schedule, AttentionMayBeHardBeforeTheEnd) {
  Recipe recipe;
  recipe.epochs = 10;
  recipe.harden = 0.8;
  recipe.extend = 2;
  recipe.t_floor = 0.01;
  const Schedule schedule(recipe, 10);
  EXPECT_NEAR(schedule.temperature(40), std::sqrt(6.7 * 0.02), 1e-9);
  EXPECT_GT(schedule.temperature(79), 0.02);
  for (int64_t step = 80; step <= 120; ++step) EXPECT_EQ(schedule.temperature(step), Schedule::kHardTemperature);
  EXPECT_EQ(schedule.settled_step(), 80);
  recipe.t_end = 0.5;  // it waits at T1
  const Schedule early(recipe, 10);
  EXPECT_NEAR(early.temperature(60), 0.02, 1e-12);
  EXPECT_EQ(early.temperature(80), Schedule::kHardTemperature);
  EXPECT_EQ(early.settled_step(), 50);
}

TEST(Schedule, CosineEndsAtItsFinalValue) {
  Recipe recipe;
  recipe.schedule = LrSchedule::kCosine;
  recipe.epochs = 10;
  recipe.lr_final = 0.01;
  const Schedule schedule(recipe, 100);
  EXPECT_DOUBLE_EQ(schedule.learning_rate(0), 0.1);
  EXPECT_NEAR(schedule.learning_rate(500), 0.055, 1e-12);
  EXPECT_NEAR(schedule.learning_rate(1000), 0.01, 1e-12);
}

TEST(Schedule, WarmUpRisesToTheRate) {
  Recipe recipe;
  recipe.schedule = LrSchedule::kCosine;
  recipe.epochs = 10;
  recipe.warmup_epochs = 2;
  const Schedule schedule(recipe, 100);
  for (int64_t step = 1; step < 200; ++step) {
    EXPECT_GT(schedule.learning_rate(step), schedule.learning_rate(step - 1));
    EXPECT_LT(schedule.learning_rate(step), 0.1);
  }
  EXPECT_DOUBLE_EQ(schedule.learning_rate(200), 0.1);
}

}  // namespace
}  // namespace onetap
