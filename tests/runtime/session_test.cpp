#include "onetap/runtime/session.h"

#include "onetap/graph/method.h"
#include "onetap/graph/sal.h"
#include "onetap/graph/text.h"
#include "onetap/graph/zoo/zoo.h"
#include "onetap/runtime/reference.h"
#include "onetap/tap/tap_file.h"
#include "tests/runtime/allocations.h"
#include "tests/support/support.h"
#include "tests/tap/random_net.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>

namespace onetap {
namespace {

using testing::random_floats;
using testing::random_net;
using testing::sweep_cases;

// Largest difference relative to the largest reference value.
double relative_gap(const std::vector<float>& got, const std::vector<float>& expected) {
  double gap = 0, scale = 1e-30;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double difference = std::abs(static_cast<double>(got[i]) - expected[i]);
    gap = std::max(gap, std::isnan(difference) ? 1e9 : difference);
    scale = std::max(scale, std::abs(static_cast<double>(expected[i])));
  }
  return gap / scale;
}

struct Trial {
  std::vector<float> images, expected;
  int64_t count;
};

Trial make_trial(const TapNet& net, int64_t count, uint64_t seed) {
  Random random(seed, Purpose::kTest, 5);
  Trial trial;
  trial.count = count;
  const auto floats = static_cast<size_t>(element_count(net.graph.input().shape));
  trial.images = random_floats(floats * static_cast<size_t>(count), random);
  for (int64_t i = 0; i < count; ++i) {
    const auto one = run_reference(net, trial.images.data() + static_cast<size_t>(i) * floats);
    trial.expected.insert(trial.expected.end(), one.begin(), one.end());
  }
  return trial;
}

void expect_right(const TapNet& net, const Trial& trial, const ModelOptions& model, const SessionOptions& options,
                  const std::string& what) {
  Session session(std::make_shared<const Model>(net, model), options);
  std::vector<float> got(trial.expected.size(), -1.0f);
  session.run(trial.images.data(), trial.count, got.data());
  EXPECT_LT(relative_gap(got, trial.expected), 1e-4) << what;
}

TEST(Session, EqualsTheReferenceOnRandomNetworks) {
  for (uint64_t seed = 0; seed < sweep_cases(400) && !::testing::Test::HasFailure(); ++seed) {
    const TapNet net = random_net(seed);
    const Trial trial = make_trial(net, 1 + static_cast<int64_t>(seed % 5), seed);
    const KernelSet& kernels = *kernel_sets()[seed % kernel_sets().size()];
    const ModelOptions model{kernels.name, false, seed % 7 == 0};
    expect_right(net, trial, model, {1 + static_cast<int64_t>(seed % 3), trial.count},
                 "seed " + std::to_string(seed) + " " + kernels.name);
  }
}

TapNet zoo_net(const std::string& name, int64_t width, int64_t taps, BlockShare share) {
  NetSpec spec;
  spec.arch = name;
  spec.width = width;
  Graph graph = build_network(spec);
  if (taps > 0) apply_method(graph, sal_method(taps, share), "");
  return random_tap_net(frozen_form(graph).graph, 3);
}

TEST(Session, EqualsTheReferenceOnEveryZooNetwork) {
  for (const char* name : {"resnet20", "resnet56", "resnet110", "resnet50-cifar", "resnet-w"}) {
    for (const int64_t taps : {0, 1, 2}) {
      const TapNet net = zoo_net(name, 8, taps, 4);
      expect_right(net, make_trial(net, 2, 1), {}, {2, 2}, name);
    }
  }
}

TEST(Session, EqualsTheReferenceForSharesAndTargets) {
  for (const KernelSet* kernels : kernel_sets()) {
    for (const char* share : {"1", "2", "3", "4", "8", "13", "4x4", "5x3", "1x13", "all", "allx4"}) {
      const TapNet net = parse_tap(tap_bytes(zoo_net("resnet20", 13, 1, parse_share(share).value())), "test");
      expect_right(net, make_trial(net, 1, 1), {kernels->name, false, false}, {1, 1},
                   std::string(kernels->name) + " share " + share);
    }
  }
}

// Every fused ReLU and the pools let a NaN through, to the same values as in the reference.
TEST(Session, NaNGoesWhereItGoesInTheReference) {
  const TapNet net =
      random_tap_net(parse_network("onetap-net 1\nx = input 3x20x20\n"
                                   "a = conv x out=8 kernel=3 pad=1 bias=1\nb = relu a\n"
                                   "c = tapconv b out=8 kernel=3 pad=1 taps=1 share=4 bias=1\nd = add c b\ne = relu d\n"
                                   "f = affine e\ng = relu f\nh = maxpool g kernel=3 stride=2 pad=1\ni = relu h\n"
                                   "j = flatten i\nk = linear j out=3\nl = relu k\noutput i\n"),
                     1);
  std::vector<float> image(3 * 400, 0.5f);
  image[405] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> expected = run_reference(net, image.data());
  const auto is_nan = [](float value) { return std::isnan(value); };
  const auto reached = std::count_if(expected.begin(), expected.end(), is_nan);
  EXPECT_GT(reached, 0);
  EXPECT_LT(reached, static_cast<int64_t>(expected.size()) / 4);
  for (const KernelSet* kernels : kernel_sets()) {
    std::vector<float> got(expected.size());
    Session(std::make_shared<const Model>(net, ModelOptions{kernels->name, false, false}))
        .run(image.data(), 1, got.data());
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(std::isnan(got[i]), std::isnan(expected[i])) << kernels->name << " at " << i;
    }
  }
}

