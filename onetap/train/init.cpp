#include "onetap/train/init.h"

#include "onetap/base/fail.h"
#include "onetap/base/text.h"
#include "onetap/graph/method_table.h"
#include "onetap/journal/run_files.h"
#include "onetap/nn/tensor_file.h"
#include "onetap/train/checkpoint.h"

#include <algorithm>

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

}  // namespace

void import_init(const Recipe& recipe, nn::GraphModule module, const InitNotice& notice) {
  if (recipe.init.empty()) return;
  const SafetensorsFile file = read_weights(recipe.init, notice);
  const Skip skip(recipe.init_skip);
  const nn::NamedTensors state = nn::state_of(*module);
  skip.check(file, state, recipe.init);
  nn::NamedTensors wanted;
  std::vector<std::string> skipped, unused;
  for (const auto& entry : state) {
    if (skip.matches(entry.first)) {
      skipped.push_back(entry.first);
    } else {
      wanted.push_back(entry);
    }
  }
  for (const std::string& name : nn::import_weights(file, wanted, recipe.init).unused) {
    if (!skip.matches(name)) unused.push_back(name);
  }
  const auto tell = [&](const std::vector<std::string>& names, const char* what) {
    if (names.empty() || !notice) return;
    notice(fmt::format("{}: {} tensors {}, such as '{}'", recipe.init, names.size(), what, names.front()));
  };
  tell(unused, "are not of this network and were left");
  tell(skipped, "of this network were not taken (init_skip)");
  module->weights_imported();
}

void check_init(const Recipe& recipe, const Graph& graph) {
  for (const Node& node : graph.nodes()) {
    if (recipe.init.empty() && node.method.info().needs_init) {
      fail_usage("[train] method {} starts from a trained network: expected --init RUN|FILE", node.method.name());
    }
  }
  if (!recipe.init.empty()) import_init(recipe, nn::GraphModule(graph), {});
}

}  // namespace onetap
