#include "onetap/recipe/recipe.h"

#include "onetap/base/fail.h"
#include "onetap/base/text.h"
#include "onetap/graph/method.h"
#include "onetap/graph/text.h"
#include "onetap/graph/zoo/zoo.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace onetap {
namespace {

const std::string kFromRun = "from:";

std::string range_text(const RecipeField& field) {
  return field.high >= 1e9 ? fmt::format("of at least {}", field.low) : fmt::format("in {}..{}", field.low, field.high);
}

void check_number(const RecipeField& field, double value, std::string_view where) {
  if (!(value >= field.low && value <= field.high)) {
    fail_usage("[recipe] expected {} {}, got {}", where, range_text(field), value);
  }
}

void check_choice(const RecipeField& field, const std::string& value, std::string_view where) {
  if (field.choices.empty()) return;
  for (const std::string& choice : field.choices) {
    if (value == choice) return;
  }
  fail_usage("[recipe] expected {} to be {}, got '{}'{}", where, one_of(field.choices), value,
             did_you_mean(value, field.choices));
}

template <typename T>
T parse_number(const RecipeField& field, std::string_view text, std::string_view where) {
  if constexpr (std::is_floating_point_v<T>) {
    const auto value = parse_double(text);
    if (!value || !std::isfinite(*value)) fail_usage("[recipe] expected a number for {}, got '{}'", where, text);
    check_number(field, *value, where);
    return *value;
  } else {
    const auto value = parse_int(text);
    if (!value) fail_usage("[recipe] expected a whole number for {}, got '{}'", where, text);
    check_number(field, static_cast<double>(*value), where);
    return static_cast<T>(*value);
  }
}

// Above the field's lowest number, if that is 0. An empty text: none.
std::optional<PerColour> parse_numbers(const RecipeField& field, std::string_view text, std::string_view where) {
  if (trim(text).empty()) return std::nullopt;
  const bool above_zero = field.low >= 0;
  const auto numbers = parse_per_colour(text);
  if (!numbers || (above_zero && *std::min_element(numbers->begin(), numbers->end()) <= 0)) {
    fail_usage("[recipe] expected three numbers R,G,B{} for {}, got '{}'", above_zero ? " above 0" : "", where, text);
  }
  return numbers;
}

template <typename T>
struct Unwrap {
  using Type = T;
  static constexpr bool kOptional = false;
};
template <typename T>
struct Unwrap<std::optional<T>> {
  using Type = T;
  static constexpr bool kOptional = true;
};

// Checked as a field of its type is, kept as it is spelled.
void set_method_key(Recipe& recipe, const RecipeField& field, std::string_view text, std::string_view where) {
  std::string value(text);
  if (field.is_text()) {
    check_choice(field, value, where);
  } else if (field.method_key->is_share()) {
    const auto share = parse_share(text);
    if (!share) fail_usage("[recipe] expected {} for {}, got '{}'", kShareForms, where, text);
    value = share_text(*share);
  } else if (std::holds_alternative<double>(field.method_key->usual)) {
    value = fmt::format("{}", parse_number<double>(field, text, where));
  } else {
    value = fmt::format("{}", parse_number<int64_t>(field, text, where));
  }
  recipe.method_keys[field.key] = std::move(value);
}

// Its value, or the default that the recipe's method has for it.
std::string method_key_text(const Recipe& recipe, const MethodKey& key) {
  const auto given = recipe.method_keys.find(key.in_recipes());
  if (given != recipe.method_keys.end()) return given->second;
  const MethodInfo* method = find_method(recipe.method);
  const MethodKey* own = method == nullptr ? nullptr : method->find_key(key.name);
  return method_value_text((own != nullptr ? *own : key).usual);
}

void check_quantize(const Recipe& recipe) {
  if (recipe.quantize == Quantize::kNone) return;
  if (recipe.init.empty()) {
    fail_usage("[recipe] --quantize starts from a trained network: expected --init RUN|FILE, got none");
  }
  if (recipe.recalibrate > 0) {
    fail_usage("[recipe] --quantize keeps batch norm's statistics: expected recalibrate = 0, got {}",
               recipe.recalibrate);
  }
  if (recipe.precision == Precision::kBf16) {
    fail_usage("[recipe] expected precision auto, fp32 or tf32 with --quantize, got bf16: it rounds as much as 8 bits");
  }
}

void check_together(const Recipe& recipe) {
  if (recipe.optimizer == OptimizerChoice::kAdamW && recipe.nesterov) {
    fail_usage("[recipe] nesterov is of optimizer = sgd, got adamw");
  }
  if (recipe.extend_lr && recipe.extend == 0) fail_usage("[recipe] extend_lr needs extend, a number of epochs");
  if (recipe.nesterov && recipe.momentum <= 0) fail_usage("[recipe] nesterov needs a momentum above 0");
  if (recipe.init.empty() && !recipe.init_skip.empty()) {
    fail_usage("[recipe] init_skip leaves tensors of init out: expected init, got none");
  }
  if (recipe.t1 > recipe.t0) {
    fail_usage("[recipe] expected t1 to be at most t0 = {} (the temperature falls), got {}", recipe.t0, recipe.t1);
  }
  if (recipe.recalibrate > 0 && recipe.binarize == Binarize::kRound) {
    fail_usage("[recipe] recalibrate takes statistics with the hard max: expected binarize = hard, got round");
  }
  check_quantize(recipe);
  if (!recipe_milestones(recipe).empty() && recipe.lr_every) {
    fail_usage("[recipe] expected lr_every or lr_milestones, got both");
  }
  if (recipe.warmup_epochs > static_cast<double>(recipe.epochs)) {
    fail_usage("[recipe] expected warmup_epochs of at most epochs = {}, got {} (--warmup-epochs)", recipe.epochs,
               recipe.warmup_epochs);
  }
  shift_table_run(recipe);
}

}  // namespace

