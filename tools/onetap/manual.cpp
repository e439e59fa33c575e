// onetap manual: man pages, made from the options that the verbs declare and from their help texts.
#include "onetap/base/file.h"
#include "onetap/base/text.h"
#include "onetap/base/version.h"
#include "tools/onetap/console.h"
#include "tools/onetap/help.h"
#include "tools/onetap/training.h"

#include <fmt/format.h>

#include <memory>

namespace fs = std::filesystem;

namespace onetap::tool {
namespace {

constexpr char kExitStatus[] =
    ".SH EXIT STATUS\n"
    ".TP\n.B 0\nsuccess\n"
    ".TP\n.B 1\nfailure, for example a full disk\n"
    ".TP\n.B 2\nwrong usage\n"
    ".TP\n.B 3\na check failed\n"
    ".TP\n.B 4\ndata that are missing or damaged\n"
    ".TP\n.B 129, 130, 143\nafter SIGHUP, SIGINT, SIGTERM\n";

// Text as it is: backslashes, hyphens and the control characters of a line's start mean nothing to roff.
std::string roff(const std::string& text) {
  std::string escaped;
  bool starts_line = true;
  for (const char c : text) {
    if (starts_line && (c == '.' || c == '\'')) escaped += "\\&";
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else {
      escaped += c;
    }
    starts_line = c == '\n';
  }
  return escaped;
}

std::string page_name(const std::string& path) {
  std::string name = path;
  for (char& c : name) {
    if (c == ' ') c = '-';
  }
  return name;
}

std::string option_entry(const CLI::Option& option) {
  std::vector<std::string> names;
  if (option.get_positional()) {
    names.push_back("\\fI" + roff(option.get_name(true)) + "\\fR");
  } else {
    for (const std::string& name : flag_names(option)) names.push_back("\\fB" + roff(name) + "\\fR");
  }
  std::string entry = ".TP\n" + join(names, ", ");
  const std::string value = option.get_positional() ? "" : value_text(option);
  if (!value.empty()) entry += " \\fI" + roff(value) + "\\fR";
  return entry + '\n' + roff(option.get_description()) + '\n';
}

std::string synopsis(const CLI::App& verb, const std::string& path) {
  std::string line = ".SH SYNOPSIS\n.B " + roff(path) + '\n';
  if (!verb.get_subcommands({}).empty()) line += "\\fIVERB\\fR\n";
  line += "[\\fIOPTIONS\\fR]";
  for (const CLI::Option* option : verb.get_options({})) {
    if (!option->get_positional()) continue;
    std::string name = "\\fI" + roff(option->get_name(true)) + "\\fR";
    if (option->get_expected_max() > 1) name += "...";
    line += ' ' + (option->get_required() ? name : '[' + name + ']');
  }
  return line + '\n';
}

// A help text's end: examples, which keep their lines, and paragraphs, which are filled anew.
std::string closing_words(const CLI::App& verb) {
  std::string examples, text;
  bool in_examples = false;
  const std::string footer = verb.get_footer();
  for (const std::string_view line : split(footer, '\n')) {
    if (line == "Examples:") {
      in_examples = true;
    } else if (line.empty()) {
      in_examples = false;
      if (!text.empty()) text += ".PP\n";
    } else if (in_examples) {
      examples += roff(std::string(line)) + '\n';
    } else if (line.front() == ' ') {  // a command in the text
      text += ".PP\n.nf\n" + roff(std::string(line)) + "\n.fi\n.PP\n";
    } else {
      text += roff(std::string(line)) + '\n';
    }
  }
  std::string page;
  if (!text.empty()) page += ".SH NOTES\n" + text;
  if (!examples.empty()) page += ".SH EXAMPLES\n.nf\n" + examples + ".fi\n";
  return page;
}

std::string page_text(const CLI::App& verb, const std::string& path, const std::string& parent) {
  const std::string name = page_name(path);
  std::string title = name;
  for (char& c : title) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  std::string page = fmt::format(".TH {} 1 \"\" \"onetap {}\" \"onetap\"\n.SH NAME\n{} \\- {}\n", roff(title),
                                 ONETAP_VERSION, roff(name), roff(verb.get_description()));
  page += synopsis(verb, path);
  const auto verbs = verb.get_subcommands({});
  if (!verbs.empty()) {
    page += ".SH VERBS\n";
    for (const CLI::App* sub : verbs) {
      if (sub->get_group().empty()) continue;
      page += fmt::format(".TP\n\\fB{}\\fR(1)\n{}\n", roff(page_name(path + ' ' + sub->get_name())),
                          roff(sub->get_description()));
    }
  }
  for (const std::string& group : verb.get_groups()) {
    std::string entries;
    for (const CLI::Option* option : verb.get_options({})) {
      if (option->get_group() == group && !group.empty()) entries += option_entry(*option);
    }
    if (entries.empty()) continue;
    page += group == "Options" ? ".SH OPTIONS\n" : ".SS " + roff(group) + '\n';
    page += entries;
  }
  page += closing_words(verb) + kExitStatus;
  if (!parent.empty()) page += fmt::format(".SH SEE ALSO\n\\fB{}\\fR(1)\n", roff(page_name(parent)));
  return page;
}

void write_pages(const CLI::App& verb, const std::string& path, const std::string& parent, const fs::path& folder) {
  write_file_atomic(folder / (page_name(path) + ".1"), page_text(verb, path, parent));
  for (const CLI::App* sub : verb.get_subcommands({})) {
    write_pages(*sub, path + ' ' + sub->get_name(), path, folder);
  }
}

}  // namespace

void add_manual(CLI::App& app, Action& action) {
  auto folder = std::make_shared<std::string>();
  CLI::App* verb = app.add_subcommand("manual", "write man pages");
  needs_every_verb(*verb);
  verb->add_option("DIR", *folder, "directory for onetap.1, onetap-train.1 and so on")->required();
  verb->footer(
      "Examples:\n"
      "  onetap manual pages && man ./pages/onetap-train.1\n"
      "\n'cmake --install' and the Debian packages install these pages.");
  verb->callback([&app, folder, &action] {
    action = [&app, folder] {
      make_directories(*folder);
      write_pages(app, app.get_name(), "", *folder);
      console().print(*folder);
      return 0;
    };
  });
}

}  // namespace onetap::tool
