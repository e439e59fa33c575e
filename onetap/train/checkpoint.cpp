#include "onetap/train/checkpoint.h"

#include "onetap/base/fail.h"
#include "onetap/base/file.h"
#include "onetap/base/text.h"

#include <algorithm>
#include <system_error>
#include <tuple>

namespace fs = std::filesystem;

namespace onetap {
namespace {

constexpr const char* kModelFile = "model.safetensors";
constexpr const char* kTrainingFile = "training.safetensors";
constexpr const char* kOptimizerFile = "optimizer.safetensors";
constexpr const char* kTapsFile = "taps.safetensors";
constexpr const char* kStateFile = "state.json";
constexpr const char* kStepPrefix = "step-";

// "open": inside an epoch, or at its end before the test. The closed one of the same step has a name of its own,
// so a good checkpoint is never taken away to make place for another.
std::string folder_name(const RunState& state) {
  return fmt::format("{}{:09}{}", kStepPrefix, state.step, state.epoch_logged ? "" : "-open");
}

bool is_checkpoint_name(const fs::path& path) {
  return path.filename().string().rfind(kStepPrefix, 0) == 0;
}

fs::path set_aside(const fs::path& checkpoint) {
  const fs::path aside =
      checkpoint.parent_path() / (StagedDirectory::kPrefix + std::string("old-") + checkpoint.filename().string());
  std::error_code ignored;
  fs::remove_all(aside, ignored);
  std::error_code error;
  fs::rename(checkpoint, aside, error);
  if (error) fail("[checkpoint] cannot rename {}: {}", checkpoint.string(), error.message());
  return aside;
}

// Replaces a link in one step; a failure is not worth stopping a run for.
void point_link(const fs::path& link, const std::string& target) {
  std::error_code ignored;
  fs::path aside = link;
  aside += ".tmp";
  fs::remove(aside, ignored);
  fs::create_symlink(target, aside, ignored);
  fs::rename(aside, link, ignored);
}

}  // namespace

std::vector<Checkpoint> CheckpointFolder::list(const std::function<void(const std::string&)>& notice) const {
  std::vector<Checkpoint> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory_, error)) {
    if (!is_checkpoint_name(entry.path()) || entry.is_symlink()) continue;
    try {
      Checkpoint checkpoint{entry.path(), {}};
      const fs::path state = entry.path() / kStateFile;
      checkpoint.state = RunState::parse(read_file(state, 1u << 20), state.string());
      // The tensors' framing (lengths, offsets) is checked when they are read; that they are there, now.
      for (const char* file : {kModelFile, kOptimizerFile, kTapsFile}) {
        if (!fs::exists(entry.path() / file)) fail_data("[checkpoint] {} is missing ({})", file, entry.path().string());
      }
      found.push_back(std::move(checkpoint));
    } catch (const Error& problem) {
      if (notice) notice(fmt::format("passing over a damaged checkpoint: {}", problem.what()));
    }
  }
  std::sort(found.begin(), found.end(), [](const Checkpoint& a, const Checkpoint& b) {
    return std::tie(a.state.step, a.state.epoch_logged) > std::tie(b.state.step, b.state.epoch_logged);
  });
  return found;
}

Checkpoint CheckpointFolder::find(const std::string& which) const {
  const std::vector<Checkpoint> all = list();
  if (all.empty()) fail_data("[checkpoint] there is no complete checkpoint in {}", directory_.string());
  int64_t step = all.front().state.step;
  if (which == "best") {
    if (all.front().state.best_step < 0)
      fail_data("[checkpoint] no epoch has been tested yet ({})", directory_.string());
    step = all.front().state.best_step;
  } else if (which != "last") {
    const auto number = parse_int(which);
    if (!number) fail_usage("[checkpoint] expected last, best or a step number, got '{}'", which);
    step = *number;
  }
  for (const Checkpoint& checkpoint : all) {
    if (checkpoint.state.step == step) return checkpoint;
  }
  fail_data("[checkpoint] there is no checkpoint of step {} in {}", step, directory_.string());
}

fs::path CheckpointFolder::write(const RunState& state, const nn::GraphModule& module, const Sgd& sgd,
                                 const AttentionRecord& attention, const WeightAverage& average, int64_t keep) const {
  make_directories(directory_);
  const std::string name = folder_name(state);
  const fs::path final_path = directory_ / name;
  // Only a damaged one can be in the way: a run resumes from the newest that is good.
  if (fs::exists(final_path)) set_aside(final_path);
  {
    StagedDirectory staged(final_path);
    nn::write_tensors(staged.path() / kModelFile, average.active() ? average.state() : nn::state_of(*module));
    if (average.active()) nn::write_tensors(staged.path() / kTrainingFile, nn::state_of(*module));
    nn::write_tensors(staged.path() / kOptimizerFile, sgd.state());
    nn::write_tensors(staged.path() / kTapsFile, attention.state());
    FileWriter writer(staged.path() / kStateFile);
    writer.write(state.json());
    writer.finish();
    staged.commit();
  }
  point_link(directory_ / "last", name);
  if (state.best_step == state.step) point_link(directory_ / "best", name);
  prune(state, keep);
  return final_path;
}

void CheckpointFolder::prune(const RunState& state, int64_t keep) const {
  StagedDirectory::clean(directory_);
  int64_t kept = 0;
  for (const Checkpoint& checkpoint : list()) {
    const bool is_best = checkpoint.state.step == state.best_step;
    if (kept < keep || is_best) {
      ++kept;
      continue;
    }
    // Renamed first: a kill in the middle of removing leaves no folder that looks like a checkpoint.
    std::error_code ignored;
    fs::remove_all(set_aside(checkpoint.path), ignored);
  }
}

void CheckpointFolder::load(const Checkpoint& checkpoint, nn::GraphModule& module) {
  const fs::path model = checkpoint.path / kModelFile;
  nn::load_tensors(SafetensorsFile::read(model), nn::state_of(*module), model.string());
}

void CheckpointFolder::load(const Checkpoint& checkpoint, nn::GraphModule& module, Sgd& sgd, AttentionRecord& attention,
                            WeightAverage& average) {
  if (average.active()) {
    const fs::path averaged = checkpoint.path / kModelFile, own = checkpoint.path / kTrainingFile;
    nn::load_tensors(SafetensorsFile::read(averaged), average.state(), averaged.string());
    nn::load_tensors(SafetensorsFile::read(own), nn::state_of(*module), own.string());
  } else {
    load(checkpoint, module);
  }
  const fs::path optimizer = checkpoint.path / kOptimizerFile;
  nn::load_tensors(SafetensorsFile::read(optimizer), sgd.state(), optimizer.string());
  attention.restore(SafetensorsFile::read(checkpoint.path / kTapsFile));
}

}  // namespace onetap
