// Steps by autograd that a graph can hold against plain ones: networks that have no fused form, and methods of all
// kinds.
#include "onetap/fused/autograd_network.h"

#include "onetap/fused/plan.h"
#include "onetap/graph/text.h"
#include "onetap/train/parameter_rules.h"
#include "tests/fused/same_steps.h"
#include "tests/support/keep_centre.h"

namespace onetap::fused {
namespace {

struct AnyNetwork {
  std::string name;
  Graph graph;
  size_t kernel_convs = 0;  // counted by hand
  bool nesterov = false;
  torch::Device device = torch::kCPU;
};

// What the planner refuses, each for its own reason: groups, biases, a 7x7 kernel, a window mean, branches joined by
// channels, sums of three, a layer that nobody reads, a linear layer on pixels.
const char* const kOddNetwork = R"(onetap-net 1
x = input 3x8x8
wide = conv x out=6 kernel=7 pad=3 bias=1
r1 = relu wide
grouped = conv r1 out=8 kernel=3 pad=1 groups=2
bn1 = bn grouped
r2 = relu bn1
depthwise = conv r2 out=8 kernel=3 pad=1 groups=8
point = conv depthwise out=8 kernel=1 bias=1
bn2 = bn point
sum = add bn2 r2 bn1
r3 = relu sum
unread = conv r3 out=2 kernel=3
taps = conv r3 out=4 kernel=3 pad=1 stride=2 method=sal share=2
bn3 = bn taps
r4 = relu bn3
high = maxpool r3 kernel=2 stride=2
mean = avgpool r3 kernel=2 stride=2
all = concat r4 high mean
flat = flatten all
fc1 = linear flat out=7 bias=0
r5 = relu fc1
fc2 = linear r5 out=5
)";

Graph padded_shortcuts(const Method& method) {
  Recipe recipe;
  recipe.arch = "resnet8";
  recipe.width = 4;
  recipe.shortcut = Shortcut::kA;
  recipe.method = "conv";
  Graph graph = recipe_network(recipe, 5, 8);
  apply_method(graph, method, "");
  return graph;
}

Graph network_of(const char* method) {
  return testing::small_network("resnet8", 5, Method(*find_method(method)));
}

std::vector<AnyNetwork> any_networks() {
  // ResNet-8 has a stem, 6 convolutions in blocks and, with projections, 2 of those.
  std::vector<AnyNetwork> all = {
      {"odd", parse_network(kOddNetwork), 5, true},
      {"padded_shortcuts", padded_shortcuts(sal_method()), 7},
      {"share", padded_shortcuts(sal_method(1, 2)), 7, true},
      {"blocks", padded_shortcuts(sal_method(1, {2, 4})), 7, true},
      {"all_outputs", padded_shortcuts(sal_method(1, BlockShare::kAllOutputs)), 7},
      {"taps2", padded_shortcuts(sal_method(2, 2)), 1},
      {"own_method", padded_shortcuts(Method(testing::keep_centre()).set("fade", 0.5)), 1},
      {"random_taps", network_of("random-taps"), 3},
      {"shift", network_of("shift"), 9},
      {"active_shift", network_of("active-shift"), 9, true},
      {"binary_connect", network_of("bc"), 0},
      {"bwn", network_of("bwn"), 0},
      {"usual", testing::small_network("resnet8", 5, sal_method()), 9},
      {"dense", testing::small_network("resnet8", 5, std::nullopt), 9},
  };
  const size_t count = all.size();
  for (size_t i = 0; i < count; ++i) {
    all.push_back(all[i]);
    all.back().name += "_cuda";
    all.back().device = torch::kCUDA;
  }
  return all;
}

class AutogradSteps : public ::testing::TestWithParam<AnyNetwork> {};

TEST_P(AutogradSteps, AreThePlainOnes) {
  const AnyNetwork& c = GetParam();
  if (c.device.is_cuda() && (!torch::cuda::is_available() || cuda_ops() == nullptr)) GTEST_SKIP() << "skipped: no GPU";
  Recipe recipe;
  recipe.decay_norms = false;
  recipe.shift_lr = 0.1;
  const nn::ParameterRules rules = parameter_rules(c.graph, recipe);
  const auto make = [&](const nn::GraphModule& module, const nn::NamedTensors& momenta) {
    const AutogradOptions options{torch::kFloat32, Sgd(*module, {}, rules).rules()};
    auto network = std::make_unique<AutogradNetwork>(module, momenta, options, testing::ops_of(c.device));
    EXPECT_EQ(network->kernel_convs(), c.kernel_convs);
    return network;
  };
  testing::expect_same_steps(c.graph, c.device, c.nesterov, make, rules);
}

INSTANTIATE_TEST_SUITE_P(All, AutogradSteps, ::testing::ValuesIn(any_networks()),
                         [](const auto& tested) { return tested.param.name; });

// One step with momentum from zero: parameter - rate * (gradient + decay * parameter), each with its own rate and
// decay.
void expect_rules(torch::Device device) {
  torch::manual_seed(4);
  nn::GraphModule module(testing::small_network("resnet8", 4, sal_method()));
  set_gpu_arithmetic(/*tf32=*/false, /*conv_trials=*/10);
  module->to(device);
  const auto images = torch::randn({6, 3, 8, 8}).to(device);
  const auto labels = torch::randint(0, 5, {6}, torch::kInt64).to(device);
  module->set_temperature(0.5);
  torch::nn::functional::cross_entropy(module->forward(images), labels).backward();

  constexpr double kRate = 0.05, kDecay = 0.1;
  AutogradOptions options;
  nn::NamedTensors expected;
  for (const auto& item : module->named_parameters()) {
    const auto i = options.rules.size();
    const nn::ParameterRule rule{i % 3 == 0 ? 0.01 : 1.0, i % 2 == 0 ? 0.0 : 1.0};
    options.rules.push_back(rule);
    const auto before = item.value().detach().to(torch::kFloat64);
    const auto change = item.value().grad().to(torch::kFloat64) + kDecay * rule.decay * before;
    expected.emplace_back(item.key(), before - kRate * rule.rate * change);
  }
  const nn::NamedTensors momenta = Sgd(*module, {}).state();
  AutogradNetwork network(module, momenta, options, testing::ops_of(device));
  StepValues values{torch::tensor({kRate, 0.5}, torch::kFloat32).to(device)};
  LossState loss;
  loss.sums = torch::zeros({2}, torch::TensorOptions(torch::kFloat64).device(device));
  network.pack(values);
  const auto logits = network.forward(testing::as_activations(images, 3));
  network.backward_and_update(testing::ops_of(device)->loss(loss, logits, labels, 6), false, values,
                              {0.9, false, kDecay});
  const auto parameters = module->named_parameters();
  for (const auto& [name, value] : expected) {
    EXPECT_LT(testing::relative(parameters[name].detach().to(torch::kFloat64), value), 1e-5) << name;
  }
}

TEST(AutogradRules, ChangeRateAndDecay) {
  expect_rules(torch::kCPU);
}

TEST(AutogradRules, ChangeRateAndDecayOnAGpu) {
  if (!torch::cuda::is_available() || cuda_ops() == nullptr) GTEST_SKIP() << "skipped: no GPU";
  expect_rules(torch::kCUDA);
}

TEST(AutogradRules, AreOfEveryParameter) {
  nn::GraphModule module(testing::small_network("resnet8", 4, std::nullopt));
  AutogradOptions options;
  options.rules.resize(3);
  testing::expect_error(ErrorKind::kFailure, "expected rules of ",
                        [&] { AutogradNetwork(module, Sgd(*module, {}).state(), options, reference_ops()); });
}

// What a forward pass was given is gone after it, also where it failed.
TEST(AutogradForward, LeavesNothingInTheModule) {
  torch::manual_seed(5);
  nn::GraphModule module(testing::small_network("resnet8", 4, sal_method()));
  module->set_temperature(2);
  const auto images = testing::as_activations(torch::randn({2, 3, 8, 8}), 3);
  module->eval();
  const auto before = module->forward(images);
  const nn::NamedTensors momenta = Sgd(*module, {}).state();
  AutogradNetwork network(module, momenta, {}, reference_ops());
  network.pack({torch::tensor({0.05, 0.1}, torch::kFloat32)});
  EXPECT_FALSE(torch::equal(network.forward(images), before)) << "the temperature given is another";
  EXPECT_ANY_THROW(network.forward(torch::randn({2, 5, 8, 8})));
  EXPECT_TRUE(torch::equal(module->forward(images), before));
}

}  // namespace
}  // namespace onetap::fused
