// Writes inputs, parameters, outputs and gradients of Shift Attention Layers for peer_test.py to check with PyTorch.
//   dump_layer OUT.safetensors SEED
#include "onetap/nn/shift_attention_conv.h"
#include "onetap/nn/tensor_file.h"

#include <cstdlib>

using namespace onetap::nn;

namespace {

struct Case {
  const char* name;
  int64_t in, out, stride, share, taps;
  double temperature;
  int64_t share_inputs = 1;
  bool straight_through = false;
};

void dump(const Case& c, NamedTensors& all) {
  auto options = ShiftAttentionConvOptions<2>(c.in, c.out, 3).stride(c.stride).share(c.share).taps(c.taps);
  if (c.straight_through) options.relax(onetap::Relax::kStraightThrough);
  ShiftAttentionConv2d layer(options.share_inputs(c.share_inputs));
  layer->set_temperature(c.temperature);
  auto x = torch::randn({4, c.in, 12, 11}).requires_grad_(true);
  const auto y = layer->forward(x);
  const auto probe = torch::randn_like(y);
  (y * probe).sum().backward();
  layer->set_mode(AttentionMode::kHard);
  const auto hard = layer->forward(x);
  const std::pair<const char*, torch::Tensor> tensors[] = {
      {"x", x},
      {"weight", layer->weight},
      {"attention", layer->attention},
      {"probe", probe},
      {"y", y},
      {"hard", hard},
      {"grad_x", x.grad()},
      {"grad_weight", layer->weight.grad()},
      {"grad_attention", layer->attention.grad()},
      {"settings",
       torch::tensor({static_cast<double>(c.stride), static_cast<double>(c.share), static_cast<double>(c.taps),
                      c.temperature, static_cast<double>(c.share_inputs), c.straight_through ? 1.0 : 0.0},
                     torch::kFloat64)}};
  for (const auto& [name, tensor] : tensors) all.emplace_back(std::string(c.name) + "/" + name, tensor);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  torch::manual_seed(static_cast<uint64_t>(std::atoll(argv[2])));
  NamedTensors all;
  dump({"plain", 7, 10, 1, 1, 1, 6.7}, all);
  dump({"cold", 7, 10, 1, 1, 1, 0.1}, all);
  dump({"stride", 16, 32, 2, 1, 1, 1.0}, all);
  dump({"share", 16, 32, 1, 4, 1, 0.5}, all);
  dump({"odd-share", 5, 7, 2, 4, 1, 0.5}, all);
  dump({"two-taps", 8, 8, 1, 1, 2, 0.7}, all);
  dump({"blocks", 16, 32, 1, 4, 1, 0.5, 4}, all);
  dump({"odd-blocks", 5, 7, 2, 4, 2, 0.5, 3}, all);
  dump({"through", 8, 10, 1, 10, 1, 0.7, 1, true}, all);
  dump({"odd-through", 9, 10, 2, 4, 2, 0.7, 4, true}, all);
  write_tensors(argv[1], all);
  return 0;
}
