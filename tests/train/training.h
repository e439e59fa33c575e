// Trainings of tests, and what is left of them.
#pragma once

#include "onetap/data/source.h"
#include "onetap/journal/metrics.h"
#include "onetap/train/checkpoint.h"
#include "onetap/train/resolve.h"
#include "onetap/train/trainer.h"
#include "tests/support/support.h"

namespace onetap::testing {

// 6 steps an epoch, 18 in all.
inline constexpr const char* kSmallData = "shapes:train=96,test=40";

inline Recipe small_recipe() {
  Recipe recipe;
  recipe.arch = "resnet8";
  recipe.width = 4;
  recipe.data = kSmallData;
  recipe.epochs = 3;
  recipe.batch_size = 16;
  recipe.lr = 0.05;
  recipe.threads = 1;
  recipe.device = "cpu";  // a GPU adds in an order of its own, so nothing there is bit-identical
  return recipe;
}

struct Outcome {
  TrainOutcome result = TrainOutcome::kFinished;
  std::vector<std::string> notices;
};

// Starts or resumes; stops by itself after `stop_after` steps of this sitting (0: never).
inline Outcome train_in(const std::filesystem::path& root, Recipe recipe, int64_t stop_after = 0) {
  const DataSource source = open_data(recipe.data);
  std::optional<RunDirectory> run;
  if (RunFiles(root).holds_run()) {
    run.emplace(RunDirectory::resume(root));
    recipe = run->files().read_config();
  } else {
    recipe = resolve_recipe(recipe, source);
    const auto classes = static_cast<int64_t>(source.classes.size());
    const Graph graph = recipe_network(recipe, classes, recipe.image_size.value_or(0));
    run.emplace(RunDirectory::create(root, recipe, graph, {{"onetap", "test"}}));
  }
  std::atomic<bool> stop{false};
  Outcome outcome;
  int64_t steps = 0;
  TrainEvents events;
  events.on_step = [&](const StepReport&) {
    if (++steps == stop_after) stop = true;
  };
  events.on_notice = [&](const std::string& text) { outcome.notices.push_back(text); };
  outcome.result = train(*run, recipe, source, events, stop);
  return outcome;
}

// metrics.jsonl without what depends on the clock.
inline std::string timeless_metrics(const std::filesystem::path& root) {
  std::string text;
  for (MetricLine line : read_metrics(RunFiles(root).metrics())) {
    line.img_per_s = line.wall_s = 0;
    line.data_wait.reset();
    text += line.json() + '\n';
  }
  return text;
}

inline nn::GraphModule last_module(const std::filesystem::path& run) {
  const RunFiles files(run);
  nn::GraphModule module(files.read_graph());
  CheckpointFolder::load(CheckpointFolder(files.checkpoints()).find("last"), module);
  return module;
}

inline std::string final_weights(const std::filesystem::path& root) {
  const Checkpoint last = CheckpointFolder(RunFiles(root).checkpoints()).find("last");
  const std::filesystem::path own = last.path / "training.safetensors";  // beside an average
  return read_text(last.path / "model.safetensors") + read_text(last.path / "optimizer.safetensors") +
         (std::filesystem::exists(own) ? read_text(own) : "");
}

// Two runs that ended with the same metrics and weights, bit for bit.
inline void expect_same_run(const std::filesystem::path& one, const std::filesystem::path& other) {
  EXPECT_EQ(timeless_metrics(one), timeless_metrics(other)) << other;
  EXPECT_TRUE(final_weights(one) == final_weights(other)) << other;
}

// A run that is stopped after so many steps of each sitting ends as one that never was: `parts` as `whole`.
inline void expect_resumes_bit_for_bit(const std::filesystem::path& whole, const std::filesystem::path& parts,
                                       const Recipe& recipe, const std::vector<int64_t>& sittings) {
  train_in(whole, recipe);
  for (const int64_t steps : sittings) {
    EXPECT_EQ(train_in(parts, recipe, steps).result, TrainOutcome::kInterrupted);
  }
  EXPECT_EQ(train_in(parts, recipe).result, TrainOutcome::kFinished);
  expect_same_run(whole, parts);
}

// What the recipe's run ends with, by each of the engines. The runs themselves are gone then.
inline std::vector<nn::NamedTensors> states_by_engine(const std::filesystem::path& dir, Recipe recipe,
                                                      const std::vector<EngineChoice>& engines) {
  std::vector<nn::NamedTensors> states;
  for (const EngineChoice engine : engines) {
    recipe.engine = engine;
    train_in(dir / "by-engine", recipe);
    states.push_back(nn::state_of(*last_module(dir / "by-engine")));
    std::filesystem::remove_all(dir / "by-engine");
  }
  return states;
}

inline void expect_states_alike(const std::vector<nn::NamedTensors>& states, const std::string& what = "") {
  for (size_t other = 1; other < states.size(); ++other) {
    for (size_t i = 0; i < states[0].size(); ++i) {
      EXPECT_TRUE(torch::allclose(states[0][i].second, states[other][i].second, 1e-3, 1e-5))
          << what << " " << other << " " << states[0][i].first;
    }
  }
}

// Losses of a plain run, and those of the engine's steps.
inline void expect_engines_train_alike(const std::filesystem::path& dir, Recipe recipe) {
  train_in(dir / "plain", recipe);
  const auto plain = read_metrics(RunFiles(dir / "plain").metrics());
  for (const EngineChoice engine : {EngineChoice::kFused, EngineChoice::kCaptured}) {
    recipe.engine = engine;
    const std::string name(choice_word(engine));
    train_in(dir / name, recipe);
    const auto got = read_metrics(RunFiles(dir / name).metrics());
    ASSERT_EQ(plain.size(), got.size());
    for (size_t i = 0; i < plain.size(); ++i) EXPECT_NEAR(plain[i].loss, got[i].loss, 2e-3 * plain[i].loss) << name;
    EXPECT_NEAR(plain[0].acc_soft, got[0].acc_soft, 0.03) << name;
  }
}

}  // namespace onetap::testing
