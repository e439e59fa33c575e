#include "onetap/reproduce/pace.h"

#include "onetap/base/error.h"
#include "onetap/graph/graph.h"
#include "onetap/journal/metrics.h"

#include <algorithm>

namespace onetap {
namespace {

// A line through the measured steps of ResNet-20 in bf16 with fused steps, 128 images each: 1.33 ms at width 16
// (41 M multiplications for an image), 3.60 ms at width 83 (1089 M). 22 convolutions and linear layers.
constexpr double kSecondsPerLayer = 1.24e-3 / 22;
constexpr double kSecondsPerMac = (3.60e-3 - 1.33e-3) / (1089e6 - 41e6) / 128;
// By autograd in one captured graph: 8.4 ms where fused steps took 3.6.
constexpr double kAutograd = 2.3;

std::optional<double> measured(const RunPlace& run) {
  try {
    const auto lines = read_metrics(run.files().metrics());
    if (lines.empty() || lines.back().step < 1 || !(lines.back().wall_s > 0)) return std::nullopt;
    return lines.back().wall_s / static_cast<double>(lines.back().step);
  } catch (const Error&) {
    return std::nullopt;  // not begun, or damaged: it is a guess that is lost
  }
}

double modelled(const RunSpec& spec) {
  const RunSpec& built = spec.takes == RunSpec::Takes::kChannels ? *spec.source : spec;
  const Recipe recipe = experiment_recipe(built, 1);
  const Graph graph = recipe_network(recipe, experiment_data(built.data).classes, recipe.image_size.value_or(0));
  const auto layers = std::count_if(graph.nodes().begin(), graph.nodes().end(),
                                    [](const Node& node) { return node.op == Op::kConv || node.op == Op::kLinear; });
  const double macs = count_network(graph, CountRules::kPlain).macs;
  const auto batch = static_cast<double>(experiment_recipe(spec, 1).batch_size);
  // Linear layers of binary weights, convolutions with biases and layers with empty slices have no fused steps.
  const std::string_view density = spec.setting("density");
  const bool fused = recipe.method != "bc" && recipe.method != "bwn" && recipe.arch != "squeezenet" &&
                     (density.empty() || density == "1");
  // A teacher has the forward pass alone: about a third of a step.
  const double teacher = spec.teacher != nullptr ? modelled(*spec.teacher) / 3 : 0;
  return teacher +
         (kSecondsPerLayer * static_cast<double>(layers) + kSecondsPerMac * macs * batch) * (fused ? 1 : kAutograd);
}

}  // namespace

std::optional<RunPace> expected_pace(const Job& job, const std::filesystem::path& out, bool on_cpu) {
  const auto runs = find_runs(out, run_stem(*job.spec));
  for (auto run = runs.rbegin(); run != runs.rend(); ++run) {  // the longest first
    if (const auto seconds = measured(*run)) return RunPace{*seconds, run->name};
  }
  if (on_cpu) return std::nullopt;
  return RunPace{modelled(*job.spec), RunPace::kModel};
}

}  // namespace onetap
