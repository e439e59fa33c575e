// The published points of the paper's figure of accuracy against memory (CIFAR-10).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace onetap {

struct PaperPoint {
  std::string curve;             // as the figure's legend names it
  std::optional<int64_t> width;  // channels of the first stage; none where the architecture has no such setting
  double params = 0;             // 32-bit words of the finished network
  double activations = 0;        // 32-bit words for one image
  double accuracy = 0;           // of the test set, in percent

  double memory() const { return params + activations; }
};

// In the order of the figure's legend, and inside a curve in the order the paper lists them.
const std::vector<PaperPoint>& paper_points();

}  // namespace onetap
