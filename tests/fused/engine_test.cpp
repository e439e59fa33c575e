// The engine over epochs of few batches: captured steps compute what the same steps do one by one.
#include "onetap/fused/engine.h"

#include "onetap/data/source.h"
#include "onetap/recipe/recipe.h"
#include "onetap/train/sgd.h"
#include "tests/support/support.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>

namespace onetap::fused {
namespace {

constexpr int64_t kBatch = 8, kEpochs = 2;

// A small network, its optimiser and an engine over `images` images.
class SmallRun {
 public:
  SmallRun(int64_t images, EngineOptions options, const std::string& method = "sal")
      : source_(open_data(fmt::format("shapes:train={},test=4", images))),
        module_(make_module(source_, options.device, method)),
        sgd_(*module_, {0.9, false, 1e-4}),
        steps_((images + kBatch - 1) / kBatch) {
    options.batch_size = kBatch;
    options.seed = 5;
    options.view.size = source_.image_size;
    options.view.normalisation = source_.normalisation;
    options.augment = {Augment::kPadCrop, 4, true, 0};
    options.update = {0.9, false, 1e-4, options.update.logit_decay};
    for (int64_t step = 0; step <= kEpochs * steps_; ++step) {
      options.learning_rates.push_back(0.02f);
      options.temperatures.push_back(3.0f / static_cast<float>(step + 1));
    }
    engine_ = std::make_unique<Engine>(module_, sgd_.state(), source_, options);
  }

  void train() {
    for (int64_t epoch = 0; epoch < kEpochs; ++epoch) {
      engine_->start_epoch(epoch, 0, epoch * steps_);
      engine_->run(steps_);
      losses_.push_back(engine_->sums().loss);
    }
  }

  Engine& engine() { return *engine_; }
  const nn::GraphModule& module() const { return module_; }
  const std::vector<double>& losses() const { return losses_; }
  std::vector<torch::Tensor> tensors() const {
    std::vector<torch::Tensor> all;
    for (const auto& list : {nn::state_of(*module_), sgd_.state()}) {
      for (const auto& [name, tensor] : list) all.push_back(tensor.detach().cpu().to(torch::kFloat64));
    }
    return all;
  }

 private:
  static nn::GraphModule make_module(const DataSource& source, torch::Device device, const std::string& method) {
    Recipe recipe;
    recipe.arch = "resnet8";
    recipe.width = 4;
    recipe.method = method;
    torch::manual_seed(7);
    nn::GraphModule module(recipe_network(recipe, static_cast<int64_t>(source.classes.size()), source.image_size));
    module->to(device);
    module->train();
    return module;
  }

