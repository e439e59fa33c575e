#include "tools/onetap/help.h"

#include "onetap/base/text.h"
#include "tools/onetap/offered_words.h"

#include <algorithm>
#include <cstdlib>
#include <sys/ioctl.h>
#include <unistd.h>

namespace onetap::tool {
namespace {

struct Layout {
  size_t width;   // of a line
  size_t column;  // where descriptions begin
};

Layout layout() {
  constexpr size_t kNoTerminal = 100, kLeast = 40, kMost = 400;
  size_t width = kNoTerminal;
  winsize size{};
  const char* columns = std::getenv("COLUMNS");
  const auto number = columns == nullptr ? std::nullopt : parse_int(columns);
  if (number && *number > 0) {
    width = static_cast<size_t>(*number);
  } else if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    width = size.ws_col;
  }
  width = std::clamp(width, kLeast, kMost);
  return {width, width < 72 ? size_t{8} : size_t{30}};
}

// The words of `text` in lines of at most `width`, `indent` before each line but the first. Longer words stand alone.
std::string filled(std::string_view text, size_t width, size_t indent) {
  std::string lines;
  size_t used = 0;  // of the line
  for (const std::string_view word : words(text)) {
    if (used == 0) {
      used = word.size();
    } else if (used + 1 + word.size() <= width) {
      lines += ' ';
      used += 1 + word.size();
    } else {
      lines += '\n' + std::string(indent, ' ');
      used = word.size();
    }
    lines += word;
  }
  return lines;
}

std::string entry(const std::string& name, const std::string& description, const Layout& layout) {
  std::string text = "  " + name;
  if (description.empty()) return text + '\n';
  if (text.size() + 2 <= layout.column) {
    text.append(layout.column - text.size(), ' ');
  } else {
    text += '\n' + std::string(layout.column, ' ');
  }
  return text + filled(description, layout.width - layout.column, layout.column) + '\n';
}

std::string argument_name(const CLI::Option& option) {
  return option.get_name(true) + (option.get_expected_max() > 1 ? "..." : "");
}

std::string flag_entry(const CLI::Option& option, const Layout& layout) {
  const std::string value = value_text(option);
  return entry(join(flag_names(option), ", ") + (value.empty() ? "" : ' ' + value), option.get_description(), layout);
}

std::string usage(const CLI::App& app, const std::string& path, const Layout& layout) {
  std::string text = "Usage: " + path + " [OPTIONS]";
  for (const CLI::Option* option : app.get_options({})) {
    if (!option->get_positional()) continue;
    const std::string name = argument_name(*option);
    text += ' ' + (option->get_required() ? name : '[' + name + ']');
  }
  if (!app.get_subcommands({}).empty()) text += app.get_require_subcommand_min() > 0 ? " VERB" : " [VERB]";
  return filled(text, layout.width, 2) + '\n';
}

// Examples and other commands keep their lines; paragraphs are filled anew.
std::string closing_words(const std::string& footer, const Layout& layout) {
  std::string text, paragraph;
  const auto end_paragraph = [&] {
    if (!paragraph.empty()) text += filled(paragraph, layout.width, 0) + '\n';
    paragraph.clear();
  };
  for (const std::string_view line : split(footer, '\n')) {
    const bool stands_alone = line.empty() || line.front() == ' ' || line == "Examples:";
    if (stands_alone) {
      end_paragraph();
      text += std::string(line) + '\n';
    } else {
      paragraph += std::string(line) + ' ';
    }
  }
  end_paragraph();
  return text;
}

}  // namespace

std::vector<std::string> flag_names(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

std::string value_text(const CLI::Option& option) {
  if (!option.get_option_text().empty()) return option.get_option_text();
  if (option.get_items_expected_max() == 0) return "";
  const std::vector<std::string> offered = offered_words(option);
  const std::string type = option.get_type_name();
  std::string text = offered.empty() ? type.substr(0, type.find(':')) : join(offered, "|");
  if (option.get_expected_max() > 1) text += " ...";
  if (option.get_required()) text += " REQUIRED";
  return text;
}

std::string HelpFormatter::make_help(const CLI::App* app, std::string path, CLI::AppFormatMode) const {
  const Layout lines = layout();
  std::string text = filled(app->get_description(), lines.width, 0) + '\n' + usage(*app, path, lines);

  std::string arguments;
  for (const CLI::Option* option : app->get_options({})) {
    if (option->get_positional()) arguments += entry(argument_name(*option), option->get_description(), lines);
  }
  if (!arguments.empty()) text += "\nArguments:\n" + arguments;

  for (const std::string& group : app->get_groups()) {
    std::string flags;
    for (const CLI::Option* option : app->get_options({})) {
      if (option->get_group() == group && option->nonpositional()) flags += flag_entry(*option, lines);
    }
    if (!group.empty() && !flags.empty()) text.append("\n").append(group).append(":\n").append(flags);
  }

  std::string verbs;
  for (const CLI::App* verb : app->get_subcommands({})) {
    if (!verb->get_group().empty()) verbs += entry(verb->get_name(), verb->get_description(), lines);
  }
  if (!verbs.empty()) text += "\nVerbs:\n" + verbs;

  const std::string footer = app->get_footer();
  return footer.empty() ? text : text + '\n' + closing_words(footer, lines);
}

}  // namespace onetap::tool
