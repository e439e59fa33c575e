// The experiments of the paper, and some of ours, as data: which networks each of them trains, how, and what was
// published. Nothing here trains; plan.h makes jobs of it.
#pragma once

#include "onetap/count/count.h"
#include "onetap/recipe/recipe.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace onetap {

// A data set that experiments ask for by name.
struct ExperimentData {
  std::string name;   // "cifar10", "cifar100", "imagenet"; as `kind` of the built-in one: "shapes:train=..."
  std::string title;  // "CIFAR-10"
  std::string kind;   // what --data calls it: "cifar10", "folder", ...
  int64_t train_images = 0;
  int64_t classes = 0;
};
// kUsage for a name that no experiment uses.
const ExperimentData& experiment_data(std::string_view name);

// Keys of recipes and their values, in the order flags are given.
using Settings = std::vector<std::pair<std::string, std::string>>;

// Channel pruning, as `onetap prune` is told.
struct CutSpec {
  std::string by;      // l1, nisp, pcas
  std::string ratio;   // of the channels that go, or
  std::string preset;  // a name for published ratios
};

// One training, but for its seed, its place and the data's.
struct RunSpec {
  std::string data;   // a name of experiment_data()
  Settings settings;  // over the defaults of recipes; `epochs` is the whole schedule

  // What another run gives it, which must be trained first.
  enum class Takes {
    kNothing,
    kWeights,   // starts from its weights
    kShifts,    // has as many channels for each shift as that one's taps
    kChannels,  // is that network without some of its channels, fine-tuned
  };
  Takes takes = Takes::kNothing;
  std::shared_ptr<const RunSpec> source = nullptr;
  CutSpec cut = {};  // of kChannels
  // A run whose outputs it learns from, which must be trained first too; none if empty.
  std::shared_ptr<const RunSpec> teacher = nullptr;

  // The value of a key, or "".
  std::string_view setting(std::string_view key) const;
};

// What the paper prints. Nothing where it prints nothing.
struct Published {
  std::optional<double> accuracy = {};  // in percent
  std::optional<double> params = {};    // 32-bit words, as rounded there
  std::optional<double> macs = {};      // "FLOPs" in the paper's tables
};

struct ExperimentRow {
  std::string group;  // the first column of the paper's tables, or a curve of its figures
  std::string label;  // unique in its experiment together with the data set
  RunSpec run;
  Published published = {};
  std::string note = {};
  // Where a curve over a setting has this row: the panel and the place on its axis.
  std::string panel = {};
  std::optional<double> x = {};
};

enum class FigureKind {
  kSizes,        // accuracy against parameters
  kMemory,       // accuracy against parameters and activations
  kTemperature,  // accuracy against x, panel by panel
  kHeatmaps,     // where the taps of the first run are
};

struct Experiment {
  std::string name;   // as typed
  std::string title;  // "Table 1: ..."
  FigureKind figure = FigureKind::kSizes;
  std::vector<ExperimentRow> rows;
  bool in_all = true;           // one of `all`
  bool freezes = false;         // and tests the frozen files by the CPU runtime
  bool times = false;           // and takes the time of the frozen files
  bool rounds = false;          // accuracy of P > 0.5, as the paper's temperature figure has it
  std::string paper_maps = {};  // of kHeatmaps: name of the published maps (report/paper_heatmaps.h)
};

const std::vector<Experiment>& experiments();
// kUsage that lists all names for an unknown one.
const Experiment& find_experiment(std::string_view name);
std::vector<std::string> experiment_names();

// The recipe of a run: its settings, with epochs and everything counted in epochs multiplied by `scale`, at least 1.
// Seed, data and what a source gives are left to the caller.
Recipe experiment_recipe(const RunSpec& spec, double scale);

// Counts by the paper's rules. Nothing for a network that channel pruning makes: it is known once it is cut.
std::optional<NetworkCount> experiment_counts(const RunSpec& spec);

}  // namespace onetap
