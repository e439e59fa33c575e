#include "onetap/plan/execution_plan.h"

#include "onetap/graph/text.h"
#include "onetap/graph/zoo/zoo.h"
#include "onetap/tap/fold.h"
#include "tests/graph/random_graph.h"
#include "tests/support/support.h"

#include <algorithm>

namespace onetap {
namespace {

Graph network(const std::string& nodes) {
  return parse_network("onetap-net 1\n" + nodes);
}

PlanOptions cache_lines() {
  PlanOptions options;
  options.alignment = 64;
  options.odd_plane_stride = true;
  return options;
}

std::vector<std::string> step_names(const ExecutionPlan& plan) {
  std::vector<std::string> names;
  for (const PlannedStep& step : plan.steps) {
    names.push_back(step.node->name + (step.residual >= 0 ? "+add" : "") + (step.relu ? "+relu" : ""));
  }
  return names;
}

TEST(ExecutionPlan, CountsBytesByTypeAndAlignment) {
  // a and b are alive together, then b and c: 2x5x5 and 3x5x5 planes.
  const Graph graph = network("x = input 1x5x5\na = conv x out=2\nb = conv a out=3\nc = conv b out=2\n");
  // Floats without gaps: a plane is 100 bytes.
  EXPECT_EQ(plan_execution(graph).arena_bytes, (2 + 3) * 100);
  // Bytes: a plane is 25, rounded up to 28 by an alignment of 4, and 25 by one of 1.
  PlanOptions options;
  options.dtype = DType::kI8;
  EXPECT_EQ(plan_execution(graph, options).arena_bytes, (2 + 3) * 28);
  options.alignment = 1;
  EXPECT_EQ(plan_execution(graph, options).arena_bytes, (2 + 3) * 25);
  // Floats on cache lines: 100 bytes are 2 lines, the next odd number of them is 3.
  EXPECT_EQ(plan_execution(graph, cache_lines()).arena_bytes, (2 + 3) * 192);
  options = cache_lines();
  options.odd_plane_stride = false;
  EXPECT_EQ(plan_execution(graph, options).arena_bytes, (2 + 3) * 128);
}

TEST(ExecutionPlan, AVectorHasNoGaps) {
  const ExecutionPlan plan = plan_execution(network("x = input 7x3x3\ng = gap x\n"), cache_lines());
  const PlannedValue& value = plan.value(plan.output);
  EXPECT_EQ(value.plane_stride, 1);
  EXPECT_EQ(value.bytes(), 28);
  EXPECT_EQ(plan.arena_bytes, 64);
}

TEST(ExecutionPlan, TheInputStaysWhereTheCallerHasIt) {
  const ExecutionPlan plan = plan_execution(network("x = input 3x5x5\na = relu x\n"), cache_lines());
  EXPECT_EQ(plan.value(plan.input).plane_stride, 25);
  EXPECT_EQ(plan.arena_bytes, 3 * 192);
}

TEST(ExecutionPlan, AnAlignmentSmallerThanTheTypeIsRefused) {
  const Graph graph = network("x = input 3x5x5\na = relu x\n");
  PlanOptions options;
  for (const int64_t alignment : {0, -4, 2, 6}) {
    options.alignment = alignment;
    testing::expect_error(ErrorKind::kUsage, "multiple of 4 bytes (F32), got " + std::to_string(alignment),
                          [&] { plan_execution(graph, options); });
  }
}

TEST(ExecutionPlan, FusesReluAndSum) {
  using Names = std::vector<std::string>;
  // The later of two convolutions takes the sum, and the ReLU behind it.
  Graph graph = network("x = input 4x8x8\na = conv x out=4\nb = conv x out=4\ns = add a b\nr = relu s\n");
  EXPECT_EQ(step_names(plan_execution(graph)), (Names{"a", "b+add+relu"}));
  // The order of the addends does not matter.
  graph = network("x = input 4x8x8\na = conv x out=4\nb = conv x out=4\ns = add b a\nr = relu s\n");
  EXPECT_EQ(step_names(plan_execution(graph)), (Names{"a", "b+add+relu"}));
  // A convolution before its other addend waits for it.
  graph = network("x = input 4x8x8\na = conv x out=4\nb = relu x\ns = add a b\n");
  EXPECT_EQ(step_names(plan_execution(graph)), (Names{"b", "a+add"}));
}

TEST(ExecutionPlan, DoesNotFuseWhatSomebodyElseReads) {
  using Names = std::vector<std::string>;
  // a is read twice; the input is the caller's; three addends; the output is wanted without the ReLU.
  EXPECT_EQ(step_names(plan_execution(network("x = input 4x8x8\na = conv x out=4\nr = relu a\ns = add a r\n"))),
            (Names{"a", "r", "s"}));
  EXPECT_EQ(step_names(plan_execution(network("x = input 4x8x8\na = conv x out=4\ns = add a x\n"))), (Names{"a", "s"}));
  EXPECT_EQ(step_names(plan_execution(network("x = input 4x8x8\na = conv x out=4\ns = add a a\n"))), (Names{"a", "s"}));
  EXPECT_EQ(step_names(plan_execution(network("x = input 4x8x8\na = conv x out=4\nb = relu x\ns = add a b b\n"))),
            (Names{"a", "b", "s"}));
  EXPECT_EQ(step_names(plan_execution(network("x = input 4x8x8\na = conv x out=4\nr = relu a\noutput a\n"))),
            (Names{"a", "r"}));
}

TEST(ExecutionPlan, AResNetHasNoStepsForSumsAndRelus) {
  NetSpec spec;
  spec.arch = "resnet20";
  spec.width = 16;
  const Graph graph = frozen_form(build_network(spec)).graph;
  const ExecutionPlan plan = plan_execution(graph, cache_lines());
  int64_t residuals = 0;
  for (const PlannedStep& step : plan.steps) {
    EXPECT_NE(step.node->op, Op::kAdd);
    EXPECT_NE(step.node->op, Op::kRelu);
    residuals += step.residual >= 0 ? 1 : 0;
  }
  EXPECT_EQ(residuals, 9);
  // Input of a block, its middle, its result: planes of 32x32 floats are 64 lines, so they lie 65 apart.
  EXPECT_EQ(plan.arena_bytes, 3 * 16 * 65 * 64);
}

TEST(ExecutionPlan, NamesTheNodeThatNeedsMost) {
  const Graph graph = network(
      "x = input 1x8x8\nsmall = conv x out=2\nlarge = conv small out=9\npooled = gap large\nfc = linear pooled "
      "out=2\n");
  EXPECT_EQ(plan_execution(graph).peak->name, "large");
  EXPECT_EQ(plan_execution(network("x = input 1x8x8\n")).peak->name, "x");
}

// What a step reads was written before and has not been overwritten since, in every network and for every alignment.
TEST(ExecutionPlan, NothingIsOverwrittenBeforeItsLastReader) {
  for (uint64_t seed = 0; seed < testing::sweep_cases(300); ++seed) {
    const Graph graph = frozen_form(testing::random_graph(seed)).graph;
    PlanOptions options;
    options.alignment = int64_t{4} << seed % 5;
    options.odd_plane_stride = seed % 2 == 0;
    const ExecutionPlan plan = plan_execution(graph, options);
    std::vector<int> owner(static_cast<size_t>(plan.arena_bytes), -1);  // the value that wrote each byte last
    const auto expect_whole = [&](int index) {
      if (index == plan.input) return;
      const PlannedValue& value = plan.value(index);
      const auto from = owner.begin() + value.offset;
      EXPECT_EQ(std::count(from, from + value.bytes(), index), value.bytes()) << "seed " << seed;
    };
    for (const PlannedStep& step : plan.steps) {
      const PlannedValue& output = plan.value(step.output);
      ASSERT_EQ(output.offset % options.alignment, 0);
      ASSERT_LE(output.offset + output.bytes(), plan.arena_bytes);
      if (step.node->shape.size() == 3) {
        ASSERT_EQ(output.plane_stride * 4 % options.alignment, 0);
      }
      std::fill_n(owner.begin() + output.offset, output.bytes(), step.output);  // before it reads: not in place
      for (const int input : step.inputs) expect_whole(input);
      if (step.residual >= 0) expect_whole(step.residual);
    }
    expect_whole(plan.output);
  }
}

}  // namespace
}  // namespace onetap
