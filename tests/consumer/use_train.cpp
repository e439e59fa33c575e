#include <iostream>
#include <onetap/freeze/freeze.h>
#include <onetap/graph/zoo/zoo.h>
#include <onetap/nn/shift_attention_conv.h>
#include <onetap/recipe/recipe.h>
#include <onetap/runtime/reference.h>
#include <onetap/train/resolve.h>

int main() {
  onetap::nn::ShiftAttentionConv2d layer(onetap::nn::ShiftAttentionConvOptions<2>(3, 8, 3).share(4));
  const auto y = layer->forward(torch::randn({1, 3, 8, 8}));
  onetap::check_recipe(onetap::Recipe{});

  onetap::NetSpec spec;
  spec.arch = "resnet8";
  spec.width = 4;
  const onetap::nn::GraphModule module(onetap::build_network(spec));
  const auto x = torch::randn({3, 32, 32});
  const auto outputs = onetap::run_reference(onetap::freeze(module), x.data_ptr<float>());
  std::cout << y.sizes() << ' ' << outputs.size() << ' ' << onetap::parse_device("cpu") << '\n';
  return y.size(1) == 8 && outputs.size() == 10 ? 0 : 1;
}
