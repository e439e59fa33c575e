#include "onetap/train/init.h"

#include "onetap/base/fail.h"
#include "onetap/base/text.h"
#include "onetap/graph/method_table.h"
#include "onetap/journal/run_files.h"
#include "onetap/nn/tensor_file.h"
#include "onetap/train/checkpoint.h"
#include "onetap/train/plain_norms.h"
#include "onetap/train/quantized_training.h"

#include <algorithm>
#include <set>

namespace fs = std::filesystem;

namespace onetap {
namespace {

// The newest good checkpoint of a run, by way of the run's own network.
SafetensorsFile read_run_weights(const std::string& run, const InitNotice& notice) {
  const RunFiles files(run);
  nn::GraphModule module(files.read_graph());
  const Checkpoint used = CheckpointFolder(files.checkpoints()).open("last", module, notice);
  return SafetensorsFile::parse(nn::tensor_bytes(nn::state_of(*module)), used.path.string());
}

SafetensorsFile read_weights(const std::string& source, const InitNotice& notice) {
  std::error_code ignored;
  return fs::is_directory(source, ignored) ? read_run_weights(source, notice) : SafetensorsFile::read(source);
}

class Skip {
 public:
  explicit Skip(const std::string& patterns) {
    if (trim(patterns).empty()) return;
    for (const std::string_view pattern : split(patterns, ',')) patterns_.emplace_back(trim(pattern));
  }

  bool matches(const std::string& name) const {
    return std::any_of(patterns_.begin(), patterns_.end(),
                       [&](const std::string& pattern) { return glob_match(pattern, name); });
  }

  void check(const SafetensorsFile& file, const nn::NamedTensors& state, const std::string& label) const {
    for (const std::string& pattern : patterns_) {
      const auto& given = file.tensors();
      const bool in_file = std::any_of(given.begin(), given.end(),
                                       [&](const TensorView& view) { return glob_match(pattern, view.name); });
      const bool in_network =
          std::any_of(state.begin(), state.end(), [&](const auto& entry) { return glob_match(pattern, entry.first); });
      if (!in_file && !in_network) fail_usage("[init] no tensor matches '{}' of --init-skip ({})", pattern, label);
    }
  }

 private:
  std::vector<std::string> patterns_;
};

// Layers that got weights of dense ones: of what else they have, the file has nothing (`missing`).
std::set<std::string> dense_layers(const nn::GraphModule& module, const std::set<std::string>& missing,
                                   const Skip& skip) {
  std::set<std::string> dense;
  for (const auto& [name, layer] : module->trained_layers()) {
    if (skip.matches(name + ".weight")) continue;
    const std::string prefix = name + ".";
    if (std::any_of(missing.begin(), missing.end(),
                    [&](const std::string& tensor) { return tensor.rfind(prefix, 0) == 0; })) {
      dense.insert(name);
    }
  }
  return dense;
}

// A network that is trained for int8 has chosen its taps, and its batch norms are those of its own values. Of a file
// nobody knows how its weights were trained.
void check_methods(const Recipe& recipe, const Graph& graph) {
  std::error_code ignored;
  if (recipe.quantize == Quantize::kNone || !fs::is_directory(recipe.init, ignored)) return;
  const Graph trained = RunFiles(recipe.init).read_graph();
  for (const Node& node : graph.nodes()) {
    const Node* other = trained.find(node.name);
    if (other == nullptr || method_text(*other) == method_text(node)) continue;
    fail_usage("[init] --quantize expected '{}' trained as {}, got {} ({}): train it without --quantize first",
               node.name, method_text(node), method_text(*other), recipe.init);
  }
}

// Whether the method leaves out weights that are there.
bool drops_weights(const nn::TrainedConv& layer) {
  const torch::NoGradGuard no_grad;
  return (layer.finished_weight(nn::AttentionMode::kHard) == 0).logical_and(layer.weight != 0).any().item<bool>();
}

// The same of a file, whose network nobody knows.
void check_kept_weights(const Recipe& recipe, const nn::GraphModule& module, const std::set<std::string>& dense) {
  if (recipe.quantize == Quantize::kNone) return;
  for (const auto& [name, layer] : module->trained_layers()) {
    if (dense.count(name) == 0 || !drops_weights(*layer)) continue;
    fail_usage(
        "[init] --quantize trains kept taps: the method would drop weights of '{}' ({}): train without --quantize "
        "first",
        name, recipe.init);
  }
}

// Attention that is not there would be chosen at random.
void check_taps(const Recipe& recipe, const nn::GraphModule& module, const std::set<std::string>& dense) {
  if (recipe.quantize == Quantize::kNone) return;
  for (const auto& trained : module->soft_layers()) {
    if (dense.count(trained.name) == 0) continue;
    fail_usage("[init] --quantize trains kept taps: expected weights with their attention, got none of '{}' ({})",
               trained.name, recipe.init);
  }
}

}  // namespace

std::vector<std::string> import_init(const Recipe& recipe, nn::GraphModule module, const InitNotice& notice) {
  if (recipe.init.empty()) return {};
  check_methods(recipe, module->graph());
  const SafetensorsFile file = read_weights(recipe.init, notice);
  const Skip skip(recipe.init_skip);
  const nn::NamedTensors state = nn::state_of(*module);
  skip.check(file, state, recipe.init);
  nn::NamedTensors wanted;
  std::vector<std::string> skipped, unused;
  for (const auto& entry : state) {
    if (entry.first == QuantizedTraining::kRanges) continue;  // of its own weights
    if (skip.matches(entry.first)) {
      skipped.push_back(entry.first);
    } else {
      wanted.push_back(entry);
    }
  }
  const nn::ImportReport report = nn::import_weights(file, wanted, recipe.init);
  for (const std::string& name : report.unused) {
    if (!skip.matches(name)) unused.push_back(name);
  }
  const auto tell = [&](const std::vector<std::string>& names, const char* what) {
    if (names.empty() || !notice) return;
    notice(fmt::format("{}: {} tensors {}, such as '{}'", recipe.init, names.size(), what, names.front()));
  };
  tell(unused, "are not of this network and were left");
  tell(skipped, "of this network were not taken (init_skip)");
  // What scales its weights by attention undoes that of the first step.
  module->set_temperature(std::max(recipe.t0, recipe.t_floor));
  std::set<std::string> missing(report.kept.begin(), report.kept.end());
  for (const std::string& name : skipped) {
    const bool in_file = std::any_of(file.tensors().begin(), file.tensors().end(),
                                     [&](const TensorView& view) { return view.name == name; });
    if (!in_file) missing.insert(name);
  }
  const std::set<std::string> dense = dense_layers(module, missing, skip);
  check_taps(recipe, module, dense);
  std::vector<std::string> plain = plain_norms(module);
  module->weights_imported(dense);
  check_kept_weights(recipe, module, dense);
  return plain;
}

void check_init(const Recipe& recipe, const Graph& graph) {
  for (const Node& node : graph.nodes()) {
    if (recipe.init.empty() && node.method.info().needs_init) {
      fail_usage("[train] method {} starts from a trained network: expected --init RUN|FILE", node.method.name());
    }
  }
  if (recipe.quantize != Quantize::kNone) int8_places(graph);
  if (!recipe.init.empty()) import_init(recipe, nn::GraphModule(graph), {});
}

}  // namespace onetap
