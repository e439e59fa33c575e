#include "onetap/prune/select.h"

#include "onetap/base/fail.h"
#include "onetap/base/text.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace onetap {
namespace {

// A preset of Li et al. for ResNet-56, whose convolutions they number from 1 (the first one of all) to 55: the first
// one of every block is even.
struct Preset {
  const char* name;
  double stages[3];  // share of the filters that go
  std::set<int> whole;
};

const std::vector<Preset>& presets() {
  static const std::vector<Preset> table = {{"pruned-a", {0.1, 0.1, 0.1}, {16, 20, 38, 54}},
                                            {"pruned-b", {0.6, 0.3, 0.1}, {16, 18, 20, 34, 38, 54}}};
  return table;
}

constexpr int kBlocks = 9;  // in each of the three stages

void check_finite(const LayerScores& layer) {
  const auto bad =
      std::find_if(layer.channels.begin(), layer.channels.end(), [](double score) { return !std::isfinite(score); });
  if (bad == layer.channels.end()) return;
  fail("[prune] expected finite scores, got {} for channel {} of {}", *bad, bad - layer.channels.begin(), layer.name);
}

// Places of the scores, best first.
std::vector<size_t> best_first(const std::vector<double>& scores) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  return order;
}

}  // namespace

int64_t kept_count(int64_t channels, double ratio) {
  // 1 - 0.9 is a little less than 0.1 in floating point: 10 channels must keep 1, not 0.
  constexpr double kRounding = 1e-9;
  const auto kept = static_cast<int64_t>(static_cast<double>(channels) * (1 - ratio) + kRounding);
  return std::clamp<int64_t>(kept, 1, channels);
}

ChannelPlan keep_best_of_each(const std::vector<LayerScores>& scores, const LayerRatios& ratios) {
  ChannelPlan plan;
  for (const auto& [named, ratio] : ratios) {
    const std::string& name = named;  // clang has no structured bindings in lambdas
    const auto layer =
        std::find_if(scores.begin(), scores.end(), [&](const LayerScores& one) { return one.name == name; });
    if (layer == scores.end()) fail_usage("[prune] expected scores of '{}', got none", name);
    check_finite(*layer);
    const std::vector<size_t> order = best_first(layer->channels);
    const int64_t count = kept_count(static_cast<int64_t>(order.size()), ratio);
    std::vector<int64_t> kept(order.begin(), order.begin() + count);
    std::sort(kept.begin(), kept.end());
    plan[name] = std::move(kept);
  }
  return plan;
}

ChannelPlan keep_best_of_all(const std::vector<LayerScores>& scores, double ratio) {
  std::vector<double> all;
  std::vector<std::pair<size_t, int64_t>> places;  // layer and channel
  std::set<size_t> best;                           // of each layer: these stay
  for (size_t i = 0; i < scores.size(); ++i) {
    check_finite(scores[i]);
    if (!scores[i].channels.empty()) best.insert(all.size() + best_first(scores[i].channels).front());
    for (size_t c = 0; c < scores[i].channels.size(); ++c) places.emplace_back(i, static_cast<int64_t>(c));
    all.insert(all.end(), scores[i].channels.begin(), scores[i].channels.end());
  }
  const std::vector<size_t> order = best_first(all);
  int64_t to_go = static_cast<int64_t>(all.size()) - kept_count(static_cast<int64_t>(all.size()), ratio);
  std::vector<bool> goes(all.size(), false);
  for (auto place = order.rbegin(); place != order.rend() && to_go > 0; ++place) {
    if (best.count(*place) != 0) continue;
    goes[*place] = true;
    --to_go;
  }
  ChannelPlan plan;
  for (size_t i = 0; i < all.size(); ++i) {
    if (!goes[i]) plan[scores[places[i].first].name].push_back(places[i].second);
  }
  return plan;
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const Preset& preset : presets()) names.emplace_back(preset.name);
  return names;
}

LayerRatios preset_ratios(const Graph& graph, std::string_view name) {
  const auto preset =
      std::find_if(presets().begin(), presets().end(), [&](const Preset& one) { return one.name == name; });
  if (preset == presets().end()) {
    fail_usage("[prune] expected preset {}, got '{}'", join(preset_names(), " or "), name);
  }
  std::vector<std::string> expected;
  LayerRatios ratios;
  for (int stage = 0; stage < 3; ++stage) {
    for (int block = 0; block < kBlocks; ++block) {
      expected.push_back(fmt::format("layer{}.{}.conv1", stage + 1, block));
      const int id = 2 + 2 * (stage * kBlocks + block);
      if (preset->whole.count(id) == 0) ratios[expected.back()] = preset->stages[stage];
    }
  }
  if (cuttable_convs(graph) != expected) {
    fail_usage("[prune] preset {} is for resnet56, got {}: use --ratio", name, graph.name());
  }
  return ratios;
}

}  // namespace onetap
