// A frozen network as a teacher.
#include "onetap/train/teacher.h"

#include "onetap/data/source.h"
#include "onetap/freeze/freeze.h"
#include "onetap/tap/tap_file.h"
#include "tests/freeze/compare.h"
#include "tests/graph/small_nets.h"
#include "tests/support/support.h"

namespace onetap {
namespace {

using testing::disturb;
using testing::expect_error;
using testing::TempDir;

TEST(FrozenTeacher, AnswersAsTheNetworkThatWasFrozen) {
  const TempDir dir;
  torch::manual_seed(1);
  const DataSource source = open_data("shapes:train=20,test=10");
  nn::GraphModule module(testing::small_resnet(sal_method()));
  disturb(module);
  TapNet net = freeze(module);
  net.pixels = {source.normalisation.mean, source.normalisation.sd};
  write_tap(dir / "model.tap", net);

  Recipe recipe;
  recipe.teacher = (dir / "model.tap").string();
  LoadedTeacher teacher = load_teacher(recipe, module->graph(), source, {});
  const torch::NoGradGuard no_grad;
  const Shape& shape = module->graph().input().shape;
  const auto images = torch::randn({5, shape[0], shape[1], shape[2]});
  module->eval();
  const nn::ModeGuard hard(module, nn::AttentionMode::kHard);
  const auto expected = module->forward(images);
  EXPECT_LT(((teacher.module->forward(images) - expected).abs().max() / expected.abs().max()).item<double>(), 1e-4);

  net.pixels.mean = {0, 0, 0};
  write_tap(dir / "model.tap", net);
  expect_error(ErrorKind::kUsage, "expected a network with the mean and sd of shapes",
               [&] { load_teacher(recipe, module->graph(), source, {}); });
}

}  // namespace
}  // namespace onetap
