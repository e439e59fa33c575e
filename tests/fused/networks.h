// Small networks for the tests of this module, and what compares them.
#pragma once

#include "onetap/graph/method.h"
#include "onetap/graph/sal.h"
#include "onetap/nn/graph_module.h"
#include "onetap/recipe/recipe.h"
#include "tests/support/support.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>

namespace onetap::testing {

inline Graph small_network(const std::string& arch, int64_t width, std::optional<Method> method, int64_t image = 8) {
  Recipe recipe;
  recipe.arch = arch;
  recipe.width = width;
  recipe.method = "conv";
  Graph graph = recipe_network(recipe, 5, image);
  if (method) apply_method(graph, *method, "");
  return graph;
}

// The largest difference of a tensor's values, in units of its largest one.
inline double relative(const torch::Tensor& a, const torch::Tensor& b) {
  const double scale = std::max(1e-3, b.abs().max().item<double>());
  return (a - b).abs().max().item<double>() / scale;
}

inline torch::Tensor as_activations(const torch::Tensor& images, int64_t channels) {
  return torch::constant_pad_nd(images, {0, 0, 0, 0, 0, channels - images.size(1)}, 0)
      .contiguous(torch::MemoryFormat::ChannelsLast);
}

// How near the ReLUs come to their corner in each forward pass. A value within rounding of it may fall on either side,
// and then a step differs by that value's whole gradient, however right it is.
inline void watch_corners(nn::GraphModule& module, double& nearest) {
  std::set<std::string> before_relus;
  for (const Node& node : module->graph().nodes()) {
    if (node.op == Op::kRelu) before_relus.insert(node.inputs[0]);
  }
  module->set_observer([before_relus, &nearest](const Node& node, const torch::Tensor& value) {
    if (node.op == Op::kInput) nearest = std::numeric_limits<double>::infinity();
    if (before_relus.count(node.name) > 0) nearest = std::min(nearest, value.detach().abs().min().item<double>());
  });
}

}  // namespace onetap::testing
