#include "onetap/train/checkpoint.h"

#include "onetap/base/crc32c.h"
#include "onetap/base/fail.h"
#include "onetap/base/file.h"
#include "onetap/base/text.h"
#include "onetap/train/finite.h"
#include "onetap/train/quantized_training.h"

#include <algorithm>
#include <cstring>
#include <set>
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
constexpr const char* kDamagedPrefix = "damaged-";

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

// What `read` finds wrong is damage; what keeps it from reading is not.
template <typename Read>
auto damage_as_such(const Read& read) {
  try {
    return read();
  } catch (const UnreadableFile&) {
    throw;
  } catch (const Error& problem) {
    throw DamagedCheckpoint(problem.what());
  }
}

SafetensorsFile parse_checked(const Checkpoint& checkpoint, const char* name, std::string bytes) {
  const fs::path path = checkpoint.path / name;
  const auto& checksums = checkpoint.state.checksums;
  const auto written = checksums.find(name);
  if (written == checksums.end()) {
    if (!checksums.empty()) fail_data("[checkpoint] expected a checksum of {}, got none ({})", name, path.string());
  } else if (const uint32_t found = crc32c(bytes); found != written->second) {
    fail_data("[checkpoint] expected CRC-32C {:08x}, got {:08x}: the file is damaged ({})", written->second, found,
              path.string());
  }
  return SafetensorsFile::parse(std::move(bytes), path.string());
}

// A file of tensors, byte for byte the one that was written.
SafetensorsFile read_checked(const Checkpoint& checkpoint, const char* name) {
  const fs::path path = checkpoint.path / name;
  std::string bytes = read_file(path);
  return damage_as_such([&] { return parse_checked(checkpoint, name, std::move(bytes)); });
}

// Its state, and that its files are there; what they hold is checked when they are read.
Checkpoint look_at(const fs::path& path) {
  Checkpoint checkpoint{path, {}};
  const fs::path state = path / kStateFile;
  checkpoint.state = RunState::parse(read_file(state, 1u << 20), state.string());
  std::set<std::string> files = {kModelFile, kOptimizerFile, kTapsFile};
  for (const auto& written : checkpoint.state.checksums) files.insert(written.first);
  for (const std::string& file : files) {
    if (!fs::exists(path / file)) fail_data("[checkpoint] {} is missing ({})", file, path.string());
  }
  return checkpoint;
}

void load_into(const SafetensorsFile& file, const nn::NamedTensors& into, const std::string& label) {
  nn::load_tensors(file, into, label);
  if (all_finite(into)) return;
  throw DamagedCheckpoint(
      fmt::format("[checkpoint] expected finite values, got others in '{}': the run had diverged ({})",
                  first_not_finite(into), label));
}

void load_checked(const Checkpoint& checkpoint, const char* name, const nn::NamedTensors& into) {
  load_into(read_checked(checkpoint, name), into, (checkpoint.path / name).string());
}

// For good, under a name that no checkpoint has: what was passed over may be of use to a person.
void keep_aside(const fs::path& checkpoint) {
  const std::string name = kDamagedPrefix + checkpoint.filename().string();
  fs::path aside = checkpoint.parent_path() / name;
  for (int i = 2; fs::exists(aside); ++i) aside = checkpoint.parent_path() / fmt::format("{}-{}", name, i);
  std::error_code error;
  fs::rename(checkpoint, aside, error);
  if (error) fail("[checkpoint] cannot rename {}: {}", checkpoint.string(), error.message());
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

void note_damage(const CheckpointNotice& notice, const DamagedCheckpoint& problem) {
  if (notice) notice(fmt::format("skipping a damaged checkpoint: {}", problem.what()));
}

}  // namespace

std::vector<Checkpoint> CheckpointFolder::list(const CheckpointNotice& notice) const {
  std::vector<Checkpoint> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory_, error)) {
    if (!is_checkpoint_name(entry.path()) || entry.is_symlink()) continue;
    try {
      found.push_back(damage_as_such([&] { return look_at(entry.path()); }));
    } catch (const DamagedCheckpoint& problem) {
      note_damage(notice, problem);
    }
  }
  std::sort(found.begin(), found.end(), [](const Checkpoint& a, const Checkpoint& b) {
    return std::tie(a.state.step, a.state.epoch_logged) > std::tie(b.state.step, b.state.epoch_logged);
  });
  return found;
}

void CheckpointFolder::keep_aside_after(const Checkpoint* used) const {
  std::vector<fs::path> later;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory_, error)) {
    if (!is_checkpoint_name(entry.path()) || entry.is_symlink()) continue;
    // By its name: its state may be what is damaged.
    const std::string name = entry.path().filename().string().substr(std::strlen(kStepPrefix));
    const auto step = parse_int(name.substr(0, name.find('-')));
    if (used == nullptr || (step && *step > used->state.step)) later.push_back(entry.path());
  }
  for (const fs::path& path : later) keep_aside(path);
}

