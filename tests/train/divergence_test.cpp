// Runs that diverge, and checkpoints that are damaged: nothing bad is kept, and what is bad is passed over.
#include "onetap/base/file.h"
#include "onetap/graph/text.h"
#include "onetap/train/evaluate.h"
#include "onetap/train/finite.h"
#include "tests/train/training.h"

#include <fmt/format.h>

#include <limits>

namespace fs = std::filesystem;

namespace onetap {
namespace {

using testing::expect_error;
using testing::expect_same_run;
using testing::final_weights;
using testing::Outcome;
using testing::read_text;
using testing::small_recipe;
using testing::TempDir;
using testing::train_in;
using testing::write_text;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

CheckpointFolder checkpoints(const fs::path& run) {
  return CheckpointFolder(RunFiles(run).checkpoints());
}

std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& problem) {
    EXPECT_EQ(problem.kind(), ErrorKind::kFailure);
    return problem.what();
  }
  ADD_FAILURE() << "expected an error";
  return "";
}

// As versions before wrote them: without checksums.
void strip_checksums(const Checkpoint& checkpoint) {
  RunState state = checkpoint.state;
  state.checksums.clear();
  write_text(checkpoint.path / "state.json", state.json());
}

// A value of a tensor file made `value`, as a run that diverged would have left it.
void spoil(const Checkpoint& checkpoint, const char* file, float value) {
  const SafetensorsFile read = SafetensorsFile::read(checkpoint.path / file);
  nn::NamedTensors tensors;
  for (const TensorView& view : read.tensors()) tensors.emplace_back(view.name, nn::to_tensor(view));
  for (auto& [name, tensor] : tensors) {
    if (!tensor.is_floating_point()) continue;
    tensor.flatten()[tensor.numel() / 2] = value;
    break;
  }
  nn::write_tensors(checkpoint.path / file, tensors);
  strip_checksums(checkpoint);
}

void flip_bit(const fs::path& file) {
  std::string bytes = read_text(file);
  bytes[bytes.size() - 5] = static_cast<char>(bytes[bytes.size() - 5] ^ 2);  // a small change of one value
  write_text(file, bytes);
}

bool has_notice(const Outcome& outcome, const std::string& part) {
  for (const std::string& notice : outcome.notices) {
    if (notice.find(part) != std::string::npos) return true;
  }
  return false;
}

TEST(Finite, FindsEveryKindOfValueAnywhere) {
  for (const int64_t size : {1, 2, 15, 16, 33, 1000}) {
    const nn::NamedTensors tensors = {{"counter", torch::zeros({1}, torch::kInt64)},
                                      {"none", torch::zeros({0})},
                                      {"a", torch::randn({3, 5})},
                                      {"b", (torch::rand({size}) * 2 - 1) * 3e38}};
    EXPECT_TRUE(all_finite(tensors));
    EXPECT_EQ(first_not_finite(tensors), "");
    for (const float value : {kNan, kInfinity, -kInfinity}) {
      for (int64_t at = 0; at < size; at += 1 + size / 40) {
        tensors.back().second[at] = value;
        EXPECT_FALSE(all_finite(tensors)) << value << " at " << at;
        tensors.back().second[at] = 0;
      }
    }
    tensors.back().second[size - 1] = kNan;
    EXPECT_EQ(first_not_finite(tensors), "b");
  }
}

// Also where only the step after would show it: at the end of an epoch of one step.
TEST(Divergence, EndsWithItsStepAndKeepsNothingBad) {
  const TempDir dir;
  int runs = 0;
  for (const char* engine : {"plain", "captured", "fused"}) {
    for (const char* method : {"sal", "conv"}) {
      for (const int64_t batch : {16, 96}) {
        for (const double lr : {1e4, 1e6}) {
          const int number = runs++;
          // Every engine and method of the many combinations: a sanitizer looks for other faults than theirs.
          if (testing::kAddressSanitizer && number % 3 != 0) continue;
          Recipe recipe = small_recipe();
          recipe.engine = *parse_choice<EngineChoice>(engine);
          recipe.method = method;
          recipe.batch_size = batch;
          recipe.epochs = 6;
          recipe.schedule = LrSchedule::kCosine;  // no drop that might save it
          recipe.lr = lr;
          recipe.lr_final = lr;
          recipe.checkpoint_steps = 1;
          recipe.keep_checkpoints = 100;
          recipe.ema = number % 3 == 0 ? 0.9 : 0;
          const fs::path run = dir / std::to_string(number);
          SCOPED_TRACE(fmt::format("{} {} batch {} lr {}", engine, method, batch, lr));
          const std::string why = error_of([&] { train_in(run, recipe); });
          EXPECT_NE(why.find(" at step "), std::string::npos) << why;
          EXPECT_NE(why.find("lower --lr"), std::string::npos) << why;
          EXPECT_EQ(why.find('\n'), std::string::npos) << why;
          const auto all = checkpoints(run).list();
          for (const Checkpoint& checkpoint : all) {
            EXPECT_NE(read_text(checkpoint.path / "state.json").find("\"loss_sum\""), std::string::npos);
            for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
              nn::NamedTensors tensors;
              const SafetensorsFile read = SafetensorsFile::read(checkpoint.path / file);
              for (const TensorView& view : read.tensors()) tensors.emplace_back(view.name, nn::to_tensor(view));
              EXPECT_EQ(first_not_finite(tensors), "") << checkpoint.path;
            }
          }
          const std::string last =
              all.empty() ? "there is no checkpoint yet" : "the last good checkpoint is " + all.front().path.string();
          EXPECT_NE(why.find("; " + last), std::string::npos) << why;
          EXPECT_EQ(read_text(RunFiles(run).metrics()).find("null,\"acc_soft\""), std::string::npos);
          EXPECT_EQ(error_of([&] { train_in(run, recipe); }), why) << "resumed, it does the same";
        }
      }
    }
  }
}

