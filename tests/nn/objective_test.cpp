// The loss of a training, against numbers by hand and finite differences.
#include "onetap/nn/objective.h"

#include "tests/nn/gradients.h"

#include <cmath>

namespace onetap::nn {
namespace {

torch::Tensor labels(std::initializer_list<int64_t> values) {
  return torch::tensor(at::ArrayRef<int64_t>(values), torch::kInt64);
}

// The teacher says 3/4 and 1/4, the student one half each: KL = 3/4 log(3/2) + 1/4 log(1/2). The temperature of 2
// divides both; the cross-entropy of even outputs is log 2 whatever the label.
TEST(Objective, IsTheWeightedSumByHand) {
  const auto logits = torch::zeros({2, 2}, torch::kFloat64);
  Targets targets(labels({0, 1}));
  EXPECT_NEAR(objective_loss(logits, targets, {}).item<double>(), std::log(2.0), 1e-12);
  targets.teacher = torch::tensor({{2 * std::log(3.0), 0.0}, {2 * std::log(3.0), 0.0}}, torch::kFloat64);
  const double distance = 0.75 * std::log(1.5) + 0.25 * std::log(0.5);
  EXPECT_NEAR(objective_loss(logits, targets, {0, 0.3, 2}).item<double>(), 0.7 * std::log(2.0) + 0.3 * 4 * distance,
              1e-12);
  EXPECT_NEAR(objective_loss(logits, targets, {0, 1, 2}).item<double>(), 4 * distance, 1e-12);
  // A student that says what the teacher does has nothing to learn from it.
  EXPECT_NEAR(objective_loss(targets.teacher, targets, {0, 1, 2}).item<double>(), 0, 1e-12);
}

// With probabilities 3/4 and 1/4, a share of 0.2 for label 0 and 0.8 for label 1.
TEST(Objective, MixedImagesHaveTwoLabels) {
  const auto logits = torch::tensor({{std::log(3.0), 0.0}}, torch::kFloat64);
  Targets targets(labels({0}));
  targets.others = labels({1});
  targets.share = torch::tensor(0.2, torch::kFloat64);
  EXPECT_NEAR(objective_loss(logits, targets, {}).item<double>(), -0.2 * std::log(0.75) - 0.8 * std::log(0.25), 1e-12);
  EXPECT_EQ(targets.main_labels().item<int64_t>(), 1);
  targets.share.fill_(0.5);
  EXPECT_EQ(targets.main_labels().item<int64_t>(), 0);
}

TEST(Objective, GradientsEqualFiniteDifferences) {
  torch::manual_seed(1);
  auto logits = (torch::randn({4, 5}, torch::kFloat64) * 2).requires_grad_();
  for (const bool mixed : {false, true}) {
    for (const bool taught : {false, true}) {
      Targets targets(labels({0, 4, 2, 2}));
      if (mixed) {
        targets.others = targets.labels.flip(0);
        targets.share = torch::tensor(0.3, torch::kFloat64);
      }
      if (taught) targets.teacher = torch::randn({4, 5}, torch::kFloat64) * 3;
      testing::check_gradient([&] { return objective_loss(logits, targets, {0.1, 0.6, 3}); }, logits, "logits");
    }
  }
}

TEST(Objective, PartsAddUpToTheWhole) {
  torch::manual_seed(2);
  const auto logits = torch::randn({5, 3}, torch::kFloat64);
  Targets targets(labels({0, 1, 2, 1, 0}));
  targets.others = targets.labels.flip(0);
  targets.share = torch::tensor(0.7, torch::kFloat64);
  targets.teacher = torch::randn({5, 3}, torch::kFloat64);
  const Objective objective{0.1, 0.5, 2};
  const double first = objective_loss(logits.narrow(0, 0, 2), targets.part({0, 2}), objective).item<double>();
  const double rest = objective_loss(logits.narrow(0, 2, 3), targets.part({2, 3}), objective).item<double>();
  EXPECT_NEAR((2 * first + 3 * rest) / 5, objective_loss(logits, targets, objective).item<double>(), 1e-12);
}

}  // namespace
}  // namespace onetap::nn
