// Mean and deviation of some values.
#pragma once

#include <optional>
#include <vector>

namespace onetap::tool {

struct Spread {
  std::optional<double> mean;
  std::optional<double> sd;  // of the sample (n - 1); none of a single value
};

Spread spread(const std::vector<double>& values);

}  // namespace onetap::tool