  DataSource source_;
  nn::GraphModule module_;
  Sgd sgd_;
  int64_t steps_;
  std::unique_ptr<Engine> engine_;
  std::vector<double> losses_;
};

// Of any tensor, in units of its largest value.
double worst_difference(const SmallRun& a, const SmallRun& b) {
  double worst = 0;
  const auto left = a.tensors(), right = b.tensors();
  for (size_t i = 0; i < left.size(); ++i) {
    const double scale = std::max(1e-3, right[i].abs().max().item<double>());
    worst = std::max(worst, (left[i] - right[i]).abs().max().item<double>() / scale);
  }
  return worst;
}

// Less than a batch, one, one and a smaller one, and so on.
constexpr int64_t kImages[] = {3, 8, 11, 16, 21, 24};

constexpr Steps kSteps[] = {Steps::kFused, Steps::kAutograd};

// Warm-ups as a capture on a GPU has them. The reference ops throw where the clock runs beyond the order or the tables.
void expect_warm_ups_within_the_epoch(Steps steps, int64_t images) {
  EngineOptions options;
  options.steps = steps;
  SmallRun plain(images, options);
  int captures = 0;
  options.capture_with = [&](const Repeatable& work) {
    warm_up(work);
    ++captures;
    return work.run;
  };
  SmallRun captured(images, options);
  plain.train();
  captured.train();
  EXPECT_EQ(captures, images % kBatch == 0 || images < kBatch ? 1 : 2) << images << " images";
  EXPECT_EQ(worst_difference(captured, plain), 0) << images << " images";
  EXPECT_EQ(captured.losses(), plain.losses()) << images << " images";
}

TEST(CapturedSteps, WarmUpsStayWithinTheEpoch) {
  for (const Steps steps : kSteps) {
    for (const int64_t images : kImages) expect_warm_ups_within_the_epoch(steps, images);
  }
}

void expect_no_trace_of_timing(Steps steps, int64_t images) {
  EngineOptions options;
  options.steps = steps;
  SmallRun run(images, options), untouched(images, options);
  run.engine().start_epoch(0, 0, 0);
  EXPECT_EQ(run.engine().first_batch(), std::min(images, kBatch));
  EXPECT_GT(run.engine().time_step(Phase::kUpdate, 5), 0) << images << " images";
  EXPECT_GT(run.engine().time_step(Phase::kForward, 2), 0) << images << " images";
  EXPECT_GT(run.engine().time_convolutions(2), 0) << images << " images";
  EXPECT_EQ(worst_difference(run, untouched), 0) << images << " images";
}

TEST(CapturedSteps, TimingLeavesNoTraceInShortEpochs) {
  for (const Steps steps : kSteps) {
    for (const int64_t images : kImages) expect_no_trace_of_timing(steps, images);
  }
}

// Parts of batches, a smaller last batch, a test set: two ways to the same numbers, but for rounding.
TEST(CapturedSteps, OfAutogradAreTheFusedOnes) {
  for (const int64_t accumulate : {1, 3}) {
    EngineOptions options;
    options.accumulate = accumulate;
    options.objective.label_smoothing = 0.1;
    SmallRun fused(21, options);
    options.steps = Steps::kAutograd;
    SmallRun autograd(21, options);
    fused.train();
    autograd.train();
    EXPECT_LT(worst_difference(autograd, fused), 2e-3);
    for (size_t i = 0; i < fused.losses().size(); ++i) {
      EXPECT_NEAR(autograd.losses()[i], fused.losses()[i], 1e-3 * fused.losses()[i]);
    }
    const std::vector<nn::AttentionMode> modes = {nn::AttentionMode::kSoft, nn::AttentionMode::kHard};
    const auto expected = fused.engine().test(modes), got = autograd.engine().test(modes);
    for (size_t i = 0; i < modes.size(); ++i) {
      EXPECT_NEAR(got->at(i).loss, expected->at(i).loss, 1e-2 * expected->at(i).loss);
      EXPECT_EQ(got->at(i).images, 4);
    }
  }
}

// Mixed images, a teacher and another decay of logits.
EngineOptions taught_options(const SmallRun& teacher, int64_t images) {
  EngineOptions options;
  options.objective = {0.1, 0.6, 3};
  options.teacher = teacher.module();
  options.teacher->eval();
  options.update.logit_decay = 0.25;
  const int64_t steps = kEpochs * ((images + kBatch - 1) / kBatch);
  for (int64_t step = 0; step <= steps; ++step) {
    options.mixes.push_back(draw_mix({0.8, 1.0}, options.view.size, /*seed=*/5, step));
  }
  return options;
}

TEST(TaughtSteps, OfAutogradAreTheFusedOnes) {
  const SmallRun teacher(8, {}, "conv");
  for (const int64_t accumulate : {1, 3}) {
    EngineOptions options = taught_options(teacher, 21);
    options.accumulate = accumulate;
    SmallRun fused(21, options);
    options.steps = Steps::kAutograd;
    SmallRun autograd(21, options);
    fused.train();
    autograd.train();
    // Where rounding decides on which side of its corner a ReLU is, one of a few images, a weight may differ by more.
    EXPECT_LT(worst_difference(autograd, fused), 2e-2);
    for (size_t i = 0; i < fused.losses().size(); ++i) {
      EXPECT_NEAR(autograd.losses()[i], fused.losses()[i], 1e-3 * fused.losses()[i]);
    }
  }
}

TEST(TaughtSteps, LeaveNoTraceOfWarmUps) {
  const SmallRun teacher(8, {}, "conv");
  for (const Steps steps : kSteps) {
    EngineOptions options = taught_options(teacher, 21);
    options.steps = steps;
    SmallRun plain(21, options);
    options.capture_with = [&](const Repeatable& work) {
      warm_up(work);
      return work.run;
    };
    SmallRun captured(21, options);
    plain.train();
    captured.train();
    EXPECT_EQ(worst_difference(captured, plain), 0);
    EXPECT_EQ(captured.losses(), plain.losses());
  }
}

// Steps of 5 ms and 50 ms for them: ten at most, where a thousand are asked for.
TEST(CapturedSteps, TimingEndsInTimeWhateverTheRepeats) {
  int steps = 0;
  EngineOptions options;
  options.timing_seconds = 0.05;
  options.capture_with = [&](const Repeatable&) {
    return [&] {
      ++steps;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    };
  };
  SmallRun run(kBatch, options);
  run.engine().start_epoch(0, 0, 0);
  EXPECT_GE(run.engine().time_step(Phase::kUpdate, 1000), 0.005);
  EXPECT_GT(steps, 2);  // one to warm up, one to see how long it takes
  EXPECT_LE(steps, 2 + 10);
  steps = 0;
  run.engine().time_step(Phase::kUpdate, 3);
  EXPECT_LE(steps, 2 + 3);
  // Slower than the bound: once is enough.
  steps = 0;
  options.timing_seconds = 0.001;
  SmallRun slow(kBatch, options);
  slow.engine().start_epoch(0, 0, 0);
  EXPECT_GE(slow.engine().time_convolutions(1000), 0.005);
  EXPECT_EQ(steps, 2 + 1);
}

class CapturedOnGpu : public ::testing::TestWithParam<std::tuple<int64_t, torch::ScalarType, Steps>> {
 protected:
  void SetUp() override {
    if (!torch::cuda::is_available() || cuda_ops() == nullptr) GTEST_SKIP() << "skipped: no GPU";
    at::globalContext().setBenchmarkCuDNN(false);
    at::globalContext().setDeterministicCuDNN(true);
    at::globalContext().setAllowTF32CuDNN(false);
  }
  void TearDown() override { at::globalContext().setDeterministicCuDNN(false); }
};

TEST_P(CapturedOnGpu, EqualsStepsOneByOne) {
  const auto [images, type, steps] = GetParam();
  EngineOptions options;
  options.steps = steps;
  options.device = torch::kCUDA;
  options.type = type;
  options.capture = false;
  SmallRun plain(images, options);
  options.capture = true;
  SmallRun captured(images, options);
  plain.train();
  captured.train();
  EXPECT_LT(worst_difference(captured, plain), type == torch::kFloat32 ? 1e-3 : 3e-2);
  for (size_t i = 0; i < plain.losses().size(); ++i) {
    EXPECT_NEAR(captured.losses()[i], plain.losses()[i], 1e-2 * plain.losses()[i]);
  }
  EXPECT_GT(captured.engine().time_step(Phase::kUpdate, 4), 0);
  torch::cuda::synchronize();
}

TEST_P(CapturedOnGpu, TaughtStepsToo) {
  const auto [images, type, steps] = GetParam();
  EngineOptions of_teacher;
  of_teacher.device = torch::kCUDA;
  const SmallRun teacher(8, of_teacher, "conv");
  EngineOptions options = taught_options(teacher, images);
  options.steps = steps;
  options.device = torch::kCUDA;
  options.type = type;
  options.capture = false;
  SmallRun plain(images, options);
  options.capture = true;
  SmallRun captured(images, options);
  plain.train();
  captured.train();
  EXPECT_LT(worst_difference(captured, plain), type == torch::kFloat32 ? 1e-3 : 3e-2);
  for (size_t i = 0; i < plain.losses().size(); ++i) {
    EXPECT_NEAR(captured.losses()[i], plain.losses()[i], 1e-2 * plain.losses()[i]);
  }
  torch::cuda::synchronize();
}

// scripts/check-cuda runs some of these under compute-sanitizer, by name.
INSTANTIATE_TEST_SUITE_P(Images, CapturedOnGpu,
                         ::testing::Combine(::testing::ValuesIn(kImages),
                                            ::testing::Values(torch::kFloat32, torch::kBFloat16),
                                            ::testing::Values(Steps::kFused, Steps::kAutograd)),
                         [](const auto& tested) {
                           return fmt::format("{}_{}{}", std::get<0>(tested.param),
                                              std::get<1>(tested.param) == torch::kFloat32 ? "fp32" : "bf16",
                                              std::get<2>(tested.param) == Steps::kFused ? "" : "_autograd");
                         });

}  // namespace
}  // namespace onetap::fused
