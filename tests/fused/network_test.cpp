// The fused step against LibTorch's autograd, step by step.
#include "onetap/fused/network.h"

#include "onetap/graph/text.h"
#include "onetap/train/parameter_rules.h"
#include "tests/fused/same_steps.h"
#include "tests/support/keep_centre.h"

namespace onetap::fused {
namespace {

struct Case {
  std::string name;
  std::string arch = "resnet8";
  int64_t width = 5;
  std::optional<Method> method;
  bool pad = false;
  bool nesterov = false;
  torch::Device device = torch::kCPU;
  bool rules = false;          // norms without decay, shifts with a rate of their own
  const char* text = nullptr;  // a network in place of arch and width
};

// Depthwise convolutions of both windows, a shortcut without weights, sums and ReLUs that stand alone.
constexpr const char* kDepthwise = R"(onetap-net 1
network depthwise
x = input 3x8x8
c1 = conv x out=6 kernel=3 pad=1
b1 = bn c1
r1 = relu b1
d1 = conv r1 out=6 kernel=3 pad=1 groups=6
b2 = bn d1
a1 = add b2 r1
r2 = relu a1
d2 = conv r2 out=6 kernel=5 pad=2 stride=2 groups=6
c2 = conv d2 out=9 kernel=1
s1 = subsample r2 out=9 stride=2
a2 = add c2 s1
r3 = relu a2
b3 = bn r3
p = gap b3
f = linear p out=5
output f
)";

// The linear layer has a method too.
constexpr const char* kBinary = R"(onetap-net 1
network binary
x = input 3x6x6
c1 = conv x out=6 kernel=3 pad=1
b1 = bn c1
r1 = relu b1
c2 = conv r1 out=8 kernel=3 pad=1 stride=2 method=bwn scale=filter
b2 = bn c2
r2 = relu b2
c3 = conv r2 out=8 kernel=3 pad=1 method=bc
b3 = bn c3
r3 = relu b3
p = gap r3
f = linear p out=5 method=bwn scale=layer
output f
)";

class FusedNetwork : public ::testing::TestWithParam<Case> {};

TEST_P(FusedNetwork, StepsAsAutogradDoes) {
  const Case& c = GetParam();
  if (c.device.is_cuda() && (!torch::cuda::is_available() || cuda_ops() == nullptr)) GTEST_SKIP() << "skipped: no GPU";
  const Graph graph = c.text != nullptr ? parse_network(c.text) : testing::small_network(c.arch, c.width, c.method);
  Recipe recipe;
  recipe.decay_norms = false;
  recipe.shift_lr = 0.1;
  const nn::ParameterRules rules = c.rules ? parameter_rules(graph, recipe) : nn::ParameterRules();
  const auto make = [&](const nn::GraphModule& module, const nn::NamedTensors& momenta) {
    constexpr int64_t kSomeLayers = 500;  // weights: several times in every network here
    const NetworkOptions options{torch::kFloat32, c.pad, kSomeLayers, Sgd(*module, {}, rules).rules()};
    return std::make_unique<Network>(module, momenta, options, testing::ops_of(c.device));
  };
  testing::expect_same_steps(graph, c.device, c.nesterov, make, rules);
}

std::vector<Case> cases() {
  const Method sal = sal_method(), faded = Method(testing::keep_centre()).set("fade", 0.5);
  const Method blocks = sal_method(1, {4, 4}), all_outputs = sal_method(1, BlockShare::kAllOutputs);
  const auto with = [](Method method, const char* relax) { return method.set("relax", relax); };
  std::vector<Case> all = {
      {"dense", "resnet8", 5, std::nullopt, false, false},
      {"sal", "resnet8", 5, sal, false, false},
      {"sal_padded", "resnet8", 5, sal, true, false},
      {"sal_share2_nesterov", "resnet8", 6, sal_method(1, 2), true, true},
      {"sal_taps2", "resnet8", 5, sal_method(2), false, false},
      {"sal_taps3_share4_nesterov", "resnet8", 6, sal_method(3, 4), true, true},
      {"sal_share4x4", "resnet8", 8, sal_method(1, {4, 4}), true, false},
      {"sal_share4x3_uneven", "resnet8", 5, sal_method(1, {4, 3}), true, true},
      {"sal_share_all", "resnet8", 10, sal_method(1, BlockShare::kAllOutputs), true, false},
      {"sal_share_allx4", "resnet8", 6, sal_method(1, {BlockShare::kAllOutputs, 4}), true, true},
      {"sal_share_all_softmax", "resnet8", 10, with(all_outputs, "softmax"), true, false},
      {"sal_share4x4_straight_through", "resnet8", 6, with(blocks, "straight-through"), true, false},
      {"sal_taps2_straight_through", "resnet8", 5, with(sal_method(2), "straight-through"), true, false},
      {"no_kernels", "resnet8", 5, faded, true, true},
      {"deep", "resnet20", 4, sal, true, false},
      {"depthwise", "", 0, std::nullopt, false, false, torch::kCPU, true, kDepthwise},
      {"depthwise_padded", "", 0, std::nullopt, true, true, torch::kCPU, false, kDepthwise},
      {"binary", "", 0, std::nullopt, false, false, torch::kCPU, false, kBinary},
      {"binary_padded", "", 0, std::nullopt, true, true, torch::kCPU, false, kBinary},
      {"shift", "shiftresnet8", 5, std::nullopt, false, false},
      {"shift_padded", "shiftresnet8", 6, std::nullopt, true, true},
      {"active_shift", "asresnet8", 3, std::nullopt, false, false, torch::kCPU, true},
      {"active_shift_padded", "asresnet8", 3, std::nullopt, true, true, torch::kCPU, true}};
  const size_t count = all.size();
  for (size_t i = 0; i < count; ++i) {
    Case c = all[i];
    c.name += "_cuda";
    c.device = torch::kCUDA;
    c.pad = true;
    all.push_back(c);
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, FusedNetwork, ::testing::ValuesIn(cases()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace onetap::fused