TEST(Divergence, OldCheckpointsThatAreNotFiniteArePassedOver) {
  const TempDir dir;
  train_in(dir / "whole", small_recipe());
  for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
    for (const float value : {kNan, kInfinity}) {
      fs::remove_all(dir / "run");
      train_in(dir / "run", small_recipe(), 8);
      const auto before = checkpoints(dir / "run").list();
      ASSERT_EQ(before.size(), 2u);
      spoil(before[0], file, value);
      const Outcome outcome = train_in(dir / "run", small_recipe());
      EXPECT_TRUE(has_notice(outcome, "expected finite values"));
      EXPECT_TRUE(has_notice(outcome, "resuming after step 6 of 18"));
      expect_same_run(dir / "whole", dir / "run");
    }
  }
}

// Checkpoints that a run went back behind must not push out those that it writes now.
TEST(Divergence, ARunThatStartsOverKeepsWhatItWrites) {
  const TempDir dir;
  train_in(dir / "run", small_recipe(), 8);
  for (const Checkpoint& checkpoint : checkpoints(dir / "run").list()) spoil(checkpoint, "model.safetensors", kNan);
  const Outcome outcome = train_in(dir / "run", small_recipe(), 1);
  EXPECT_TRUE(has_notice(outcome, "there is no good checkpoint: starting from the beginning"));
  EXPECT_EQ(checkpoints(dir / "run").find("last").state.step, 2);  // one more than it was stopped after
  EXPECT_TRUE(has_notice(train_in(dir / "run", small_recipe()), "resuming after step 2 of 18"));
}

TEST(DamagedCheckpoint, AFlippedBitOfAnyFileSendsTheRunOneBack) {
  const TempDir dir;
  Recipe recipe = small_recipe();
  recipe.ema = 0.9;
  train_in(dir / "whole", recipe);
  for (const char* file : {"model.safetensors", "training.safetensors", "optimizer.safetensors", "taps.safetensors"}) {
    SCOPED_TRACE(file);
    fs::remove_all(dir / "run");
    train_in(dir / "run", recipe, 8);
    flip_bit(checkpoints(dir / "run").find("last").path / file);
    const Outcome outcome = train_in(dir / "run", recipe);
    EXPECT_TRUE(has_notice(outcome, "expected CRC-32C"));
    EXPECT_TRUE(has_notice(outcome, "resuming after step 6 of 18"));
    expect_same_run(dir / "whole", dir / "run");
  }
}

TEST(DamagedCheckpoint, WhoeverOpensTheLastOneIsToldWhatWasUsed) {
  const TempDir dir;
  train_in(dir / "run", small_recipe());
  const CheckpointFolder folder = checkpoints(dir / "run");
  nn::GraphModule module(RunFiles(dir / "run").read_graph());
  const auto open = [&](const std::string& which, std::vector<std::string>& notices) {
    return folder.open(which, module, [&](const std::string& text) { notices.push_back(text); }).state.step;
  };
  std::vector<std::string> notices;
  EXPECT_EQ(open("last", notices), 18);
  EXPECT_TRUE(notices.empty());

  const fs::path last = folder.find("last").path;
  const std::string model = read_text(last / "model.safetensors"), state = read_text(last / "state.json");
  const auto expect_fallback = [&](const std::string& why) {
    notices.clear();
    EXPECT_EQ(open("last", notices), 12);
    ASSERT_EQ(notices.size(), 2u) << why;
    EXPECT_NE(notices[0].find(why), std::string::npos) << notices[0];
    EXPECT_NE(notices[1].find("using " + folder.find("12").path.string()), std::string::npos) << notices[1];
  };
  flip_bit(last / "model.safetensors");
  expect_fallback("expected CRC-32C");
  expect_error(ErrorKind::kData, "expected CRC-32C", [&] { open("18", notices); });
  write_text(last / "model.safetensors", model);
  fs::rename(last / "optimizer.safetensors", last / "gone");
  expect_fallback("optimizer.safetensors is missing");
  fs::rename(last / "gone", last / "optimizer.safetensors");
  std::string damaged = state;
  damaged.replace(damaged.find("\"step\": 18"), 10, "\"step\": 19");
  write_text(last / "state.json", damaged);
  expect_fallback("expected the state with checksum");
  write_text(last / "state.json", "{");
  expect_fallback("not a state file");
  write_text(last / "state.json", state);
  notices.clear();
  EXPECT_EQ(open("last", notices), 18);
  EXPECT_TRUE(notices.empty());
}

