#include "onetap/reproduce/experiment.h"

#include "onetap/base/fail.h"
#include "onetap/base/text.h"
#include "onetap/reproduce/rows.h"

#include <algorithm>
#include <cmath>

namespace onetap {
namespace {

// Passes over the data that are scaled with the length of a training.
constexpr const char* kInEpochs[] = {"epochs", "lr_every", "warmup_epochs"};

int64_t scaled(double epochs, double scale) {
  return std::max<int64_t>(1, std::llround(epochs * scale));
}

std::string scaled_list(std::string_view epochs, double scale) {
  std::vector<std::string> parts;
  for (const std::string_view part : split(epochs, ',')) {
    parts.push_back(fmt::format("{:.6g}", parse_double(part).value_or(1) * scale));  // they need not be whole
  }
  return join(parts, ",");
}

std::vector<Experiment> all_experiments() {
  std::vector<Experiment> list = paper_tables();
  for (auto&& more : {paper_figures(), own_experiments()}) list.insert(list.end(), more.begin(), more.end());
  return list;
}

}  // namespace

const ExperimentData& experiment_data(std::string_view name) {
  static const std::vector<ExperimentData> sets = {
      {"cifar10", "CIFAR-10", "cifar10", 50000, 10},
      {"cifar100", "CIFAR-100", "cifar100", 50000, 100},
      {"imagenet", "ImageNet", "folder", 1281167, 1000},
      {"shapes", "shapes", "shapes:train=2000,test=500", 2000, 10},
  };
  for (const ExperimentData& data : sets) {
    if (data.name == name) return data;
  }
  fail_usage("[reproduce] no experiment uses the data set '{}'", name);
}

std::string_view RunSpec::setting(std::string_view key) const {
  const auto found =
      std::find_if(settings.begin(), settings.end(), [&](const auto& setting) { return setting.first == key; });
  return found == settings.end() ? std::string_view() : found->second;
}

const std::vector<Experiment>& experiments() {
  static const std::vector<Experiment> list = all_experiments();
  return list;
}

std::vector<std::string> experiment_names() {
  std::vector<std::string> names;
  for (const Experiment& experiment : experiments()) names.push_back(experiment.name);
  return names;
}

const Experiment& find_experiment(std::string_view name) {
  for (const Experiment& experiment : experiments()) {
    if (experiment.name == name) return experiment;
  }
  fail_usage("[reproduce] unknown experiment '{}'{}; known: {}, all", name, did_you_mean(name, experiment_names()),
             join(experiment_names(), ", "));
}

Recipe experiment_recipe(const RunSpec& spec, double scale) {
  Recipe recipe;
  for (const auto& [key, value] : spec.settings) {
    std::string text = value;
    const bool counts_epochs = std::any_of(std::begin(kInEpochs), std::end(kInEpochs),
                                           [&key = key](const char* known) { return key == known; });
    if (counts_epochs) text = fmt::format("{}", scaled(parse_double(value).value_or(1), scale));
    if (key == "lr_milestones") text = scaled_list(value, scale);
    set_recipe_field(recipe, known_recipe_field(key, key), text, key);
  }
  return recipe;
}

std::optional<NetworkCount> experiment_counts(const RunSpec& spec) {
  if (spec.takes == RunSpec::Takes::kChannels) return std::nullopt;
  const Recipe recipe = experiment_recipe(spec, 1);
  return count_network(recipe_network(recipe, experiment_data(spec.data).classes, recipe.image_size.value_or(0)),
                       CountRules::kPaper);
}

}  // namespace onetap