Checkpoint CheckpointFolder::find(const std::string& which, const CheckpointNotice& notice) const {
  const std::vector<Checkpoint> all = list(notice);
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

FoundCheckpoint CheckpointFolder::load_newest(const std::function<void(const Checkpoint&)>& load,
                                              const CheckpointNotice& notice) const {
  FoundCheckpoint found;
  const auto hear = [&](const std::string& text) {
    found.passed_over = true;
    if (notice) notice(text);
  };
  for (const Checkpoint& checkpoint : list(hear)) {
    try {
      load(checkpoint);
    } catch (const DamagedCheckpoint& problem) {
      note_damage(hear, problem);
      continue;
    }
    found.checkpoint = checkpoint;
    break;
  }
  return found;
}

Checkpoint CheckpointFolder::open(const std::string& which, nn::GraphModule& module, const CheckpointNotice& notice,
                                  KeptWeights weights) const {
  if (which != "last") {
    const Checkpoint asked = find(which, notice);
    load(asked, module, weights);
    return asked;
  }
  const FoundCheckpoint found =
      load_newest([&](const Checkpoint& checkpoint) { load(checkpoint, module, weights); }, notice);
  if (!found.checkpoint) fail_data("[checkpoint] there is no complete checkpoint in {}", directory_.string());
  if (found.passed_over && notice) notice(fmt::format("using {}", found.checkpoint->path.string()));
  return *found.checkpoint;
}

fs::path CheckpointFolder::write(const RunState& state, const nn::GraphModule& module, const Optimizer& optimizer,
                                 const AttentionRecord& attention, const WeightAverage& average, int64_t keep) const {
  make_directories(directory_);
  const std::string name = folder_name(state);
  const fs::path final_path = directory_ / name;
  // Only one that was passed over can be in the way: a run resumes from the newest that is good.
  if (fs::exists(final_path)) keep_aside(final_path);
  {
    StagedDirectory staged(final_path);
    RunState complete = state;
    complete.checksums.clear();
    const auto put = [&](const char* file, const nn::NamedTensors& tensors) {
      complete.checksums[file] = nn::write_tensors(staged.path() / file, tensors);
    };
    put(kModelFile, average.active() ? average.state() : nn::state_of(*module));
    if (average.active()) put(kTrainingFile, nn::state_of(*module));
    put(kOptimizerFile, optimizer.state());
    put(kTapsFile, attention.state());
    FileWriter writer(staged.path() / kStateFile);
    writer.write(complete.json());
    writer.finish();
    staged.commit();
  }
  point_link(directory_ / "last", name);
  if (state.best_step == state.step) point_link(directory_ / "best", name);
  prune(state, keep);
  return final_path;
}

void CheckpointFolder::point_last_at(const Checkpoint& newest) const {
  std::error_code ignored;
  if (!fs::equivalent(directory_ / "last", newest.path, ignored)) {
    point_link(directory_ / "last", newest.path.filename().string());
  }
}

void CheckpointFolder::prune(const RunState& state, int64_t keep) const {
  StagedDirectory::clean(directory_);
  int64_t kept = 0;
  for (const Checkpoint& checkpoint : list()) {
    // Those of later steps were passed over when the run went back: they must not push out what is good.
    if (std::tie(checkpoint.state.step, checkpoint.state.epoch_logged) > std::tie(state.step, state.epoch_logged)) {
      keep_aside(checkpoint.path);
      continue;
    }
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

fs::path CheckpointFolder::weights_file(const Checkpoint& checkpoint, KeptWeights weights) {
  const bool own = weights == KeptWeights::kTrained && checkpoint.state.checksums.count(kTrainingFile) > 0;
  return checkpoint.path / (own ? kTrainingFile : kModelFile);
}

void CheckpointFolder::load(const Checkpoint& checkpoint, nn::GraphModule& module, KeptWeights weights) {
  const fs::path path = weights_file(checkpoint, weights);
  const SafetensorsFile file = read_checked(checkpoint, path.filename().c_str());
  nn::NamedTensors into = nn::state_of(*module);
  // A module in floats leaves what training for int8 has beside the network.
  const TensorView* ranges = file.find(QuantizedTraining::kRanges);
  if (ranges != nullptr && !module->named_buffers().contains(QuantizedTraining::kRanges)) {
    into.emplace_back(QuantizedTraining::kRanges, nn::to_tensor(*ranges));
  }
  load_into(file, into, path.string());
}

std::map<std::string, float> read_ranges(const Checkpoint& checkpoint, const Graph& graph, KeptWeights weights) {
  const fs::path path = CheckpointFolder::weights_file(checkpoint, weights);
  const SafetensorsFile file = read_checked(checkpoint, path.filename().c_str());
  const TensorView* ranges = file.find(QuantizedTraining::kRanges);
  if (ranges == nullptr) return {};
  return named_ranges(graph, nn::to_tensor(*ranges));
}

void CheckpointFolder::load(const Checkpoint& checkpoint, nn::GraphModule& module, Optimizer& optimizer,
                            AttentionRecord& attention, WeightAverage& average) {
  if (average.active()) {
    load_checked(checkpoint, kModelFile, average.state());
    load_checked(checkpoint, kTrainingFile, nn::state_of(*module));
  } else {
    load(checkpoint, module);
  }
  load_checked(checkpoint, kOptimizerFile, optimizer.state());
  attention.restore(read_checked(checkpoint, kTapsFile));
}

}  // namespace onetap
