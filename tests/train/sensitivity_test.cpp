#include "onetap/train/sensitivity.h"

#include "onetap/data/source.h"
#include "tests/graph/small_nets.h"

#include <gtest/gtest.h>

namespace onetap {
namespace {

nn::GraphModule sal_module() {
  torch::manual_seed(0);
  return nn::GraphModule(testing::small_resnet(sal_method()));
}

SensitivityOptions options_for(const DataSource& source) {
  SensitivityOptions options;
  options.stream.view.normalisation = source.normalisation;
  options.stream.batch_size = 16;
  return options;
}

TEST(Sensitivity, SoftAndHardAgreeWithEvaluate) {
  const DataSource source = open_data("shapes:train=10,test=40");
  nn::GraphModule module = sal_module();
  module->set_temperature(0.5);
  const Sensitivity result = measure_sensitivity(module, *source.test, options_for(source)).value();
  EvalOptions eval;
  eval.stream = options_for(source).stream;
  const EvalResult expected = evaluate(module, *source.test, eval).value();
  EXPECT_EQ(result.images, 40);
  EXPECT_EQ(result.soft.loss, expected.soft.loss);
  EXPECT_EQ(result.hard.loss, expected.hard.loss);
  ASSERT_EQ(result.layers.size(), 6u);
  for (const auto& layer : result.layers) EXPECT_NE(layer.alone.loss, result.soft.loss) << layer.name;
  for (const auto& sal : module->trained_layers()) EXPECT_EQ(sal.layer->mode(), nn::AttentionMode::kSoft);
}

// One layer of one: hardening it alone is hardening all.
TEST(Sensitivity, TheOnlySoftLayerCostsAll) {
  const DataSource source = open_data("shapes:train=10,test=40");
  nn::GraphModule module = sal_module();
  Graph graph = module->graph();
  apply_method(graph, graph.node("layer2.0.conv1").method, "layer2.0.conv1");
  nn::GraphModule one(graph);
  const Sensitivity result = measure_sensitivity(one, *source.test, options_for(source)).value();
  ASSERT_EQ(result.layers.size(), 1u);
  EXPECT_EQ(result.layers[0].alone.loss, result.hard.loss);
}

TEST(Sensitivity, AsksAsManyImagesAsWanted) {
  const DataSource source = open_data("shapes:train=10,test=40");
  nn::GraphModule module = sal_module();
  SensitivityOptions options = options_for(source);
  options.stream.images = 21;
  EXPECT_EQ(measure_sensitivity(module, *source.test, options).value().images, 21);
  options.progress = [](int64_t) { return false; };
  EXPECT_FALSE(measure_sensitivity(module, *source.test, options).has_value());
}

}  // namespace
}  // namespace onetap
