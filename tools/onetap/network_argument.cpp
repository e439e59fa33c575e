#include "tools/onetap/network_argument.h"

#include "onetap/graph/zoo/zoo.h"
#include "onetap/recipe/recipe.h"

namespace onetap::tool {

void NetworkArgument::add(CLI::App& verb, const std::string& help, bool with_layers) {
  verb.add_option("NETWORK", name, help);
  std::vector<std::string> keys = {"width", "kernel", "shortcut", "image_size", "method"};
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
  const bool from_zoo = classes == 0 && !is_network_file(name);
  return recipe_network(recipe, from_zoo ? find_architecture(name).default_classes : classes,
                        recipe.image_size.value_or(0));
}

}  // namespace onetap::tool
