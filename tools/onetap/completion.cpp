// onetap completion: shell completion, made from the options the verbs declare.
#include "onetap/base/fail.h"
#include "onetap/base/text.h"
#include "onetap/recipe/recipe.h"
#include "onetap/reproduce/experiment.h"
#include "tools/onetap/training.h"

#include <fmt/format.h>

#include <iostream>
#include <memory>

namespace onetap::tool {
namespace {

struct Choice {
  std::string flag, words;
};

struct Verb {
  std::string path;  // "data fetch"
  std::string summary;
  std::vector<std::string> subverbs;
  std::vector<std::string> words;                          // that it takes as arguments
  std::vector<std::pair<std::string, std::string>> flags;  // name, help
};

void collect(const CLI::App& app, const std::string& path, std::vector<Verb>& verbs) {
  Verb verb;
  verb.path = path;
  verb.summary = app.get_description();
  for (const CLI::App* sub : app.get_subcommands({})) verb.subverbs.push_back(sub->get_name());
  if (path == "reproduce") {
    verb.words = experiment_names();
    verb.words.emplace_back("all");
  }
  for (const CLI::Option* option : app.get_options({})) {
    for (const std::string& name : option->get_lnames())
      verb.flags.emplace_back("--" + name, option->get_description());
  }
  verbs.push_back(std::move(verb));
  for (const CLI::App* sub : app.get_subcommands({})) {
    collect(*sub, path.empty() ? sub->get_name() : path + " " + sub->get_name(), verbs);
  }
}

std::vector<Choice> choices() {
  std::vector<Choice> list = {{"--color", "auto always never"}, {"--checkpoint", "last best"}};
  for (const RecipeField& field : recipe_fields()) {
    if (!field.choices.empty()) list.push_back({field.flag(), join(field.choices, " ")});
  }
  list.push_back({"--data", "shapes cifar10 cifar100 cifar10: cifar100: folder:"});
  list.push_back({"--device", "auto cpu cuda"});
  list.push_back({"--what", "kept mean-p"});
  list.push_back({"--form", "dense shift"});
  list.push_back({"--by", "l1 nisp pcas"});
  list.push_back({"--preset", "pruned-a pruned-b"});
  list.push_back({"--arch", "resnet20 resnet32 resnet44 resnet56 resnet110 resnet50-cifar resnet-w"});
  return list;
}

std::string flag_words(const Verb& verb) {
  std::vector<std::string> names = verb.subverbs;
  names.insert(names.end(), verb.words.begin(), verb.words.end());
  for (const auto& [name, help] : verb.flags) names.push_back(name);
  return join(names, " ");
}

// In bash and zsh alike: the verb that the words so far have named.
std::string verb_case(const std::vector<Verb>& verbs) {
  std::string lines = "    case \"$verb $word\" in\n";
  for (const Verb& verb : verbs) {
    if (!verb.path.empty()) lines += fmt::format("      ' {0}') verb=' {0}' ;;\n", verb.path);
  }
  return lines + "    esac\n";
}

// What can follow it.
std::string names_case(const std::vector<Verb>& verbs) {
  std::string lines = "  case \"${verb# }\" in\n";
  for (const Verb& verb : verbs) lines += fmt::format("    '{}') names='{}' ;;\n", verb.path, flag_words(verb));
  return lines + "  esac\n";
}

std::string bash_script(const std::vector<Verb>& verbs) {
  std::string script =
      "# onetap completion for bash: source <(onetap completion bash)\n"
      "_onetap() {\n"
      "  local cur=\"${COMP_WORDS[COMP_CWORD]}\" prev=\"${COMP_WORDS[COMP_CWORD-1]}\" verb='' word names=''\n"
      "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n" +
      verb_case(verbs) + "  done\n  case \"$prev\" in\n";
  for (const Choice& choice : choices()) {
    script += fmt::format("    {}) COMPREPLY=($(compgen -W '{}' -- \"$cur\")); return ;;\n", choice.flag, choice.words);
  }
  script += "  esac\n" + names_case(verbs) +
            "  COMPREPLY=($(compgen -W \"$names\" -- \"$cur\"))\n"
            "}\n"
            "complete -o default -F _onetap onetap\n";
  return script;
}

std::string zsh_script(const std::vector<Verb>& verbs) {
  std::string script =
      "#compdef onetap\n"
      "# onetap completion for zsh: source <(onetap completion zsh), or as _onetap in a folder of fpath\n"
      "_onetap() {\n"
      "  local verb='' word names='' previous=\"$words[CURRENT-1]\"\n"
      "  for word in \"${(@)words[2,CURRENT-1]}\"; do\n" +
      verb_case(verbs) + "  done\n  case \"$previous\" in\n";
  for (const Choice& choice : choices()) {
    script += fmt::format("    {}) compadd -- {}; return ;;\n", choice.flag, choice.words);
  }
  script += "  esac\n" + names_case(verbs) +
            "  compadd -- ${=names}\n"
            "  _files\n"
            "}\n"
            "if [ \"$funcstack[1]\" = _onetap ]; then _onetap; else compdef _onetap onetap; fi\n";
  return script;
}

std::string fish_quote(const std::string& text) {
  std::string quoted;
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted;
}

std::string fish_script(const std::vector<Verb>& verbs) {
  std::string script = "# onetap completion for fish: onetap completion fish | source\n";
  for (const Verb& verb : verbs) {
    std::string condition = "__fish_use_subcommand";
    if (!verb.path.empty()) {
      condition.clear();
      for (const auto part : split(verb.path, ' ')) {
        condition += fmt::format("{}__fish_seen_subcommand_from {}", condition.empty() ? "" : "; and ", part);
      }
    }
    for (const std::string& sub : verb.subverbs) {
      const std::string path = verb.path.empty() ? sub : verb.path + " " + sub;
      std::string help;
      for (const Verb& other : verbs) {
        if (other.path == path) help = other.summary;
      }
      script += fmt::format("complete -c onetap -n '{}' -f -a {} -d '{}'\n", condition, sub, fish_quote(help));
    }
    if (!verb.words.empty()) {
      script += fmt::format("complete -c onetap -n '{}' -f -a '{}'\n", condition, join(verb.words, " "));
    }
    for (const auto& [name, help] : verb.flags) {
      std::string values;
      for (const Choice& choice : choices()) {
        if (choice.flag == name) values = fmt::format(" -x -a '{}'", choice.words);
      }
      script += fmt::format("complete -c onetap -n '{}' -l {} -d '{}'{}\n", condition, name.substr(2), fish_quote(help),
                            values);
    }
  }
  return script;
}

}  // namespace

void add_completion(CLI::App& app, Action& action) {
  auto shell = std::make_shared<std::string>();
  CLI::App* verb = app.add_subcommand("completion", "print shell completion");
  needs_every_verb(*verb);
  verb->add_option("SHELL", *shell, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  verb->footer(
      "Examples:\n"
      "  source <(onetap completion bash)\n"
      "  onetap completion fish > ~/.config/fish/completions/onetap.fish");
  verb->callback([&app, shell, &action] {
    action = [&app, shell] {
      std::vector<Verb> verbs;
      collect(app, "", verbs);
      std::cout << (*shell == "bash" ? bash_script(verbs) : *shell == "zsh" ? zsh_script(verbs) : fish_script(verbs));
      return 0;
    };
  });
}

}  // namespace onetap::tool
