#include "onetap/fused/plan.h"

#include "onetap/graph/text.h"
#include "onetap/graph/zoo/zoo.h"
#include "tests/fused/networks.h"

#include <algorithm>
#include <optional>

namespace onetap::fused {
namespace {

int64_t count(const Plan& plan, Step::Kind kind) {
  return std::count_if(plan.steps.begin(), plan.steps.end(), [&](const Step& step) { return step.kind == kind; });
}

TEST(FusedPlan, TakesSumsAndRelusIntoNorms) {
  const Graph graph = testing::small_network("resnet20", 4, {});
  const Plan plan = make_plan(graph);
  ASSERT_EQ(plan.obstacle, "");
  EXPECT_EQ(count(plan, Step::Kind::kConv), 21);
  EXPECT_EQ(count(plan, Step::Kind::kNorm), 21);
  EXPECT_EQ(count(plan, Step::Kind::kGlobalPool), 1);
  EXPECT_EQ(count(plan, Step::Kind::kLinear), 1);
  int64_t residuals = 0, relus = 0;
  for (const Step& step : plan.steps) {
    EXPECT_LT(step.input, step.output);
    EXPECT_LT(step.residual, step.output);
    residuals += step.residual >= 0;
    relus += step.relu;
  }
  EXPECT_EQ(residuals, 9);  // one per block
  EXPECT_EQ(relus, 19);     // of 21 norms, the shortcuts' two sums have theirs after the sum
  EXPECT_EQ(plan.result, plan.steps.back().output);
}

TEST(FusedPlan, SaysWhatHasNoFusedForm) {
  const auto obstacle = [](const std::string& body) {
    const Graph graph = parse_network("onetap-net 1\nnetwork test\nx = input 3x8x8\n" + body +
                                      "p = gap r\nf = linear p out=2\noutput f\n");
    return make_plan(graph).obstacle;
  };
  EXPECT_EQ(obstacle("c = conv x out=4 kernel=3 pad=1\nb = bn c\nr = relu b\n"), "");
  const auto expect_part = [&](const std::string& body, const std::string& part) {
    EXPECT_NE(obstacle(body).find(part), std::string::npos) << obstacle(body);
  };
  expect_part("c = conv x out=4 kernel=3 pad=1 bias=1\nb = bn c\nr = relu b\n", "bias");
  expect_part("c = conv x out=4 kernel=3 pad=1\nd = avgpool c kernel=2 stride=2\nr = relu d\n", "d (avgpool)");
  expect_part("c = conv x out=2049 kernel=3 pad=1\nb = bn c\nr = relu b\n", "2,048");
  expect_part("c = conv x out=4 kernel=7 pad=3\nb = bn c\nr = relu b\n", "kernel");
}

Plan plan_of(const std::string& body, std::optional<Graph>& graph) {
  graph = parse_network("onetap-net 1\nnetwork test\nx = input 3x8x8\n" + body);
  return make_plan(*graph);
}

// Only the later of two norms may free the convolution's value.
TEST(FusedPlan, KnowsTheLastReaders) {
  std::optional<Graph> graph;
  const Plan plan = plan_of(
      "c = conv x out=4 kernel=3 pad=1\nb = bn c\nd = bn c\ns = add b d\nr = relu s\n"
      "p = gap r\nf = linear p out=2\noutput f\n",
      graph);
  ASSERT_EQ(plan.obstacle, "");
  ASSERT_EQ(plan.steps.size(), 5u);
  EXPECT_EQ(plan.steps[1].node->name, "b");
  EXPECT_EQ(plan.steps[1].last_uses, std::vector<int>());
  EXPECT_EQ(plan.steps[2].node->name, "d");
  EXPECT_EQ(plan.steps[2].last_uses, (std::vector<int>{plan.steps[0].output, plan.steps[1].output}));
  EXPECT_EQ(plan.steps[2].residual, plan.steps[1].output);
}

// As in ShiftResNets, whose ReLUs stand before the sum, and AS-ResNets, whose batch norms read it.
TEST(FusedPlan, SumsAndRelusMayStandAlone) {
  using Kind = Step::Kind;
  std::optional<Graph> graph;
  const Plan plan = plan_of(
      "c = conv x out=4 kernel=3 pad=1\nb = bn c\nr = relu b\ns = shift r kernel=3\na = activeshift s\nt = add r a\n"
      "d = subsample t out=6 stride=2\nq = relu d\nn = bn q\np = gap n\nf = linear p out=2\noutput f\n",
      graph);
  ASSERT_EQ(plan.obstacle, "");
  std::vector<Kind> kinds;
  for (const Step& step : plan.steps) kinds.push_back(step.kind);
  EXPECT_EQ(kinds, (std::vector<Kind>{Kind::kConv, Kind::kNorm, Kind::kShift, Kind::kActiveShift, Kind::kAdd,
                                      Kind::kSubsample, Kind::kRelu, Kind::kNorm, Kind::kGlobalPool, Kind::kLinear}));
  EXPECT_EQ(plan.steps[4].input, plan.steps[1].output);
  EXPECT_EQ(plan.steps[4].residual, plan.steps[3].output);
}

// What nobody reads has no gradient.
TEST(FusedPlan, RefusesValuesWithoutAReader) {
  const std::string block = "c = conv x out=4 kernel=3 pad=1\nb = bn c\nr = relu b\n";
  const std::string end = "p = gap r\nf = linear p out=2\n";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {block + "d = bn c\n" + end + "output f\n", "d (bn): has no reader"},
      {block + "d = conv r out=3 kernel=1\n" + end + "output f\n", "d (conv): has no reader"},
      {block + "d = maxpool r kernel=2 stride=2\n" + end + "output f\n", "d (maxpool): has no reader"},
      {block + end + "g = linear p out=3\noutput f\n", "g (linear): has no reader"},  // the output in the middle
      {block + end + "g = linear f out=3\noutput f\n", "g (linear): has no reader"}};
  for (const auto& [body, expected] : cases) {
    std::optional<Graph> graph;
    EXPECT_EQ(plan_of(body, graph).obstacle, expected);
  }
}

}  // namespace
}  // namespace onetap::fused
