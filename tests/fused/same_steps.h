// Steps of a StepNetwork against LibTorch's autograd and Sgd, step by step.
#pragma once

#include "onetap/fused/step_network.h"
#include "onetap/train/sgd.h"
#include "tests/fused/networks.h"

#include <cmath>
#include <functional>
#include <memory>

namespace onetap::testing {

using MakeNetwork =
    std::function<std::unique_ptr<fused::StepNetwork>(const nn::GraphModule& module, const nn::NamedTensors& momenta)>;

inline std::shared_ptr<fused::Ops> ops_of(torch::Device device) {
  return device.is_cuda() ? fused::cuda_ops() : fused::reference_ops();
}

// And the next step starts from the same place: rounding would add up.
inline void compare_and_copy(const nn::NamedTensors& expected, const nn::NamedTensors& got, double tolerance,
                             int step) {
  const torch::NoGradGuard no_grad;
  for (size_t i = 0; i < expected.size(); ++i) {
    torch::Tensor tensor = got[i].second.detach();
    EXPECT_LT(relative(tensor.to(torch::kFloat64), expected[i].second.detach().to(torch::kFloat64)), tolerance)
        << expected[i].first << ", step " << step;
    tensor.copy_(expected[i].second);
  }
}

// In 32 bits, four steps that keep every ReLU off its corner, and a test in hard mode.
inline void expect_same_steps(const Graph& graph, torch::Device device, bool nesterov, const MakeNetwork& make,
                              const nn::ParameterRules& rules = {}) {
  set_gpu_arithmetic(/*tf32=*/false, /*conv_trials=*/10);
  torch::manual_seed(3);
  nn::GraphModule plain(graph), stepped(graph);
  nn::load_tensors(SafetensorsFile::parse(nn::tensor_bytes(nn::state_of(*plain)), "test"), nn::state_of(*stepped),
                   "test");
  plain->to(device);
  stepped->to(device);
  const SgdOptions sgd_options{0.9, nesterov, 1e-3};
  Sgd plain_sgd(*plain, sgd_options, rules), stepped_sgd(*stepped, sgd_options, rules);
  const auto network = make(stepped, stepped_sgd.state());
  fused::StepValues values;
  fused::LossState loss;
  loss.sums = torch::zeros({2}, torch::TensorOptions(torch::kFloat64).device(device));
  loss.label_smoothing = 0.1;
  double expected_loss = 0;
  const double rate = 0.05;
  double nearest_corner = 0;
  watch_corners(plain, nearest_corner);
  const Shape& shape = graph.input().shape;
  const auto some_images = [&] { return torch::randn({6, shape[0], shape[1], shape[2]}).to(device); };
  int clear_steps = 0;
  for (int step = 0; clear_steps < 4; ++step) {
    ASSERT_LT(step, 200) << "every step has a value at a ReLU's corner";
    const double temperature = 3.0 / (step + 1);
    const auto images = some_images();
    const auto labels = torch::randint(0, 5, {6}, torch::kInt64).to(device);

    plain->train();
    plain->set_temperature(temperature);
    plain_sgd.zero_grad();
    const auto plain_logits = plain->forward(images);
    ASSERT_TRUE(std::isfinite(nearest_corner)) << "no ReLU seen";
    const bool clear = nearest_corner > 2e-5;
    clear_steps += clear ? 1 : 0;
    const auto plain_loss = torch::nn::functional::cross_entropy(
        plain_logits, labels, torch::nn::functional::CrossEntropyFuncOptions().label_smoothing(0.1));
    plain_loss.backward();
    plain_sgd.step(rate);
    plain->after_step();
    expected_loss += plain_loss.item<double>() * 6;

    values.rates = torch::tensor({rate, temperature}, torch::kFloat32).to(device);
    const auto padded = as_activations(images, network->input_channels());
    network->pack(values);
    const auto dlogits = ops_of(device)->loss(loss, network->forward(padded), labels, 6);
    const fused::UpdateOptions update = {0.9, nesterov, 1e-3};
    if (step % 2 == 0) {
      network->backward(dlogits, /*add=*/false);
      network->update(values, update);
    } else {
      network->backward_and_update(dlogits, /*add=*/false, values, update);
    }

    EXPECT_NEAR(loss.sums[0].item<double>(), expected_loss, 1e-4 * expected_loss);
    const double tolerance = clear ? 1e-4 : 1e-1;
    compare_and_copy(nn::state_of(*plain), nn::state_of(*stepped), tolerance, step);
    compare_and_copy(plain_sgd.state(), stepped_sgd.state(), tolerance, step);
  }

  // And in a test: running statistics, hard taps.
  const torch::NoGradGuard no_grad;
  const auto images = some_images();
  plain->eval();
  const nn::ModeGuard plain_hard(plain, nn::AttentionMode::kHard), hard(stepped, nn::AttentionMode::kHard);
  network->pack_for_inference();
  EXPECT_LT(relative(network->infer(as_activations(images, network->input_channels())), plain->forward(images)), 1e-3);
  EXPECT_TRUE(stepped->is_training()) << "a test left its mode behind";
}

}  // namespace onetap::testing
