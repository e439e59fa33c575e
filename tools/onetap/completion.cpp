// onetap completion: shell completion, made from the options the verbs declare.
#include "onetap/base/fail.h"
#include "onetap/base/text.h"
#include "tools/onetap/offered_words.h"
#include "tools/onetap/training.h"

#include <fmt/format.h>

#include <iostream>
#include <map>
#include <memory>

namespace onetap::tool {
namespace {

struct Flag {
  std::string name, help;
  std::vector<std::string> values;  // none: files
};

struct Verb {
  std::string path;  // "data fetch"
  std::string summary;
  std::vector<std::string> subverbs;
  std::vector<std::string> words;  // that it takes as arguments
  std::vector<Flag> flags;
};

void collect(const CLI::App& app, const std::string& path, std::vector<Verb>& verbs) {
  Verb verb;
  verb.path = path;
  verb.summary = app.get_description();
  for (const CLI::App* sub : app.get_subcommands({})) verb.subverbs.push_back(sub->get_name());
  for (const CLI::Option* option : app.get_options({})) {
    const std::vector<std::string> words = offered_words(*option);
    if (option->get_positional()) verb.words.insert(verb.words.end(), words.begin(), words.end());
    for (const std::string& name : option->get_lnames())
      verb.flags.push_back({"--" + name, option->get_description(), words});
  }
  verbs.push_back(std::move(verb));
  for (const CLI::App* sub : app.get_subcommands({})) {
    collect(*sub, path.empty() ? sub->get_name() : path + " " + sub->get_name(), verbs);
  }
}

std::string flag_words(const Verb& verb) {
  std::vector<std::string> names = verb.subverbs;
  names.insert(names.end(), verb.words.begin(), verb.words.end());
  for (const Flag& flag : verb.flags) names.push_back(flag.name);
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

// The lines of 'case "verb flag" in' that offer values; `form` holds what a shell does with them. Flags of the program
// itself may follow every verb.
std::string values_case(const std::vector<Verb>& verbs, const char* form) {
  std::map<std::string, std::vector<std::string>> patterns;  // by words
  for (const Verb& verb : verbs) {
    for (const Flag& flag : verb.flags) {
      if (flag.values.empty()) continue;
      patterns[join(flag.values, " ")].push_back(verb.path.empty() ? "*' " + flag.name + "'"
                                                                   : "'" + verb.path + " " + flag.name + "'");
    }
  }
  std::string lines;
  for (const auto& [words, of_flags] : patterns) {
    lines += fmt::format("    {}) {}; return ;;\n", join(of_flags, "|"), fmt::format(fmt::runtime(form), words));
  }
  return lines;
}

std::string bash_script(const std::vector<Verb>& verbs) {
  std::string script =
      "# onetap completion for bash: source <(onetap completion bash)\n"
      "_onetap() {\n"
      "  local cur=\"${COMP_WORDS[COMP_CWORD]}\" prev=\"${COMP_WORDS[COMP_CWORD-1]}\" verb='' word names=''\n"
      "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n" +
      verb_case(verbs) + "  done\n  case \"${verb# } $prev\" in\n" +
      values_case(verbs, "COMPREPLY=($(compgen -W '{}' -- \"$cur\"))");
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
      verb_case(verbs) + "  done\n  case \"${verb# } $previous\" in\n" + values_case(verbs, "compadd -- {}");
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

// As verb_case() in fish, whose own __fish_seen_subcommand_from takes any word for a verb, at any place.
std::string fish_verb_function(const std::vector<Verb>& verbs) {
  std::string lines =
      "function __onetap_verb_is\n"
      "  set -l verb ''\n"
      "  for word in (commandline -opc)[2..-1]\n"
      "    switch \"$verb $word\"\n";
  for (const Verb& verb : verbs) {
    if (!verb.path.empty()) lines += fmt::format("      case ' {0}'\n        set verb ' {0}'\n", verb.path);
  }
  return lines +
         "    end\n"
         "  end\n"
         "  test \"$verb\" = \"$argv[1]\"\n"
         "end\n";
}

std::string fish_script(const std::vector<Verb>& verbs) {
  std::string script = "# onetap completion for fish: onetap completion fish | source\n" + fish_verb_function(verbs);
  for (const Verb& verb : verbs) {
    const std::string place = verb.path.empty() ? "" : ' ' + verb.path;
    const std::string start = fmt::format("complete -c onetap -n '__onetap_verb_is \"{}\"'", place);
    for (const std::string& sub : verb.subverbs) {
      const std::string path = verb.path.empty() ? sub : verb.path + " " + sub;
      std::string help;
      for (const Verb& other : verbs) {
        if (other.path == path) help = other.summary;
      }
      script += fmt::format("{} -f -a {} -d '{}'\n", start, sub, fish_quote(help));
    }
    if (!verb.words.empty()) script += fmt::format("{} -a '{}'\n", start, join(verb.words, " "));
    for (const Flag& flag : verb.flags) {
      const std::string values = flag.values.empty() ? "" : fmt::format(" -x -a '{}'", join(flag.values, " "));
      // As in values_case(): the program's own flags with values may follow every verb.
      const bool everywhere = verb.path.empty() && !flag.values.empty();
      script += fmt::format("{} -l {} -d '{}'{}\n", everywhere ? "complete -c onetap" : start, flag.name.substr(2),
                            fish_quote(flag.help), values);
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
