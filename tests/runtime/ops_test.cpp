// Every op has an implementation in both executors, or is known to have none.
#include "onetap/graph/op.h"
#include "onetap/graph/text.h"
#include "onetap/runtime/reference.h"
#include "onetap/runtime/session.h"
#include "onetap/runtime/steps.h"
#include "tests/support/support.h"
#include "tests/tap/random_net.h"

#include <cmath>
#include <map>
#include <set>

namespace onetap {
namespace {

// Ops of training alone: freezing replaces them.
const std::set<Op> kTrainingOnly = {Op::kBatchNorm};

// A node of every other op, reading the image x.
const std::map<Op, std::string> kExamples = {
    {Op::kConv, "y = conv x out=5 kernel=3 pad=1 bias=1"},
    {Op::kTapConv, "y = tapconv x out=5 kernel=3 pad=1 taps=2"},
    {Op::kRelu, "y = relu x"},
    {Op::kAdd, "y = add x x x"},
    {Op::kConcat, "y = concat x x"},
    {Op::kAvgPool, "y = avgpool x kernel=2 stride=2"},
    {Op::kMaxPool, "y = maxpool x kernel=3 pad=1 stride=2"},
    {Op::kGlobalAvgPool, "y = gap x"},
    {Op::kSubsample, "y = subsample x out=7 stride=2"},
    {Op::kFlatten, "y = flatten x"},
    {Op::kLinear, "f = flatten x\ny = linear f out=6"},
    {Op::kAffine, "y = affine x"},
    {Op::kShift, "y = shift x kernel=3 counts=1,0,0,0,0,0,1,0,1"},
    {Op::kActiveShift, "y = activeshift x stride=2"},
    {Op::kRelu6, "y = relu6 x"},
    {Op::kSigmoid, "y = sigmoid x"},
    {Op::kHardSigmoid, "y = hardsigmoid x"},
    {Op::kHardSwish, "y = hardswish x"},
    {Op::kSilu, "y = silu x"},
    {Op::kMul, "p = gap x\ny = mul x p"},
    {Op::kPad, "y = pad x sides=1,0,2,3"},
};

TEST(Ops, BothExecutorsHaveEveryOpOfFrozenNetworks) {
  Random random(1, Purpose::kTest);
  const auto x = testing::random_floats(3 * 6 * 7, random);
  for (const OpInfo& info : op_table()) {
    if (info.op == Op::kInput || kTrainingOnly.count(info.op) > 0) continue;
    ASSERT_EQ(kExamples.count(info.op), 1u) << "no example of " << info.name;
    const std::string text = "onetap-net 1\nx = input 3x6x7\n" + kExamples.at(info.op) + "\n";
    const TapNet net = random_tap_net(parse_network(text), 1);
    ASSERT_EQ(net.graph.node("y").op, info.op);
    const std::vector<float> expected = run_reference(net, x.data());
    EXPECT_TRUE(std::any_of(expected.begin(), expected.end(), [](float value) { return value != 0; })) << info.name;
    Session session(std::make_shared<const Model>(net));
    std::vector<float> got(expected.size(), -99.0f);
    session.run(x.data(), 1, got.data());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-5) << info.name << " at " << i;
  }
}

// With its op and name, before anything is computed.
TEST(Ops, WhatHasNoImplementationIsRefused) {
  Node node = default_node(Op::kBatchNorm);
  node.name = "layer1.0.bn1";
  for (const Op op : kTrainingOnly) {
    node.op = op;
    const std::string part = std::string("got ") + op_info(op).name + " of F32 ('layer1.0.bn1')";
    testing::expect_error(ErrorKind::kFailure, part, [&] { find_step(node, DType::kF32); });
    EXPECT_FALSE(is_in_reference(op));
  }
  // Nor is there anything for other types of values.
  node.op = Op::kRelu;
  testing::expect_error(ErrorKind::kFailure, "got relu of I16", [&] { find_step(node, DType::kI16); });
  EXPECT_EQ(find_step(node, DType::kI8).dtype, DType::kI8);
  EXPECT_EQ(find_step(node, DType::kF32).op, Op::kRelu);

  // The image is no memory: a reference that ran up to the batch norm would crash.
  TapNet net;
  net.graph = parse_network("onetap-net 1\nx = input 3x6x7\na = relu x\nb = bn a\n");
  testing::expect_error(ErrorKind::kFailure, "got bn ('b')", [&] { run_reference(net, nullptr); });
}

TEST(Ops, EveryRowOfTheTableIsThereOnce) {
  std::set<std::pair<Op, DType>> seen;
  for (const StepKind& kind : step_table()) {
    EXPECT_NE(kind.run, nullptr) << op_info(kind.op).name;
    EXPECT_TRUE(seen.emplace(kind.op, kind.dtype).second) << op_info(kind.op).name;
  }
}

}  // namespace
}  // namespace onetap
