// Statistics taken anew are the hard network's own.
#include "onetap/batches/recalibrate.h"

#include "onetap/data/source.h"
#include "tests/graph/small_nets.h"

#include <gtest/gtest.h>

namespace onetap {
namespace {

using Norms = std::vector<torch::nn::BatchNorm2dImpl*>;

class Recalibrate : public ::testing::Test {
 protected:
  Recalibrate() {
    torch::manual_seed(1);
    module = nn::GraphModule(testing::small_resnet(sal_method()));
    stream.view = {module->graph().input().shape[1], source.normalisation};
    stream.batch_size = 32;
    stream.train = true;
    for (const auto& child : module->modules()) {
      if (auto* norm = child->as<torch::nn::BatchNorm2d>()) norms.push_back(norm);
    }
    const torch::NoGradGuard no_grad;
    for (auto* norm : norms) norm->running_mean.normal_(0, 3);
  }

  const DataSource source = open_data("shapes:train=112,test=10");
  nn::GraphModule module{nullptr};
  StreamOptions stream;
  Norms norms;
};

TEST_F(Recalibrate, TakesTheMeanOverWholeBatches) {
  // The first norm's input, batch by batch, through the same stream.
  const torch::NoGradGuard no_grad;
  torch::Tensor mean = torch::zeros(4), variance = torch::zeros(4);
  BatchStream batches(*source.train, stream);
  Batch batch;
  for (int taken = 0; taken < 3; ++taken) {
    ASSERT_TRUE(batches.next(batch));
    torch::Tensor seen;
    module->set_observer([&](const Node& node, const torch::Tensor& y) {
      if (node.name == "conv1") seen = y;
    });
    module->forward(batch.images);
    mean += seen.mean({0, 2, 3}) / 3;
    variance += seen.transpose(0, 1).flatten(1).var(1, /*unbiased=*/true) / 3;
  }
  module->set_observer(nullptr);
  // 112 images are three whole batches and a half: the half is left out.
  std::vector<int64_t> told;
  EXPECT_EQ(recalibrate(module, *source.train,
                        {stream, 1000, torch::kCPU,
                         [&](int64_t images) {
                           told.push_back(images);
                           return true;
                         }}),
            96);
  EXPECT_EQ(told, (std::vector<int64_t>{32, 64, 96}));
  EXPECT_TRUE(norms[0]->running_mean.allclose(mean, 1e-4, 1e-5));
  EXPECT_TRUE(norms[0]->running_var.allclose(variance, 1e-4, 1e-5));
}

TEST_F(Recalibrate, MakesTheFrozenNetworkAnswerAsItsBatchesDo) {
  const torch::NoGradGuard no_grad;
  stream.batch_size = 112;
  Batch batch;
  BatchStream(*source.train, stream).next(batch);
  const auto answer = [&](bool by_batch) {
    module->train(by_batch);
    const nn::ModeGuard hard(module, nn::AttentionMode::kHard);
    return module->forward(batch.images);
  };
  const auto difference = [&](const torch::Tensor& wanted) {
    return ((answer(false) - wanted).abs().max() / wanted.abs().max()).item<double>();
  };
  const auto wanted = answer(true);
  EXPECT_GT(difference(wanted), 0.5);
  std::vector<torch::Tensor> before;
  for (const auto& parameter : module->parameters()) before.push_back(parameter.clone());
  EXPECT_EQ(recalibrate(module, *source.train, {stream, 1, torch::kCPU, nullptr}), 112);
  // Running variances are unbiased, a batch's own are not.
  EXPECT_LT(difference(wanted), 1e-2);
  size_t i = 0;
  for (const auto& parameter : module->parameters()) EXPECT_TRUE(parameter.equal(before[i++]));
  for (const auto* norm : norms) EXPECT_EQ(norm->options.momentum().value(), 0.1);
}

}  // namespace
}  // namespace onetap
