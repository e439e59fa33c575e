// A recipe: everything that decides how a run goes, as one flat set of named values.
//
// The table of fields in fields.cpp is the only place that knows them all; the TOML reader and writer, the
// command line, the checks and the docs walk it.
#pragma once

#include "onetap/base/per_colour.h"
#include "onetap/graph/graph.h"
#include "onetap/graph/method_table.h"
#include "onetap/recipe/choices.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace onetap {

struct Recipe {
  // Network.
  std::string arch = "resnet20";
  std::optional<int64_t> width;
  std::optional<int64_t> kernel;
  std::optional<int64_t> expansion;
  Shortcut shortcut = Shortcut::kB;
  std::optional<int64_t> image_size;
  InitRule weight_init = InitRule::kDefault;
  std::string init;
  std::string init_skip;
  std::string freeze_layers;
  std::string shift_table = "uniform";

  // Method.
  std::string method = "sal";
  std::map<std::string, std::string> method_keys;  // taps, share, ...; one that is not there has its default
  std::string layers;
  Binarize binarize = Binarize::kHard;
  double t0 = 6.7;
  double t1 = 0.02;
  double t_end = 1;
  double harden = 1;
  std::optional<double> alpha;
  double t_floor = 0;
  Quantize quantize = Quantize::kNone;

  // Data.
  std::string data = "shapes";
  int64_t limit = 0;
  double validation = 0;
  bool strict = false;
  std::optional<PerColour> mean;  // of pixels from 0 to 1; nothing: that of the data
  std::optional<PerColour> sd;
  AugmentChoice augment = AugmentChoice::kAuto;
  int64_t pad = 4;
  bool flip = true;
  int64_t cutout = 0;
  double jitter = 0;
  double mixup = 0;
  double cutmix = 0;

  // Optimisation.
  int64_t epochs = 300;
  int64_t extend = 0;
  std::optional<double> extend_lr;
  int64_t patience = 0;
  int64_t batch_size = 128;
  int64_t accumulate = 1;
  OptimizerChoice optimizer = OptimizerChoice::kSgd;
  double lr = 0.1;
  LrSchedule schedule = LrSchedule::kStep;
  std::optional<int64_t> lr_every;
  std::string lr_milestones;
  double lr_factor = 0.1;
  double lr_final = 0;
  double warmup_epochs = 0;
  double momentum = 0.9;
  bool nesterov = false;
  bool restart_momentum = false;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double weight_decay = 5e-4;
  bool decay_norms = true;
  double logit_decay = 1;
  double shift_lr = 0.01;
  double label_smoothing = 0;
  std::string teacher;
  double teacher_weight = 0.9;
  double teacher_temperature = 4;
  bool sync_norm = false;
  double ema = 0;
  int64_t recalibrate = 0;

  // Run.
  uint64_t seed = 0;
  int64_t threads = 0;
  int64_t workers = 0;
  std::string device = "auto";
  Precision precision = Precision::kAuto;
  EngineChoice engine = EngineChoice::kAuto;
  bool cuda_graph = true;
  int64_t conv_trials = 10;
  int64_t eval_every = 1;
  int64_t checkpoint_epochs = 1;
  int64_t checkpoint_steps = 0;
  int64_t keep_checkpoints = 2;

  // Those of the schedule, and those that the run was extended by.
  int64_t all_epochs() const { return epochs + extend; }

  bool operator==(const Recipe& other) const;
};

using RecipeMember =
    std::variant<std::string Recipe::*, int64_t Recipe::*, uint64_t Recipe::*, double Recipe::*, bool Recipe::*,
                 std::optional<int64_t> Recipe::*, std::optional<double> Recipe::*, std::optional<PerColour> Recipe::*,
                 Shortcut Recipe::*, InitRule Recipe::*, Binarize Recipe::*, AugmentChoice Recipe::*,
                 OptimizerChoice Recipe::*, LrSchedule Recipe::*, Precision Recipe::*, EngineChoice Recipe::*,
                 Quantize Recipe::*>;

struct RecipeField {
  const char* key;    // in TOML; the flag is the same with dashes
  const char* group;  // heading in help texts
  const char* help;
  RecipeMember member;
  double low = 0, high = 0;           // allowed range of a number, both ends included
  std::vector<std::string> choices;   // allowed words; empty for any text
  bool may_change_on_resume = false;  // does not alter what is computed
  // Set where the table of methods brings the field: Recipe::method_keys holds its value, and `member` says nothing.
  const MethodKey* method_key = nullptr;

  bool is_text() const;        // words and other texts, which TOML quotes
  bool is_per_colour() const;  // three numbers; an empty text sets none
  // Whether TOML and JSON have this value in quotes: every text, and what is no number of a field that takes both.
  bool is_quoted(std::string_view value) const;
  std::string flag() const;  // "--batch-size"
  // The flag that sets the field to a value: "--t1=0.02", "--no-flip".
  std::string flag_with(const std::string& value) const;
  const char* value_name() const;  // "N", "X", "N|NxM|all", "R,G,B", "TEXT" or "" for a switch
};

const std::vector<RecipeField>& recipe_fields();
const RecipeField* find_recipe_field(std::string_view key);
// kUsage naming `where` and, for a typing error, the nearest key.
const RecipeField& known_recipe_field(std::string_view key, std::string_view where);

// Sets one field from text; kUsage naming `where` if the text does not fit the field.
void set_recipe_field(Recipe& recipe, const RecipeField& field, std::string_view text, std::string_view where);

// The field as text, or "" for an optional one that is not set.
std::string recipe_field_text(const Recipe& recipe, const RecipeField& field);

// Keys of `text` over `recipe`; returns the keys it sets. kUsage with line and, for an unknown key, the nearest
// known one. A table [provenance] is passed over: it records where a resolved recipe came from.
std::vector<std::string> apply_recipe_text(Recipe& recipe, std::string_view text, std::string_view label);
Recipe read_recipe(const std::filesystem::path& path);

// The words of that table: where a resolved recipe came from. None for a text that is no recipe.
std::map<std::string, std::string> recipe_provenance(std::string_view text);

// One line a field, grouped, such that apply_recipe_text gives the same recipe back.
std::string recipe_text(const Recipe& recipe);

// A string as TOML writes it, quotes and escapes included.
std::string toml_string(std::string_view text);

// Checks ranges, choices and what only makes sense together; kUsage otherwise.
void check_recipe(const Recipe& recipe);

// Keys of recipes that methods have: taps, share, ...
std::vector<std::string> recipe_method_keys();

// The data set with its limit, validation share and strictness, as open_data() takes it.
std::string recipe_data(const Recipe& recipe);

// The epochs of lr_milestones, which need not be whole. kUsage unless they are above 0 and rise.
std::vector<double> recipe_milestones(const Recipe& recipe);

// What the recipe says about the method, as the graph stores it.
Method recipe_method(const Recipe& recipe);

// The network the recipe names (zoo or text file) for this many classes, with the method applied.
// Zoo networks take `image_size` (0: the recipe's or the architecture's own).
Graph recipe_network(const Recipe& recipe, int64_t classes, int64_t image_size);

// True if `arch` is a path to a network text file rather than a name of the zoo.
bool is_network_file(const std::string& arch);

// The run (or .tap file) that the proportions of fixed shifts come from; none: uniform.
std::optional<std::string> shift_table_run(const Recipe& recipe);

// The paths of a network file, of initial weights, of the teacher and of the shift table made absolute, so that a run
// resumes from any directory.
void make_paths_absolute(Recipe& recipe);

}  // namespace onetap
