// The fused step against LibTorch's autograd, step by step.
#include "onetap/fused/network.h"

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
};

class FusedNetwork : public ::testing::TestWithParam<Case> {};

TEST_P(FusedNetwork, StepsAsAutogradDoes) {
  const Case& c = GetParam();
  if (c.device.is_cuda() && (!torch::cuda::is_available() || cuda_ops() == nullptr)) GTEST_SKIP() << "skipped: no GPU";
  testing::expect_same_steps(testing::small_network(c.arch, c.width, c.method), c.device, c.nesterov,
                             [&](const nn::GraphModule& module, const nn::NamedTensors& momenta) {
                               constexpr int64_t kSomeLayers = 500;  // weights: several times in every network here
                               const NetworkOptions options{torch::kFloat32, c.pad, kSomeLayers};
                               return std::make_unique<Network>(module, momenta, options, testing::ops_of(c.device));
                             });
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
      {"deep", "resnet20", 4, sal, true, false}};
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