// Checkpoints that are whole and do not fit are not damaged: nothing is trained over them.
TEST(DamagedCheckpoint, WholeOnesAreNeverGivenUp) {
  const TempDir dir;
  const Recipe recipe = small_recipe();
  train_in(dir / "run", recipe, 8);
  const auto names = [&] {
    std::vector<std::string> found;
    for (const Checkpoint& checkpoint : checkpoints(dir / "run").list()) found.push_back(checkpoint.path.string());
    return found;
  };
  const auto before = names();
  ASSERT_FALSE(before.empty());
  const fs::path network = RunFiles(dir / "run").network();
  const std::string text = read_text(network);
  std::string other = text;
  other.replace(other.find("taps=1"), 6, "taps=3");
  write_text(network, other);
  expect_error(ErrorKind::kData, "expected network.txt as it was", [&] { train_in(dir / "run", recipe); });
  EXPECT_EQ(names(), before);
  fs::remove(RunFiles(dir / "run").sums());
  expect_error(ErrorKind::kData, "layer1.0.conv1.attention", [&] { train_in(dir / "run", recipe); });
  EXPECT_EQ(names(), before);
}

TEST(DamagedCheckpoint, OnesThatWerePassedOverAreKeptAside) {
  const TempDir dir;
  train_in(dir / "run", small_recipe(), 8);
  const fs::path last = checkpoints(dir / "run").find("last").path;
  flip_bit(last / "model.safetensors");
  train_in(dir / "run", small_recipe());
  EXPECT_TRUE(fs::exists(last.parent_path() / ("damaged-" + last.filename().string()) / "model.safetensors"));
}

TEST(DamagedCheckpoint, OldOnesWithoutChecksumsStillOpen) {
  const TempDir dir;
  train_in(dir / "whole", small_recipe());
  train_in(dir / "run", small_recipe(), 8);
  for (const Checkpoint& checkpoint : checkpoints(dir / "run").list()) strip_checksums(checkpoint);
  const Outcome outcome = train_in(dir / "run", small_recipe());
  ASSERT_EQ(outcome.notices.size(), 1u);
  EXPECT_NE(outcome.notices[0].find("resuming after step 9"), std::string::npos);
  EXPECT_TRUE(final_weights(dir / "whole") == final_weights(dir / "run"));
}

TEST(Evaluate, RefusesOutputsThatAreNotFinite) {
  const DataSource source = open_data("shapes:train=8,test=20");
  const Recipe recipe = resolve_recipe(small_recipe(), source);
  nn::GraphModule module(recipe_network(recipe, 10, 32));
  EvalOptions options;
  options.stream.view = recipe_view(recipe, module->graph(), source);
  EXPECT_TRUE(evaluate(module, *source.test, options).has_value());
  const torch::NoGradGuard no_grad;
  torch::Tensor bias = module->named_parameters()["fc.bias"];
  // One output of minus infinity leaves the loss of images of other classes finite.
  for (const float value : {kNan, kInfinity, -kInfinity}) {
    bias[3] = value;
    EXPECT_THROW(evaluate(module, *source.test, options), NotFinite) << value;
  }
  bias[3] = 0;
  EXPECT_TRUE(evaluate(module, *source.test, options).has_value());
}

TEST(AttentionRecord, RefusesWhatIsNoAttention) {
  const DataSource source = open_data("shapes:train=8,test=8");
  nn::GraphModule module(recipe_network(resolve_recipe(small_recipe(), source), 10, 32));
  module->set_temperature(0.02);
  AttentionRecord().take(module);
  const torch::NoGradGuard no_grad;
  module->named_parameters()["layer1.0.conv1.attention"][0][0][0] = std::numeric_limits<float>::infinity();
  expect_error(ErrorKind::kFailure, "'layer1.0.conv1'", [&] { AttentionRecord().take(module); });
}

TEST(Precision, Bf16IsForGpus) {
  const TempDir dir;
  Recipe recipe = small_recipe();
  recipe.precision = Precision::kBf16;
  expect_error(ErrorKind::kUsage, "got bf16: it is for GPUs", [&] { train_in(dir / "run", recipe); });
  EXPECT_FALSE(fs::exists(dir / "run"));
  // A run of before, or of a GPU: it goes on, and says how.
  recipe.precision = Precision::kAuto;
  train_in(dir / "run", recipe, 8);
  const RunFiles files(dir / "run");
  std::string config = read_text(files.config());
  config.replace(config.find("precision = \"auto\""), 18, "precision = \"bf16\"");
  write_text(files.config(), config);
  fs::remove(files.sums());
  EXPECT_TRUE(has_notice(train_in(dir / "run", recipe), "on a CPU it is computed in fp32"));
  train_in(dir / "whole", recipe);
  EXPECT_TRUE(final_weights(dir / "whole") == final_weights(dir / "run"));
}

}  // namespace
}  // namespace onetap
