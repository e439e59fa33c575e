#include "tools/onetap/spread.h"

#include <fmt/format.h>

#include <cmath>

namespace onetap::tool {

Spread spread(const std::vector<double>& values) {
  if (values.empty()) return {};
  const auto count = static_cast<double>(values.size());
  double sum = 0, squares = 0;
  for (const double value : values) sum += value;
  const double mean = sum / count;
  for (const double value : values) squares += (value - mean) * (value - mean);
  if (values.size() == 1) return {mean, std::nullopt};
  return {mean, std::sqrt(squares / (count - 1))};
}

std::string accuracy_text(const Spread& percent) {
  if (!percent.mean) return "";
  return percent.sd ? fmt::format("{:.2f} ± {:.2f} %", *percent.mean, *percent.sd)
                    : fmt::format("{:.2f} %", *percent.mean);
}

}  // namespace onetap::tool
