#include "tools/onetap/network_argument.h"

#include "onetap/graph/text.h"
#include "onetap/graph/zoo/zoo.h"
#include "onetap/recipe/recipe.h"
#include "tools/onetap/offered_words.h"

#include <algorithm>

namespace onetap::tool {
namespace {

// The method, a key of one, or the layers that get it.
bool names_method(const RecipeFlags& flags) {
  std::vector<std::string> keys = recipe_method_keys();
  keys.insert(keys.end(), {"method", "layers"});
  const auto& given = flags.given();
  return std::any_of(keys.begin(), keys.end(), [&](const std::string& key) { return given.count(key) != 0; });
}

// A file says itself what its layers are: what `nets --text` printed counts as what it was printed from.
Graph as_written(const std::string& path, int64_t classes) {
  Graph graph = read_network(path);
  graph.check_classifier(classes);
  return graph;
}

}  // namespace

void NetworkArgument::add(CLI::App& verb, const std::string& help, bool with_layers) {
  verb.add_option("NETWORK", name, help)->check(offered(architecture_words()))->option_text("TEXT");
  std::vector<std::string> keys = {"width", "kernel", "expansion", "shortcut", "image_size", "method"};
  for (std::string& key : recipe_method_keys()) keys.push_back(std::move(key));
  if (with_layers) keys.push_back("layers");
  flags.add(verb, keys);
  verb.add_option("--classes", classes, "outputs of the network (default: the architecture's own)")
      ->check(CLI::Range(1, 1 << 20))
      ->option_text("N");
}

Graph NetworkArgument::build() const {
  Recipe recipe;
  flags.apply(recipe);
  recipe.arch = name;
  check_recipe(recipe);
  int64_t outputs = classes;
  if (!is_network_file(name)) {
    const ZooEntry& entry = find_architecture(name);
    if (outputs == 0) outputs = entry.default_classes;
    if (!names_method(flags)) recipe.method = entry.usual_method;
  } else if (!names_method(flags)) {
    return as_written(name, outputs);
  }
  return recipe_network(recipe, outputs, recipe.image_size.value_or(0));
}

}  // namespace onetap::tool
