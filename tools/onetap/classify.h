// A frozen network that says what is on an image.
#pragma once

#include "onetap/data/transform.h"
#include "onetap/runtime/session.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace onetap::tool {

constexpr uint64_t kMaxImageFile = uint64_t{1} << 30;

// The square view that a classifier was trained on; kUsage, naming `verb`, if the network is or takes something else.
View network_view(const Graph& graph, const PixelScale& pixels, const char* verb);

struct Guess {
  size_t index = 0;
  std::string name;  // of the class, or its number
  double probability = 0;
};

// The `top` most probable classes, best first.
std::vector<Guess> best_guesses(const Model& model, const std::vector<float>& outputs, size_t top);

}  // namespace onetap::tool
