// onetap VERB [options] [args]
#include "tools/onetap/main.h"

#include "onetap/base/error.h"
#include "onetap/base/file.h"
#include "onetap/base/version.h"
#include "tools/onetap/console.h"
#include "tools/onetap/help.h"
#include "tools/onetap/mistyped.h"
#include "tools/onetap/offered_words.h"
#include "tools/onetap/training.h"
#include "tools/onetap/verbs.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <new>

namespace onetap::tool {
namespace {

constexpr int kUsageExit = 2;

struct Globals {
  int quiet = 0;
  int verbose = 0;
  Console::Colour colour = Console::Colour::kAuto;
};

void add_globals(CLI::App& app, Globals& globals) {
  app.add_flag("-q,--quiet", globals.quiet, "only errors on stderr");
  app.add_flag("-v,--verbose", globals.verbose, "more on stderr");
  const std::map<std::string, Console::Colour> colours = {
      {"auto", Console::Colour::kAuto}, {"always", Console::Colour::kAlways}, {"never", Console::Colour::kNever}};
  app.add_option("--color", globals.colour, "auto, always or never (NO_COLOR is respected)")
      ->transform(CLI::Transformer(colours))
      ->option_text("WHEN");
}

int usage_error(const CLI::App& app, const CLI::ParseError& problem, const std::vector<std::string>& words) {
  const CLI::App* verb = &app;
  while (!verb->get_subcommands().empty()) verb = verb->get_subcommands().front();
  std::string path = verb->get_name();
  for (const CLI::App* up = verb->get_parent(); up != nullptr; up = up->get_parent())
    path.insert(0, up->get_name() + " ");
  console().error(mistyped_word(app, words).value_or(usage_text(*verb, problem)) + " ('" + path + " --help' explains)");
  return kUsageExit;
}

// ": No space left on device". What failed may lie some calls back: a number that no write leaves says nothing.
std::string write_reason(int number) {
  for (const int known : {EFBIG, ENOSPC, EDQUOT, EIO, EPIPE}) {
    if (number == known) return std::string(": ") + std::strerror(number);
  }
  return "";
}

// A full disk or a closed pipe behind stdout must not pass for success.
int written(int code) {
  if (std::fflush(stdout) == 0 && std::cout.flush()) return code;
  console().error("cannot write to standard output" + write_reason(errno));
  return 1;
}

// "help VERB" is "VERB --help", with the program's own flags before it.
bool take_help_verb(std::vector<std::string>& words) {
  size_t i = 0;
  while (i < words.size() && words[i].rfind('-', 0) == 0) i += words[i] == "--color" ? 2 : 1;
  if (i >= words.size() || words[i] != "help") return false;
  words.erase(words.begin() + static_cast<std::ptrdiff_t>(i));
  words.emplace_back("--help");
  return true;
}

// For the list of verbs, the shells' completion and the man pages: take_help_verb() leaves nothing to parse.
void add_help(CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands({})) names.push_back(verb->get_name());
  CLI::App* verb = app.add_subcommand("help", "explain a verb, as 'onetap VERB --help' does");
  verb->add_option("VERB", "a verb, with the verb below it if there is one")->check(offered(names))->expected(0, 2);
  verb->footer(
      "Examples:\n"
      "  onetap help train\n"
      "  onetap help data fetch");
}

int parse_and_run(std::vector<std::string> words) {
  const bool asks_help = take_help_verb(words);
  CLI::App app(
      "Trains convolutions with one tap per kernel slice (Shift Attention Layers), freezes them and runs them.",
      "onetap");
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_help_flag("-h,--help", "print this help");
  app.require_subcommand(1);
  app.fallthrough();
  app.set_version_flag("--version", "onetap " ONETAP_VERSION, "print the version");
  app.failure_message(CLI::FailureMessage::simple);
  Globals globals;
  add_globals(app, globals);
  app.footer(
      "Examples:\n"
      "  onetap train --arch resnet20 --width 16 --data shapes --epochs 8 --out runs/first\n"
      "  onetap eval runs/first\n"
      "  onetap freeze runs/first -o model.tap\n"
      "  onetap count resnet20 --width 83 --method sal\n"
      "  onetap run model.tap cat.jpg\n"
      "  onetap bench model.tap --against dense\n"
      "\n'onetap VERB --help' explains each verb.");

  Action action;
  add_training_verb(app, action, kTrain);
  add_sweep(app, action);
  add_reproduce(app, action);
  add_launch(app, action);
  add_eval(app, action);
  add_data(app, action);
  add_nets(app, action);
  add_count(app, action);
  add_training_verb(app, action, kFreeze);
  add_quantize(app, action);
  add_training_verb(app, action, kPrune);
  add_training_verb(app, action, kSensitivity);
  add_run(app, action);
  add_bench(app, action);
  add_import(app, action);
  add_export(app, action);
  add_heatmap(app, action);
  add_report(app, action);
  add_frontier(app, action);
  add_completion(app, action);
  add_manual(app, action);
  add_help(app);

  try {
    if (asks_help && mistyped_word(app, words)) throw CLI::ExtrasError(words);  // usage_error() says which
    std::vector<std::string> reversed(words.rbegin(), words.rend());
    app.parse(reversed);
  } catch (const CLI::Success& request) {  // --help, --version
    return written(app.exit(request));
  } catch (const CLI::ParseError& problem) {
    console().configure(globals.colour, 0);
    return usage_error(app, problem, words);
  }
  console().configure(globals.colour, globals.quiet > 0 ? -1 : globals.verbose);
  return written(action());
}

int run(const std::vector<std::string>& words) {
  try {
    return parse_and_run(words);
  } catch (const TrainingNeeded& needed) {
    (void)open_training(needed.verb);
  }
  return parse_and_run(words);
}

}  // namespace

int run_command(int argc, char** argv) {
  report_large_files_as_errors();
  try {
    return run({argv + std::min(argc, 1), argv + argc});
  } catch (const Error& problem) {
    console().error(problem.what());
    return problem.exit_code();
  } catch (const std::bad_alloc&) {
    console().error("out of memory");
  } catch (const std::exception& problem) {
    console().error(problem.what());
  }
  return 1;
}

}  // namespace onetap::tool
