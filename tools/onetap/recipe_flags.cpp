#include "tools/onetap/recipe_flags.h"

#include "onetap/base/text.h"

#include <algorithm>

namespace onetap::tool {

void RecipeFlags::add(CLI::App& app, const std::vector<std::string>& keys) {
  const Recipe defaults;
  for (const RecipeField& field : recipe_fields()) {
    if (!keys.empty() && std::find(keys.begin(), keys.end(), field.key) == keys.end()) continue;
    const std::string key = field.key;
    const std::string usual = recipe_field_text(defaults, field);
    CLI::Option* option = nullptr;
    if (std::holds_alternative<bool Recipe::*>(field.member)) {
      const std::string names = field.flag() + ",!--no-" + field.flag().substr(2);
      option = app.add_flag_function(
          names, [this, key](int64_t count) { given_[key] = count > 0 ? "true" : "false"; },
          std::string(field.help) + (usual == "true" ? " (default: yes)" : ""));
    } else {
      option = app.add_option_function<std::string>(
          field.flag(), [this, key](const std::string& value) { given_[key] = value; }, field.help);
      std::string shape = field.choices.empty() ? field.value_name() : join(field.choices, "|");
      if (!usual.empty()) shape += " [" + usual + "]";
      option->option_text(shape)->take_last();
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

}  // namespace onetap::tool
