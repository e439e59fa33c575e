#include "tools/onetap/init_run.h"

#include "onetap/base/safetensors.h"
#include "onetap/base/text.h"
#include "onetap/data/source.h"
#include "onetap/journal/run_files.h"
#include "onetap/tap/tap_file.h"

#include <fmt/format.h>

#include <filesystem>

namespace fs = std::filesystem;

namespace onetap::tool {
namespace {

class TakeOver {
 public:
  TakeOver(RecipeRequest& request, const Recipe& run) : request_(request), run_(run) {}

  bool is_named(const std::string& key) const { return request_.keys.count(key) != 0; }

  void take(const std::string& key) {
    const RecipeField& field = *find_recipe_field(key);
    const std::string value = recipe_field_text(run_, field);
    if (is_named(key) || value.empty()) return;
    const bool is_usual = value == recipe_field_text(request_.recipe, field);
    set_recipe_field(request_.recipe, field, value, field.key);
    if (!is_usual || key == "arch" || key == "method" || key == "data") taken_.push_back(key + " " + value);
  }

  std::string text() const { return join(taken_, ", "); }

 private:
  RecipeRequest& request_;
  const Recipe& run_;
  std::vector<std::string> taken_;
};

// Nothing where nobody knows.
std::optional<Normalisation> pixels_of(const std::string& init) {
  std::error_code ignored;
  if (fs::is_directory(init, ignored)) {
    const RunFiles files(init);
    if (!files.holds_run()) return std::nullopt;  // whoever reads its weights says so
    const Recipe run = files.read_config();
    return usual_normalisation(run.data, run.mean, run.sd);
  }
  const auto pixels = find_pixels(SafetensorsFile::read(init).metadata(), init);
  if (!pixels) return std::nullopt;
  return Normalisation{pixels->mean, pixels->sd};
}

// Whether the user's method is the run's, or there is none.
bool keeps_method(const RecipeRequest& request, const Recipe& run) {
  return request.keys.count("method") == 0 || request.recipe.method == run.method;
}

}  // namespace

std::string take_from_init_run(RecipeRequest& request) {
  const std::string source = request.recipe.init;
  std::error_code ignored;
  if (source.empty() || request.keys.count("arch") != 0 || !fs::is_directory(source, ignored)) return "";
  const RunFiles files(source);
  Recipe run = files.read_config();
  const bool keeps = keeps_method(request, run);
  // The file that a network came from may be gone; the run's own copy has the run's methods in it.
  if (is_network_file(run.arch) && keeps) run.arch = files.network().string();
  TakeOver over(request, run);
  for (const char* key : {"arch", "width", "kernel", "expansion", "shortcut", "image_size", "shift_table"}) {
    over.take(key);
  }
  if (keeps) {
    over.take("method");
    for (const MethodKey& key : find_method(run.method)->keys) over.take(key.in_recipes());
    over.take("layers");
  }
  if (!over.is_named("data")) {
    for (const char* key : {"data", "limit", "validation", "strict"}) over.take(key);
  }
  return fmt::format("taken from {}: {}", source, over.text());
}

std::string take_pixels_of_init(Recipe& recipe) {
  if (recipe.init.empty() || (recipe.mean && recipe.sd)) return "";
  const auto known = pixels_of(recipe.init);
  if (!known) return "";
  const Normalisation usual = usual_normalisation(recipe.data, recipe.mean, recipe.sd);
  if (known->mean == usual.mean && known->sd == usual.sd) return "";
  std::vector<std::string> taken;
  const auto take = [&](const char* key, const PerColour& from, std::optional<PerColour>& to) {
    if (to) return;
    to = from;
    taken.push_back(fmt::format("{} {}", key, per_colour_text(from)));
  };
  take("mean", known->mean, recipe.mean);
  take("sd", known->sd, recipe.sd);
  if (taken.empty()) return "";
  return fmt::format("pixels are scaled with {}, from {} (--mean, --sd)", join(taken, " and "), recipe.init);
}

}  // namespace onetap::tool