bool Recipe::operator==(const Recipe& other) const {
  for (const RecipeField& field : recipe_fields()) {
    if (recipe_field_text(*this, field) != recipe_field_text(other, field)) return false;
  }
  return true;
}

void set_recipe_field(Recipe& recipe, const RecipeField& field, std::string_view text, std::string_view where) {
  if (field.method_key != nullptr) return set_method_key(recipe, field, text, where);
  std::visit(
      [&](auto member) {
        auto& value = recipe.*member;
        using Value = std::remove_reference_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, std::string>) {
          check_choice(field, std::string(text), where);
          value = std::string(text);
        } else if constexpr (std::is_enum_v<Value>) {
          check_choice(field, std::string(text), where);
          value = *parse_choice<Value>(text);
        } else if constexpr (std::is_same_v<Value, bool>) {
          if (text != "true" && text != "false")
            fail_usage("[recipe] expected true or false for {}, got '{}'", where, text);
          value = text == "true";
        } else if constexpr (std::is_same_v<Value, std::optional<PerColour>>) {
          value = parse_numbers(field, text, where);
        } else {
          value = parse_number<typename Unwrap<Value>::Type>(field, text, where);
        }
      },
      field.member);
}

std::string recipe_field_text(const Recipe& recipe, const RecipeField& field) {
  if (field.method_key != nullptr) return method_key_text(recipe, *field.method_key);
  return std::visit(
      [&](auto member) -> std::string {
        const auto& value = recipe.*member;
        using Value = std::remove_const_t<std::remove_reference_t<decltype(value)>>;
        if constexpr (std::is_same_v<Value, std::optional<PerColour>>) {
          return value ? per_colour_text(*value) : std::string();
        } else if constexpr (Unwrap<Value>::kOptional) {
          return value ? fmt::format("{}", *value) : std::string();
        } else if constexpr (std::is_enum_v<Value>) {
          return choice_word(value);
        } else {
          return fmt::format("{}", value);
        }
      },
      field.member);
}

