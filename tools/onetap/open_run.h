// A run's trained network, loaded: what several verbs begin with.
#pragma once

#include "onetap/batches/batch_stream.h"
#include "onetap/journal/run_files.h"
#include "onetap/nn/graph_module.h"
#include "onetap/recipe/recipe.h"
#include "onetap/train/checkpoint.h"
#include "tools/onetap/opened_data.h"

#include <CLI/CLI.hpp>

#include <string>

namespace onetap::tool {

// The flags by which a verb chooses what of a run it looks at, and on what.
struct RunArguments {
  std::string verb_name;  // for messages
  std::string run;
  std::string checkpoint = "last";
  std::string data;
  std::string device = "auto";
  int64_t threads = 0;
  int64_t images = 0;
  bool no_ema = false;

  enum class Where { kAnyDevice, kCpu };
  void add(CLI::App& verb, Where where);
  int64_t thread_count() const;
};

struct OpenRun {
  Recipe recipe;
  Graph graph;
  Checkpoint checkpoint;
  std::shared_ptr<const DataSource> source;  // null from open_network()
  torch::Device device = torch::kCPU;
  nn::GraphModule module{nullptr};

  StreamOptions test_stream() const;
};

// Reads the weights of the checkpoint that `which` names; where the newest is damaged, a warning says which is used.
Checkpoint open_checkpoint(const RunFiles& files, const std::string& which, nn::GraphModule& module,
                           KeptWeights weights = KeptWeights::kAveraged);

// For the metadata of weights that leave a run: the mean and sd that it was trained with.
Metadata pixel_metadata_of(const Recipe& recipe);

// The flag --no-ema.
void add_ema_flag(CLI::App& verb, bool& no_ema);

// The same error with the checkpoint that it is about.
Error at_checkpoint(const Error& problem, const OpenRun& run);

// Reads the checkpoint alone; sets LibTorch's threads.
OpenRun open_network(const RunArguments& arguments);

// Reads checkpoint and data; sets LibTorch's threads.
OpenRun open_run(const RunArguments& arguments, OpenedData& opened);

}  // namespace onetap::tool
