// Shift Attention Layers in a LibTorch program of your own.
//
// Learns to tell the direction of noisy stripes with two layers that start as 3x3 convolutions and end, as the
// temperature falls, with one tap per kernel slice. Expected output: soft and hard accuracy both above 0.9.
#include "onetap/nn/shift_attention_conv.h"

#include <cmath>
#include <iostream>

using onetap::nn::AttentionMode;
using onetap::nn::ShiftAttentionConv2d;
using SalOptions = onetap::nn::ShiftAttentionConvOptions<2>;

// Stripes across, along, rising and falling; the label is the direction.
std::pair<torch::Tensor, torch::Tensor> stripes(int64_t count) {
  const auto labels = torch::randint(4, {count});
  const auto row = torch::arange(12).view({1, 12, 1}), column = torch::arange(12).view({1, 1, 12});
  const auto steps = torch::tensor({{1, 0}, {0, 1}, {1, 1}, {1, -1}}).index({labels});
  const auto phase = torch::rand({count, 1, 1}) * 6.28;
  const auto wave = (row * steps.select(1, 0).view({-1, 1, 1}) + column * steps.select(1, 1).view({-1, 1, 1})) * 1.6;
  return {(wave + phase).sin().unsqueeze(1) + 0.7 * torch::randn({count, 1, 12, 12}), labels};
}

int main() {
  torch::manual_seed(0);
  ShiftAttentionConv2d first(SalOptions(1, 16, 3)), second(SalOptions(16, 16, 3).stride(2).share(4));
  torch::nn::Sequential net(first, torch::nn::BatchNorm2d(16), torch::nn::ReLU(), second, torch::nn::BatchNorm2d(16),
                            torch::nn::ReLU(), torch::nn::AdaptiveAvgPool2d(1), torch::nn::Flatten(),
                            torch::nn::Linear(16, 4));
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9).weight_decay(5e-4));

  const int steps = 400;
  const double t0 = 6.7, t1 = 0.02;
  for (int step = 0; step < steps; ++step) {
    const double temperature = t0 * std::pow(t1 / t0, static_cast<double>(step) / steps);
    for (auto layer : {first, second}) layer->set_temperature(temperature);
    const auto [images, labels] = stripes(64);
    optimizer.zero_grad();
    torch::nn::functional::cross_entropy(net->forward(images), labels).backward();
    optimizer.step();
  }

  net->eval();
  const auto [images, labels] = stripes(1000);
  const auto accuracy = [&, x = images, y = labels] {
    return net->forward(x).argmax(1).eq(y).to(torch::kFloat32).mean().item<double>();
  };
  const double soft = accuracy();
  for (auto layer : {first, second}) layer->set_mode(AttentionMode::kHard);
  const double hard = accuracy();
  std::cout << "soft accuracy " << soft << ", hard accuracy " << hard << " with one tap per kernel slice\n";
  return soft > 0.9 && hard > 0.9 ? 0 : 1;
}
