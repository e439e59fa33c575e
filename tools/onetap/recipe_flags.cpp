#include "tools/onetap/recipe_flags.h"

#include "onetap/base/fail.h"
#include "onetap/base/file.h"
#include "onetap/base/text.h"
#include "onetap/data/source.h"
#include "tools/onetap/console.h"
#include "tools/onetap/offered_words.h"
#include "tools/onetap/recipe_file.h"

#include <fmt/format.h>

#include <algorithm>

namespace onetap::tool {
namespace {

// What shells offer for it. The field's own check has better messages than a validator.
std::vector<std::string> words_of(const RecipeField& field) {
  const std::string_view key = field.key;
  if (key == "arch") return architecture_words();
  if (key == "data") return data_words();
  if (key == "device") return device_words();
  return field.choices;
}

// --epochs may leave less than a recipe's warm-up, which then keeps its share of the run.
void shorten_warmup(const RecipeFlags& flags, const Recipe& before, Recipe& recipe) {
  const auto& given = flags.given();
  const auto epochs = static_cast<double>(recipe.epochs), planned = static_cast<double>(before.epochs);
  if (given.count("epochs") == 0 || given.count("warmup_epochs") > 0) return;
  if (recipe.warmup_epochs <= epochs || before.warmup_epochs > planned) return;
  recipe.warmup_epochs = before.warmup_epochs * epochs / planned;
  console().note(
      fmt::format("the warm-up of the recipe, {:g} of {} epochs, is shortened to {:g} of {} (--warmup-epochs)",
                  before.warmup_epochs, before.epochs, recipe.warmup_epochs, recipe.epochs));
}

}  // namespace

void RecipeFlags::add(CLI::App& app, const std::vector<std::string>& keys) {
  const Recipe defaults;
  for (const RecipeField& field : recipe_fields()) {
    if (!keys.empty() && std::find(keys.begin(), keys.end(), field.key) == keys.end()) continue;
    const std::string key = field.key;
    const std::string usual = recipe_field_text(defaults, field);
    CLI::Option* option = nullptr;
    if (std::holds_alternative<bool Recipe::*>(field.member)) {
      const std::string names = field.flag_with("true") + ",!" + field.flag_with("false");
      option = app.add_flag_function(
          names, [this, key](int64_t count) { given_[key] = count > 0 ? "true" : "false"; },
          std::string(field.help) + (usual == "true" ? " (default: yes)" : ""));
    } else {
      option = app.add_option_function<std::string>(
          field.flag(), [this, key](const std::string& value) { given_[key] = value; }, field.help);
      std::string shape = field.choices.empty() ? field.value_name() : join(field.choices, "|");
      if (!usual.empty()) shape += " [" + usual + "]";
      option->option_text(shape)->take_last();
      const std::vector<std::string> words = words_of(field);
      if (!words.empty()) option->check(offered(words));
    }
    option->group(field.group);
  }
}

void RecipeFlags::apply(Recipe& recipe) const {
  for (const auto& [key, value] : given_) {
    const RecipeField* field = find_recipe_field(key);
    set_recipe_field(recipe, *field, value, field->flag());
  }
}

RecipeRequest read_recipe_request(const std::string& path, const RecipeFlags& flags) {
  RecipeRequest request;
  if (!path.empty()) {
    const std::string place = recipe_place(path).string();
    const auto keys = apply_recipe_text(request.recipe, read_file(place, 1u << 20), place);
    request.keys.insert(keys.begin(), keys.end());
  }
  const Recipe before = request.recipe;
  flags.apply(request.recipe);
  shorten_warmup(flags, before, request.recipe);
  for (const auto& [key, value] : flags.given()) request.keys.insert(key);
  if (request.recipe.optimizer == OptimizerChoice::kAdamW) {
    // The defaults of the fields are SGD's.
    constexpr double kRate = 1e-3, kDecay = 0.01;
    if (request.keys.count("lr") == 0) request.recipe.lr = kRate;
    if (request.keys.count("weight_decay") == 0) request.recipe.weight_decay = kDecay;
  }
  return request;
}

Recipe merge_for_resume(Recipe started, const RecipeRequest& request, std::string_view kind,
                        const std::string& directory) {
  Recipe asked = request.recipe;
  asked.data = absolute_data_spec(asked.data);
  make_paths_absolute(asked);
  for (const std::string& key : request.keys) {
    const RecipeField& field = *find_recipe_field(key);
    const std::string now = recipe_field_text(asked, field), then = recipe_field_text(started, field);
    const bool left_open = now == "auto" || (now.empty() && field.is_per_colour()) ||
                           (now == "0" && (key == "threads" || key == "workers"));
    if (now == then || left_open) continue;
    if (!field.may_change_on_resume) {
      fail_usage("[{0}] {1} was started with {2} = {3}, got {4}: a resumed {0} keeps its recipe", kind, directory, key,
                 then.empty() ? "(unset)" : then, now);
    }
    set_recipe_field(started, field, now, field.flag());
  }
  return started;
}

}  // namespace onetap::tool
