#include "onetap/train/sgd.h"

#include "onetap/base/error.h"
#include "onetap/train/adamw.h"

#include <gtest/gtest.h>

namespace onetap {
namespace {

TEST(Sgd, EqualsLibTorchsOwn) {
  for (const bool nesterov : {false, true}) {
    for (const double momentum : {0.0, 0.9}) {
      if (nesterov && momentum == 0) continue;
      torch::manual_seed(31);
      torch::nn::Linear ours(5, 3), theirs(5, 3);
      {
        const torch::NoGradGuard no_grad;
        theirs->weight.copy_(ours->weight);
        theirs->bias.copy_(ours->bias);
      }
      Sgd sgd(*ours, {momentum, nesterov, 0.01});
      torch::optim::SGD reference(
          theirs->parameters(), torch::optim::SGDOptions(0.1).momentum(momentum).nesterov(nesterov).weight_decay(0.01));
      for (int i = 0; i < 10; ++i) {
        const auto x = torch::randn({4, 5});
        sgd.zero_grad();
        ours->forward(x).square().sum().backward();
        sgd.step(0.1);
        reference.zero_grad();
        theirs->forward(x).square().sum().backward();
        reference.step();
      }
      EXPECT_TRUE(torch::allclose(ours->weight, theirs->weight, 1e-5, 1e-6)) << momentum << nesterov;
      EXPECT_TRUE(torch::allclose(ours->bias, theirs->bias, 1e-5, 1e-6));
    }
  }
}

TEST(AdamW, EqualsLibTorchsOwn) {
  torch::manual_seed(33);
  torch::nn::Linear ours(5, 3), theirs(5, 3);
  {
    const torch::NoGradGuard no_grad;
    theirs->weight.copy_(ours->weight);
    theirs->bias.copy_(ours->bias);
  }
  AdamW adamw(*ours, {0.8, 0.95, 1e-8, 0.1});
  torch::optim::AdamW reference(
      theirs->parameters(),
      torch::optim::AdamWOptions(0.05).betas(std::make_tuple(0.8, 0.95)).eps(1e-8).weight_decay(0.1));
  for (int i = 0; i < 10; ++i) {
    const auto x = torch::randn({4, 5});
    adamw.zero_grad();
    ours->forward(x).square().sum().backward();
    adamw.step(0.05);
    reference.zero_grad();
    theirs->forward(x).square().sum().backward();
    reference.step();
  }
  EXPECT_TRUE(torch::allclose(ours->weight, theirs->weight, 1e-5, 1e-6));
  EXPECT_TRUE(torch::allclose(ours->bias, theirs->bias, 1e-5, 1e-6));
  EXPECT_EQ(adamw.state().front().second.item<int64_t>(), 10);
}

TEST(AdamW, FollowsTheRulesOfParameters) {
  torch::nn::Linear layer(1, 1);
  {
    const torch::NoGradGuard no_grad;
    layer->weight.fill_(2);
    layer->bias.fill_(2);
  }
  nn::ParameterRules rules;
  rules["bias"] = {0.5, 0, false};
  AdamW adamw(*layer, {0.9, 0.999, 0, 0.1}, rules);
  layer->forward(torch::full({1, 1}, 3.0)).sum().backward();
  adamw.step(0.01);
  // The first step of Adam is the learning rate, whatever the gradient: 2 (1 - 0.01 * 0.1) - 0.01, and 2 - 0.005.
  EXPECT_NEAR(layer->weight.item<double>(), 1.988, 1e-6);
  EXPECT_NEAR(layer->bias.item<double>(), 1.995, 1e-6);
}

TEST(Sgd, RestartForgetsMomentum) {
  torch::manual_seed(32);
  torch::nn::Linear layer(2, 2);
  Sgd sgd(*layer, {0.9, false, 0});
  layer->forward(torch::ones({1, 2})).sum().backward();
  sgd.step(0.1);
  EXPECT_GT(sgd.state()[0].second.abs().sum().item<double>(), 0.0);
  sgd.restart();
  for (const auto& [name, velocity] : sgd.state()) EXPECT_EQ(velocity.abs().sum().item<double>(), 0.0) << name;
}

// One step from 2 with a gradient of (3, 4), learning rate 0.1, weight decay 0.5: by hand.
TEST(Sgd, ParametersMayHaveRulesOfTheirOwn) {
  const auto after = [](const nn::ParameterRule& rule) {
    torch::nn::Linear layer(torch::nn::LinearOptions(2, 1).bias(false));
    {
      const torch::NoGradGuard no_grad;
      layer->weight.fill_(2);
    }
    layer->weight.mutable_grad() = torch::tensor({{3.0f, 4.0f}});
    Sgd sgd(*layer, {0.9, false, 0.5}, {{"weight", rule}});
    sgd.step(0.1);
    return layer->weight.detach();
  };
  const auto expect = [](const torch::Tensor& got, float a, float b) {
    EXPECT_TRUE(torch::allclose(got, torch::tensor({{a, b}}))) << got;
  };
  expect(after({}), 2 - 0.1f * (3 + 0.5f * 2), 2 - 0.1f * (4 + 0.5f * 2));
  expect(after({0.5, 1, false}), 2 - 0.05f * 4, 2 - 0.05f * 5);
  expect(after({1, 0, false}), 2 - 0.1f * 3, 2 - 0.1f * 4);
  expect(after({1, 0, true}), 2 - 0.1f * 0.6f, 2 - 0.1f * 0.8f);
  EXPECT_THROW(Sgd(*torch::nn::Linear(2, 2), {}, {{"no-such", {}}}), Error);
}

TEST(Sgd, StateIsNamedAsTheParameters) {
  torch::nn::Linear layer(2, 2);
  const Sgd sgd(*layer, {});
  ASSERT_EQ(sgd.state().size(), 2u);
  EXPECT_EQ(sgd.state()[0].first, "weight");
}

}  // namespace
}  // namespace onetap
