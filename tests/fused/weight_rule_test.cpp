// Weights of a step by the layer's method: autograd over the layer against the kernels' arithmetic, and in a CUDA
// graph.
#include "onetap/fused/weight_rule.h"

#include "onetap/fused/capture.h"
#include "onetap/nn/graph_module.h"
#include "onetap/train/sgd.h"
#include "tests/fused/networks.h"

#include <fmt/format.h>

namespace onetap::fused {
namespace {

// All convolutions of a module, by the rules of their methods.
struct Weights {
  Weights(const Method& method, torch::Device device)
      : ops(device.is_cuda() ? cuda_ops() : reference_ops()), rules(ops) {
    torch::manual_seed(8);
    module = nn::GraphModule(testing::small_network("resnet8", 4, method));
    module->to(device);
    momenta = Sgd(*module, {}).state();
    const auto find = [](const nn::NamedTensors& all, const std::string& name) {
      for (const auto& [key, tensor] : all) {
        if (key == name) return tensor.detach();
      }
      throw std::out_of_range(name);
    };
    const auto state = nn::state_of(*module);
    for (const auto& trained : module->trained_layers()) {
      ConvState conv;
      conv.layer = trained.layer;
      conv.weight = find(state, trained.name + ".weight");
      conv.weight_momentum = find(momenta, trained.name + ".weight");
      rules.choose(
          conv, module->graph().node(trained.name), [&](const std::string& name) { return find(state, name); },
          [&](const std::string& name) { return find(momenta, name); });
      conv.packed = torch::zeros_like(conv.weight).contiguous(torch::MemoryFormat::ChannelsLast);
      conv.grad = torch::randn_like(conv.packed, conv.packed.options(), torch::MemoryFormat::ChannelsLast);
      convs.push_back(std::move(conv));
    }
    values.rates = torch::tensor({0.05, 0.8}, torch::kFloat32).to(device);
  }

  void step() {
    rules.pack(convs, values);
    rules.update(convs, values, {0.9, false, 1e-3});
  }

  std::shared_ptr<Ops> ops;
  WeightRules rules;
  nn::GraphModule module{nullptr};
  nn::NamedTensors momenta;
  std::vector<ConvState> convs;
  StepValues values;
};

TEST(WeightRules, StepAsSgdOnTheLayersGradientsDoes) {
  const Method methods[] = {sal_method(1, 2),
                            sal_method(2, 2),
                            sal_method(1, {4, 3}),
                            sal_method(2, {3, 2}),
                            sal_method(1, BlockShare::kAllOutputs),
                            sal_method(1, {3, 2}).set("relax", "straight-through"),
                            sal_method(2, 3).set("relax", "straight-through")};
  for (const Method& method : methods) {
    SCOPED_TRACE(fmt::format("taps {} share {} relax {}", method.number("taps"), share_text(method.blocks("share")),
                             method.word("relax")));
    Weights weights(method, torch::kCPU);
    const auto& layer = weights.convs.front().layer;
    weights.rules.pack(weights.convs, weights.values);
    layer->set_temperature(weights.values.rates[1].item<double>());
    const auto effective = layer->effective_weight();
    EXPECT_TRUE(torch::allclose(weights.convs.front().packed, effective.detach(), 1e-5, 1e-7));
    effective.backward(weights.convs.front().grad);
    std::vector<torch::Tensor> expected;  // with momenta of zero, a step is the rate times gradient and decay
    for (const auto& parameter : layer->parameters()) {
      expected.push_back(parameter.detach() - 0.05 * (parameter.grad() + 1e-3 * parameter.detach()));
    }
    weights.rules.update(weights.convs, weights.values, {0.9, false, 1e-3});
    const auto parameters = layer->parameters();
    for (size_t i = 0; i < parameters.size(); ++i) {
      EXPECT_TRUE(torch::allclose(parameters[i].detach(), expected[i], 1e-4, 1e-6)) << "parameter " << i;
    }
  }
}

TEST(WeightRules, WhatHasNoKernelsCanBeCaptured) {
  if (!torch::cuda::is_available() || cuda_ops() == nullptr) GTEST_SKIP() << "skipped: no GPU";
  Weights once(sal_method(2, 2), torch::kCUDA), replayed(sal_method(2, 2), torch::kCUDA);
  std::vector<torch::Tensor> before;
  nn::NamedTensors all = nn::state_of(*replayed.module);
  all.insert(all.end(), replayed.momenta.begin(), replayed.momenta.end());
  for (const auto& [name, tensor] : all) before.push_back(tensor.detach().clone());
  const auto replay = capture_graph({[] {}, [&] { replayed.step(); }});
  {
    const torch::NoGradGuard no_grad;  // as before the steps that capturing took
    for (size_t i = 0; i < all.size(); ++i) all[i].second.detach().copy_(before[i]);
  }
  for (const double temperature : {0.8, 0.4}) {  // read when the graph runs, not when it was captured
    once.values.rates.copy_(torch::tensor({0.05, temperature}, torch::kFloat32));
    replayed.values.rates.copy_(once.values.rates);
    once.step();
    replay();
  }
  torch::cuda::synchronize();
  const auto expected = nn::state_of(*once.module), got = nn::state_of(*replayed.module);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(torch::allclose(got[i].second.to(torch::kFloat64), expected[i].second.to(torch::kFloat64), 1e-5, 1e-7))
        << expected[i].first;
  }
}

}  // namespace
}  // namespace onetap::fused
