// From scores of channels to the channels that stay.
#pragma once

#include "onetap/graph/channels.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace onetap {

// How much each output channel of a conv is worth: the lowest go first.
struct LayerScores {
  std::string name;
  std::vector<double> channels;
};

// The share of its channels that a layer loses, by name.
using LayerRatios = std::map<std::string, double>;

// What is left of so many channels: int(channels * (1 - ratio)), and never none.
int64_t kept_count(int64_t channels, double ratio);

// Every layer loses its own share; where scores are equal, the later channel goes. kUsage for a layer without scores,
// kFailure for scores that are not finite.
ChannelPlan keep_best_of_each(const std::vector<LayerScores>& scores, const LayerRatios& ratios);

// All channels are ranked together, and the lowest share of them goes; the best channel of each layer stays.
ChannelPlan keep_best_of_all(const std::vector<LayerScores>& scores, double ratio);

// The shares of a published network: "pruned-a" and "pruned-b" of Li et al. for ResNet-56. kUsage for other names, and
// for other networks.
LayerRatios preset_ratios(const Graph& graph, std::string_view preset);
std::vector<std::string> preset_names();

}  // namespace onetap