void check_recipe(const Recipe& recipe) {
  // Every field once more through its own reader: a recipe filled in by C++ code gets the same checks.
  Recipe copy;
  for (const RecipeField& field : recipe_fields()) {
    const std::string text = recipe_field_text(recipe, field);
    if (field.is_text() || !text.empty()) set_recipe_field(copy, field, text, field.key);
  }
  check_together(recipe);
}

std::vector<double> recipe_milestones(const Recipe& recipe) {
  std::vector<double> epochs;
  if (trim(recipe.lr_milestones).empty()) return epochs;
  for (const std::string_view part : split(recipe.lr_milestones, ',')) {
    const auto epoch = parse_double(trim(part));
    const double last = epochs.empty() ? 0 : epochs.back();
    if (!epoch || !std::isfinite(*epoch) || *epoch <= last) {
      fail_usage("[recipe] expected lr_milestones to be epochs above 0 that rise, such as '81,122', got '{}'",
                 recipe.lr_milestones);
    }
    epochs.push_back(*epoch);
  }
  return epochs;
}

Method recipe_method(const Recipe& recipe) {
  Method method(recipe.method);
  for (const MethodKey& key : method.info().keys) {
    method.set(key.name, parse_method_value(key, method_key_text(recipe, key)));
  }
  return method;
}

std::string recipe_data(const Recipe& recipe) {
  std::string options;
  if (recipe.limit > 0) options += fmt::format(",limit={}", recipe.limit);
  if (recipe.validation > 0) options += fmt::format(",validation={}", recipe.validation);
  if (recipe.strict) options += ",strict";
  if (options.empty()) return recipe.data;
  const bool has_argument = recipe.data.find(':') != std::string::npos;
  return recipe.data + (has_argument ? options : ":" + options);
}

std::vector<std::string> recipe_method_keys() {
  std::vector<std::string> keys;
  for (const MethodKey* key : method_keys()) keys.push_back(key->in_recipes());
  return keys;
}

bool is_network_file(const std::string& arch) {
  const auto ends_with = [&](std::string_view end) {
    return arch.size() > end.size() && std::string_view(arch).substr(arch.size() - end.size()) == end;
  };
  return arch.find('/') != std::string::npos || ends_with(".txt") || ends_with(".net");
}

std::optional<std::string> shift_table_run(const Recipe& recipe) {
  const std::string& table = recipe.shift_table;
  if (table == "uniform") return std::nullopt;
  if (table.rfind(kFromRun, 0) == 0 && table.size() > kFromRun.size()) return table.substr(kFromRun.size());
  fail_usage("[recipe] expected shift_table to be uniform or from:RUN, got '{}'", table);
}

void make_paths_absolute(Recipe& recipe) {
  const auto absolute = [](const std::string& path) {
    return std::filesystem::absolute(path).lexically_normal().string();
  };
  if (is_network_file(recipe.arch)) recipe.arch = absolute(recipe.arch);
  if (!recipe.init.empty()) recipe.init = absolute(recipe.init);
  if (!recipe.teacher.empty()) recipe.teacher = absolute(recipe.teacher);
  if (const auto run = shift_table_run(recipe)) recipe.shift_table = kFromRun + absolute(*run);
}

Graph recipe_network(const Recipe& recipe, int64_t classes, int64_t image_size) {
  if (is_network_file(recipe.arch)) {
    Graph graph = read_network(recipe.arch);
    graph.check_classifier(classes);
    // A file may give methods node by node. They stand, unless the recipe asks for dense or names layers.
    if (!has_methods(graph) || !recipe.layers.empty() || recipe_method(recipe).is_dense())
      apply_method(graph, recipe_method(recipe), recipe.layers);
    return graph;
  }
  NetSpec spec;
  spec.arch = recipe.arch;
  spec.width = recipe.width;
  spec.kernel = recipe.kernel;
  spec.expansion = recipe.expansion;
  spec.shortcut = choice_word(recipe.shortcut)[0];
  spec.classes = classes;
  if (image_size > 0) spec.image = Shape{3, image_size, image_size};
  Graph graph = build_network(spec);
  apply_method(graph, recipe_method(recipe), recipe.layers);
  return graph;
}

}  // namespace onetap
