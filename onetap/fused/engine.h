// Training with the data on the device, and on a GPU every step one replay of a captured graph. The steps are fused
// ones or those of autograd.
#pragma once

#include "onetap/data/dataset.h"
#include "onetap/data/mix.h"
#include "onetap/data/transform.h"
#include "onetap/fused/capture.h"
#include "onetap/fused/source.h"
#include "onetap/fused/step_network.h"
#include "onetap/fused/teacher.h"
#include "onetap/nn/graph_module.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace onetap::fused {

enum class Steps {
  kFused,     // by Network, for graphs without an engine_obstacle()
  kAutograd,  // by AutogradNetwork, for every graph
};

struct EngineOptions {
  Steps steps = Steps::kFused;
  torch::Device device = torch::kCPU;
  torch::ScalarType type = torch::kFloat32;  // of activations
  bool capture = true;                       // CUDA: steps as captured graphs
  // If given, makes the steps to replay, on any device and in place of capture_graph(): for tests.
  std::function<std::function<void()>(const Repeatable&)> capture_with;
  int64_t batch_size = 128;
  int64_t accumulate = 1;  // parts that a batch is computed in
  uint64_t seed = 0;
  View view;
  AugmentOptions augment;
  nn::Objective objective;
  nn::GraphModule teacher{nullptr};  // on the device, dense, in evaluation mode; null: none
  UpdateOptions update;
  std::vector<nn::ParameterRule> rules;             // of the module's parameters, in order
  std::vector<float> learning_rates, temperatures;  // of every step of the run, and one more
  std::vector<Mix> mixes;                           // likewise; empty: images are not mixed
  // For data that are streamed: threads that read them, and whether to give up waiting for a batch
  // (StreamOptions::stopped).
  int64_t workers = 1;
  std::function<bool()> stopped;
  double timing_seconds = 2;  // of time_step() and time_convolutions(), about: slow steps are repeated less often
  // Several processes: each takes its part of every batch, and steps are those of all together. Must outlive the
  // engine.
  RankGroup* ranks = nullptr;
};

// Whether the data come from streams: images of many sizes, or such as have to be resized.
bool is_streamed(const DataSource& source, const EngineOptions& options);

// Why a network has no fused steps; empty: it has.
std::string engine_obstacle(const Graph& graph);

// Added up over images.
struct Sums {
  double loss = 0;
  int64_t right = 0;
  int64_t images = 0;
};

// The phases of a step, in order.
enum class Phase { kSample, kPack, kForward, kLoss, kBackward, kUpdate };

class Engine {
 public:
  // `module` is on the device; `momenta` are its optimiser's, named as the parameters are.
  Engine(nn::GraphModule module, const nn::NamedTensors& momenta, const DataSource& source,
         const EngineOptions& options);
  ~Engine();

  // Places the run before step `first` of an epoch, `steps_done` steps after its start; `so_far` is of this epoch.
  void start_epoch(int64_t epoch, int64_t first, int64_t steps_done, const Sums& so_far = {});
  // So many steps of the epoch. Returns when they are under way, with their number: fewer if options.stopped ended a
  // wait for data. `after_step`, if given, is called after each, with its number in the run; the first is 1.
  int64_t run(int64_t steps, const std::function<void(int64_t)>& after_step = {});
  // Of the epoch and of all ranks, with what it began with; waits for the steps. They are added up step by step on the
  // device, so they do not depend on when they were asked for.
  Sums sums() const;

  // Seconds of the epoch that the device waited for data, since start_epoch().
  double waited() const { return train_->waited(); }

  int64_t test_images() const { return test_->images(); }
  // Over the test set, by running statistics and in each of these modes; the module is soft afterwards. `progress` as
  // in evaluate(). Ranks share the batches and get the sums of all.
  std::optional<std::vector<Sums>> test(const std::vector<nn::AttentionMode>& modes,
                                        const std::function<bool(int64_t)>& progress = {});

  // Images of the epoch's first step: a whole batch, unless the set has fewer.
  int64_t first_batch() const { return train_->count(0); }
  // Seconds of a step of first_batch() images up to the end of a phase, and of the convolutions of a step alone:
  // forward and both gradients. What is trained stays as it was.
  double time_step(Phase last, int64_t repeats);
  double time_convolutions(int64_t repeats);

 private:
  std::unique_ptr<SampleSource> make_source(const DataSource& source, bool train) const;
  void step(int64_t count, Phase last = Phase::kUpdate);
  // This rank's images of a step, all of them, for they are mixed with each other.
  Sample mixed_sample(const Portion& mine, nn::Targets& targets);
  // Does `work` and leaves no trace of it in what is trained.
  void without_trace(const std::function<void()>& work);
  // To the start of the epoch and of the schedule.
  void rewind();
  // What does `work`: on a GPU a captured graph of it.
  std::function<void()> replayable(const std::function<void()>& work);
  double time(const std::function<void()>& work, int64_t repeats);
  // False if options.stopped ended the wait for its images.
  bool replay(int64_t count);

  EngineOptions options_;
  std::shared_ptr<Ops> ops_;
  nn::GraphModule module_;
  nn::NamedTensors momenta_;
  std::unique_ptr<StepNetwork> network_;
  std::unique_ptr<Teacher> teacher_;  // null: none
  std::unique_ptr<SampleSource> train_, test_;
  StepValues values_;
  torch::Tensor tables_, counter_;
  LossState loss_;
  Part part_;                                        // of this rank
  std::unique_ptr<GradientSum> reduce_;              // over ranks; null: one process
  int64_t at_ = 0;                                   // step of the epoch
  int64_t steps_done_ = 0;                           // of the run
  int64_t images_ = 0;                               // of the epoch
  std::map<int64_t, std::function<void()>> graphs_;  // by the images of a step
};

}  // namespace onetap::fused
