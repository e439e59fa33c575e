#include "tools/onetap/frontier_points.h"
#include "tools/onetap/spread.h"

#include <algorithm>

namespace onetap::tool {
namespace {

std::optional<double> mean_of(const std::vector<const FrontierPoint*>& runs,
                              std::optional<double> FrontierPoint::*measure) {
  std::vector<double> values;
  for (const FrontierPoint* run : runs) {
    if (const auto& value = run->*measure) values.push_back(*value);
  }
  return spread(values).mean;
}

}  // namespace

std::vector<FrontierPoint> mean_over_seeds(const std::vector<FrontierPoint>& points) {
  std::vector<std::vector<const FrontierPoint*>> groups;
  for (const FrontierPoint& point : points) {
    const auto is_alike = [&](const auto& group) {
      const FrontierPoint& other = *group.front();
      return !point.setting.empty() && other.setting == point.setting && other.data == point.data &&
             other.kind_name() == point.kind_name();
    };
    const auto group = std::find_if(groups.begin(), groups.end(), is_alike);
    if (group == groups.end()) {
      groups.push_back({&point});
    } else {
      group->push_back(&point);
    }
  }
  std::vector<FrontierPoint> means;
  for (const auto& runs : groups) {
    FrontierPoint mean = *runs.front();
    std::vector<double> accuracies, p10, median, p90;
    for (const FrontierPoint* run : runs) {
      accuracies.push_back(run->accuracy);
      p10.push_back(run->milliseconds.p10);
      median.push_back(run->milliseconds.median);
      p90.push_back(run->milliseconds.p90);
    }
    mean.seeds = runs.size();
    mean.accuracy = *spread(accuracies).mean;
    mean.accuracy_sd = spread(accuracies).sd;
    mean.milliseconds = {*spread(p10).mean, *spread(median).mean, *spread(p90).mean};
    for (const auto measure :
         {&FrontierPoint::bytes, &FrontierPoint::macs, &FrontierPoint::weights, &FrontierPoint::memory})
      mean.*measure = mean_of(runs, measure);
    means.push_back(std::move(mean));
  }
  return means;
}

}  // namespace onetap::tool
