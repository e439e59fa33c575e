#include "tools/onetap/classify.h"

#include "onetap/base/fail.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace onetap::tool {

View network_view(const Graph& graph, const PixelScale& pixels, const char* verb) {
  const Shape& image = graph.input().shape;
  const Shape& output = graph.node(graph.output()).shape;
  if (image.size() != 3 || image[0] != 3 || image[1] != image[2]) {
    fail_usage("[{}] expected a network for square colour images 3xSxS, got input {}", verb, shape_text(image));
  }
  if (output.size() != 1) {
    fail_usage("[{}] expected a classifier, got output {}", verb, shape_text(output));
  }
  View view;
  view.size = image[1];
  view.normalisation = {pixels.mean, pixels.sd};
  return view;
}

std::vector<Guess> best_guesses(const Model& model, const std::vector<float>& outputs, size_t top) {
  if (!std::all_of(outputs.begin(), outputs.end(), [](float output) { return std::isfinite(output); })) {
    fail("[run] expected finite outputs of {}, got nan or inf", model.graph().name());
  }
  std::vector<size_t> order(outputs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const size_t kept = std::min(top, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(),
                    [&](size_t a, size_t b) { return outputs[a] != outputs[b] ? outputs[a] > outputs[b] : a < b; });
  const double most = *std::max_element(outputs.begin(), outputs.end());
  double sum = 0;
  for (const float output : outputs) sum += std::exp(output - most);
  std::vector<Guess> guesses;
  for (size_t i = 0; i < kept; ++i) {
    const size_t index = order[i];
    guesses.push_back({index, index < model.classes().size() ? model.classes()[index] : std::to_string(index),
                       std::exp(outputs[index] - most) / sum});
  }
  return guesses;
}

}  // namespace onetap::tool
