#include <iostream>
#include <onetap/nn/shift_attention_conv.h>
#include <onetap/recipe/recipe.h>
#include <onetap/train/resolve.h>

int main() {
  onetap::nn::ShiftAttentionConv2d layer(onetap::nn::ShiftAttentionConvOptions<2>(3, 8, 3).share(4));
  const auto y = layer->forward(torch::randn({1, 3, 8, 8}));
  onetap::check_recipe(onetap::Recipe{});
  std::cout << y.sizes() << ' ' << onetap::available_cpus() << '\n';
  return y.size(1) == 8 ? 0 : 1;
}
