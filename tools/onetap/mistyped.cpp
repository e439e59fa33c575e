#include "tools/onetap/mistyped.h"

#include "onetap/base/text.h"

#include <fmt/format.h>

#include <cctype>

namespace onetap::tool {
namespace {

// The verbs from the program down to the one that reads a word: each passes flags that it does not know upwards.
using Path = std::vector<const CLI::App*>;

std::string path_text(const Path& path) {
  std::vector<std::string> names;
  for (const CLI::App* app : path) names.push_back(app->get_name());
  return join(names, " ");
}

const CLI::Option* find_flag(const Path& path, const std::string& name) {
  for (auto app = path.rbegin(); app != path.rend(); ++app) {
    if (const CLI::Option* option = (*app)->get_option_no_throw(name)) return option;
  }
  return nullptr;
}

std::vector<std::string> known_flags(const Path& path) {
  std::vector<std::string> names;
  for (auto app = path.rbegin(); app != path.rend(); ++app) {
    for (const CLI::Option* option : (*app)->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
  }
  return names;
}

std::vector<std::string> known_verbs(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(verb->get_name());
  }
  return names;
}

// -1 and -.5 are values.
bool is_flag(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && word[1] != '.' && std::isdigit(static_cast<unsigned char>(word[1])) == 0;
}

// "-ofile" and "-vq" begin with a flag that is known.
std::string flag_name(const std::string& word) {
  return word[1] == '-' ? word.substr(0, word.find('=')) : word.substr(0, 2);
}

}  // namespace

std::optional<std::string> mistyped_word(const CLI::App& app, const std::vector<std::string>& words) {
  Path path = {&app};
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") return std::nullopt;
    const CLI::App& verb = *path.back();
    if (verb.get_allow_extras()) return std::nullopt;
    if (is_flag(word)) {
      const std::string name = flag_name(word);
      const CLI::Option* flag = find_flag(path, name);
      if (flag == nullptr) {
        const bool is_letter = name[1] != '-';  // one letter is near every other
        return fmt::format("{} has no flag {}{}", path_text(path), name,
                           is_letter ? "" : did_you_mean(name, known_flags(path)));
      }
      const bool has_value = name.size() < word.size();
      if (flag->get_items_expected_max() > 0 && !has_value) ++i;
      continue;
    }
    const std::vector<std::string> verbs = known_verbs(verb);
    const CLI::App* next = nullptr;
    for (const CLI::App* candidate : verb.get_subcommands([](const CLI::App*) { return true; })) {
      if (candidate->check_name(word)) next = candidate;
    }
    if (next != nullptr) {
      path.push_back(next);
    } else if (verb.get_require_subcommand_min() > 0) {
      return fmt::format("{} has no verb '{}'{}", path_text(path), word, did_you_mean(word, verbs));
    }
  }
  return std::nullopt;
}

}  // namespace onetap::tool
