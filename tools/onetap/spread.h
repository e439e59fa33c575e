// Mean and deviation of some values.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace onetap::tool {

struct Spread {
  std::optional<double> mean;
  std::optional<double> sd;  // of the sample (n - 1); none of a single value
};

Spread spread(const std::vector<double>& values);

// Of accuracies in percent: "94.03 %", "94.03 ± 0.12 %", or "".
std::string accuracy_text(const Spread& percent);

}  // namespace onetap::tool