TEST(Session, ThreadsAndBatchesChangeNothing) {
  const TapNet net = zoo_net("resnet20", 16, 1, 1);
  const auto model = std::make_shared<const Model>(net);
  const Trial trial = make_trial(net, 7, 1);
  std::vector<float> one(trial.expected.size());
  Session(model).run(trial.images.data(), trial.count, one.data());
  for (const int64_t threads : {2, 3, 4}) {
    for (const int64_t batch : {1, 8}) {
      std::vector<float> got(one.size());
      Session(model, {threads, batch}).run(trial.images.data(), trial.count, got.data());
      EXPECT_EQ(got, one) << threads << " threads, batch " << batch;
    }
  }
}

TEST(Session, RunAllocatesNothing) {
  if (testing::kThreadSanitizer) GTEST_SKIP() << "skipped: allocations are not counted";
  const TapNet net = zoo_net("resnet20", 8, 1, 2);
  const Trial trial = make_trial(net, 5, 1);
  const TapNet every_op = random_net(11);
  const Trial other = make_trial(every_op, 5, 1);
  for (const int64_t threads : {1, 2}) {
    Session session(std::make_shared<const Model>(net), {threads, 4});
    Session second(std::make_shared<const Model>(every_op), {threads, 4});
    std::vector<float> got(trial.expected.size()), more(other.expected.size());
    const int64_t before = testing::allocations();
    session.run(trial.images.data(), trial.count, got.data());
    second.run(other.images.data(), other.count, more.data());
    EXPECT_EQ(testing::allocations(), before) << threads << " threads";
  }
  const int64_t before = testing::allocations();
  { const std::vector<int> counted(3); }
  EXPECT_GT(testing::allocations(), before) << "the counter counts nothing";
}

TEST(Session, SeveralSessionsShareAModel) {
  const TapNet net = zoo_net("resnet20", 8, 1, 4);
  const auto model = std::make_shared<const Model>(net);
  const Trial trial = make_trial(net, 3, 1);
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&, caller] {
      Session session(model, {1 + caller % 2, 1 + caller});
      std::vector<float> got(trial.expected.size());
      for (int round = 0; round < 3; ++round) {
        session.run(trial.images.data(), trial.count, got.data());
        EXPECT_LT(relative_gap(got, trial.expected), 1e-4);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

TEST(Session, DenseFormGivesTheSameAndCountsMore) {
  const TapNet net = zoo_net("resnet20", 16, 1, 4);
  const Model pruned(net), dense(net, {"", false, true});
  EXPECT_GT(dense.macs(), pruned.macs() * 6);
  expect_right(net, make_trial(net, 1, 1), {"", false, true}, {}, "dense");
}

// Nearly all taps kept, one by one: visiting every position is cheaper than waiting for loads.
TEST(Model, ALayerWhereDenseWinsRunsDense) {
  const TapNet net = zoo_net("resnet20", 16, 8, 1);
  const Model model(net);
  for (size_t step = 0; step < model.plan().steps.size(); ++step) {
    if (model.layer(step).conv == nullptr) continue;
    EXPECT_TRUE(model.layer(step).conv->blocking().dense);
  }
}

// Blocks of inputs and empty sets: from the text form through the file to both executors.
TEST(Session, RunsEveryLayoutThatAFileCanSay) {
  const Graph graph = parse_network(
      "onetap-net 1\nnetwork blocks\nx = input 6x9x9\n"
      "a = tapconv x out=10 kernel=3 pad=1 bias=1 taps=1 share=4x4\n"
      "b = tapconv a out=7 kernel=3 stride=2 pad=1 taps=2 share=7x3 dropped=1\n"
      "g = gap b\nf = linear g out=5\n");
  EXPECT_EQ(parse_network(network_text(graph)), graph);
  TapNet net = random_tap_net(graph, 3);
  auto& codes = net.layers.at("b").positions;
  codes.at(0) = codes.at(1) = 9;  // a set that keeps nothing
  codes.at(3) = 9;                // one that keeps half
  update_dropped(net, "b");
  const TapNet read = parse_tap(tap_bytes(net), "test");
  EXPECT_TRUE(read.layers.at("b") == net.layers.at("b"));
  std::vector<float> image(6 * 9 * 9);
  Random random(1, Purpose::kTest);
  for (float& value : image) value = random.uniform(-1, 1);
  const std::vector<float> expected = run_reference(read, image.data());
  const auto model = std::make_shared<const Model>(read);
  std::vector<float> got(5);
  Session(model, {}).run(image.data(), 1, got.data());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-4f);
}

// There are no kernels for weights of bytes: neither executor takes them for floats.
TEST(Model, WeightsOfATypeWithoutKernelsAreRefusedWithTheLayersName) {
  TapNet net = random_tap_net(parse_network("onetap-net 1\nx = input 2x4x4\nc = conv x out=2\ng = gap c\n"), 1);
  net.layers["c"].weight = Tensor::of<int8_t>({1, 2, 3, 4}, {2, 2, 1, 1});
  const std::vector<float> image(32, 1.0f);
  testing::expect_error(ErrorKind::kData, "got I8 (c)", [&] { Model{net}; });
  testing::expect_error(ErrorKind::kData, "got I8 (c)", [&] { run_reference(net, image.data()); });
}

}  // namespace
}  // namespace onetap
