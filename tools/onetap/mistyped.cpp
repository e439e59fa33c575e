#include "tools/onetap/mistyped.h"

#include "onetap/base/text.h"
#include "tools/onetap/offered_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

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

// What other tools call our flags.
std::string usual_flag(const std::string& flag) {
  static const std::map<std::string, std::string> names = {
      {"--learning-rate", "--lr"},   {"--wd", "--weight-decay"},      {"--bs", "--batch-size"},
      {"--batch", "--batch-size"},   {"--model", "--arch"},           {"--optim", "--optimizer"},
      {"--scheduler", "--schedule"}, {"--gpu", "--device"},           {"--dataset", "--data"},
      {"--output", "--out"},         {"--lr-scheduler", "--schedule"}};
  const auto found = names.find(flag);
  return found == names.end() ? flag : found->second;
}

// What other tools call our verbs.
std::vector<std::string> usual_verbs(const std::string& verb) {
  static const std::map<std::string, std::vector<std::string>> names = {
      {"evaluate", {"eval"}},       {"test", {"eval"}},
      {"validate", {"eval"}},       {"predict", {"run"}},
      {"infer", {"run"}},           {"inference", {"run"}},
      {"classify", {"run"}},        {"fit", {"train"}},
      {"finetune", {"train"}},      {"fine-tune", {"train"}},
      {"compress", {"freeze"}},     {"benchmark", {"bench"}},
      {"download", {"data fetch"}}, {"convert", {"import", "export"}}};
  const auto found = names.find(verb);
  return found == names.end() ? std::vector<std::string>() : found->second;
}

bool starts_with(const std::string& text, const std::string& start) {
  return text.compare(0, start.size(), start) == 0;
}

// Words of `known` that `typed` begins: "--check", "sens".
std::vector<std::string> longer_words(const std::string& typed, const std::vector<std::string>& known) {
  std::vector<std::string> words;
  for (const std::string& word : known) {
    if (starts_with(word, typed)) words.push_back(word);
  }
  return words;
}

// The longest word of `known` that begins `typed`, followed by `next`: "training", "--out-dir".
std::vector<std::string> shorter_word(const std::string& typed, const std::vector<std::string>& known,
                                      const std::string& next) {
  std::vector<std::string> longest;
  for (const std::string& word : known) {
    if (!starts_with(typed, word + next) || (!longest.empty() && word.size() <= longest.front().size())) continue;
    longest = {word};
  }
  return longest;
}

std::string hint(const std::vector<std::string>& words) {
  std::vector<std::string> quoted;
  for (const std::string& word : words) quoted.push_back("'" + word + "'");
  return ", did you mean " + one_of(quoted) + "?";
}

// Few enough words that begin alike, else the nearest one, else the longest beginning.
std::string hint_for(const std::string& typed, const std::vector<std::string>& known, const std::string& next) {
  constexpr size_t kMost = 3;
  const auto longer = longer_words(typed, known);
  if (!longer.empty() && longer.size() <= kMost) return hint(longer);
  if (const auto near = nearest(typed, known)) return hint({*near});
  const auto shorter = shorter_word(typed, known, next);
  return shorter.empty() ? "" : hint(shorter);
}

// For "--epoch", for "-epochs" with one dash too few, and for "--batch_size" as a recipe has it.
std::string flag_hint(const std::string& word, const std::vector<std::string>& known) {
  const std::string typed = word.substr(0, word.find('='));
  std::string name = typed[1] == '-' ? typed : "-" + typed;
  std::replace(name.begin(), name.end(), '_', '-');
  if (name.size() < 4) return "";  // one letter is near every other
  const std::string usual = usual_flag(name);
  const bool has_usual = std::find(known.begin(), known.end(), usual) != known.end();
  return has_usual ? hint({usual}) : hint_for(name, known, "-");
}

std::string verb_hint(const std::string& word, const std::vector<std::string>& known) {
  std::vector<std::string> usual = usual_verbs(word);
  const auto is_missing = [&](const std::string& verb) {
    return std::find(known.begin(), known.end(), verb.substr(0, verb.find(' '))) == known.end();
  };
  usual.erase(std::remove_if(usual.begin(), usual.end(), is_missing), usual.end());
  return usual.empty() ? hint_for(word, known, "") : hint(usual);
}

// "-ofile" and "-vq" begin with a flag that is known.
std::string flag_name(const std::string& word) {
  return word[1] == '-' ? word.substr(0, word.find('=')) : word.substr(0, 2);
}

// What CLI11 says of a value that is none of the words which an option offers: "--to: onxx not in {onnx,c}", "Could not
// convert: --dtype = fp16". Nothing for another text.
struct WrongValue {
  std::string option, value;
};

std::optional<WrongValue> wrong_value(const std::string& text) {
  const std::string_view converting = "Could not convert: ", among = " not in {";
  if (text.rfind(converting, 0) == 0) {
    const size_t equals = text.find(" = ");
    if (equals == std::string::npos) return std::nullopt;
    return WrongValue{text.substr(converting.size(), equals - converting.size()), text.substr(equals + 3)};
  }
  const size_t colon = text.find(": "), end = text.rfind(among);
  if (colon == std::string::npos || end == std::string::npos || end < colon + 2) return std::nullopt;
  return WrongValue{text.substr(0, colon), text.substr(colon + 2, end - colon - 2)};
}

const CLI::Option* option_called(const CLI::App* verb, const std::string& name) {
  for (; verb != nullptr; verb = verb->get_parent()) {
    for (const CLI::Option* option : verb->get_options()) {
      if (option->get_name() == name || option->check_name(name)) return option;
    }
  }
  return nullptr;
}

}  // namespace

std::string usage_text(const CLI::App& verb, const CLI::ParseError& problem) {
  const std::string text = problem.what();
  if (const auto wrong = wrong_value(text)) {
    const CLI::Option* option = option_called(&verb, wrong->option);
    const std::vector<std::string> words = option == nullptr ? std::vector<std::string>() : offered_words(*option);
    if (words.empty()) return text;
    return fmt::format("expected {} for {}, got '{}'{}", one_of(words), wrong->option, wrong->value,
                       did_you_mean(wrong->value, words));
  }
  const size_t colon = text.find(": 1 required ");
  if (colon != std::string::npos) return fmt::format("expected a value for {}, got none", text.substr(0, colon));
  if (text == "A subcommand is required") return fmt::format("expected a verb: {}", join(known_verbs(verb), ", "));
  // "RECIPE: expected a recipe, got x"
  const size_t end = text.find(": expected ");
  const CLI::Option* option = end == std::string::npos ? nullptr : option_called(&verb, text.substr(0, end));
  if (option != nullptr && option->get_positional()) return text.substr(end + 2);
  return text;
}

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
        return fmt::format("{} has no flag {}{}", path_text(path), name, flag_hint(word, known_flags(path)));
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
      return fmt::format("{} has no verb '{}'{}", path_text(path), word, verb_hint(word, verbs));
    }
  }
  return std::nullopt;
}

}  // namespace onetap::tool
