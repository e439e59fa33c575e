// onetap data: fetch and check data sets.
#include "onetap/base/fail.h"
#include "onetap/base/json.h"
#include "onetap/base/text.h"
#include "onetap/data/source.h"
#include "tools/onetap/console.h"
#include "tools/onetap/offered_words.h"
#include "tools/onetap/opened_data.h"
#include "tools/onetap/table.h"
#include "tools/onetap/verbs.h"

#if defined(ONETAP_HAVE_FETCH)
#include "onetap/fetch/fetch.h"
#endif

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>
#include <memory>

namespace onetap::tool {
namespace {

struct FetchArguments {
  std::string name, directory, url, sha256;
  int attempts = 5;
  bool keep_archive = false;
};

#if defined(ONETAP_HAVE_FETCH)

int run_fetch(const FetchArguments& arguments) {
  FetchOptions options;
  options.name = arguments.name;
  options.directory = arguments.directory.empty() ? data_cache_directory() : std::filesystem::path(arguments.directory);
  options.url = arguments.url;
  options.sha256 = arguments.sha256;
  options.attempts = arguments.attempts;
  options.keep_archive = arguments.keep_archive;
  FetchEvents events;
  events.notice = [](const std::string& text) { console().note(text); };
  events.progress = [&](const FetchProgress& progress) {
    console().progress(fmt::format("{}  {} of {}  {:.0f} %", options.name,
                                   bytes_text(static_cast<double>(progress.done)),
                                   bytes_text(static_cast<double>(progress.total)),
                                   100.0 * static_cast<double>(progress.done) / static_cast<double>(progress.total)));
  };
  const auto folder = fetch_dataset(options, events);
  console().clear_progress();
  console().print(folder.string());
  return 0;
}

#else

int run_fetch(const FetchArguments&) {
  fail_usage("[fetch] this onetap was built without libcurl or libarchive and cannot download");
}

#endif

struct SplitReport {
  std::string name;
  int64_t images = 0;
  int64_t smallest_class = 0, largest_class = 0;
  std::vector<std::string> problems;
};

// Reads every image: for a folder, that decodes every file.
SplitReport check_split(const std::string& name, const Dataset& data, size_t classes) {
  SplitReport report;
  report.name = name;
  report.images = data.size();
  std::vector<int64_t> counts(classes, 0);
  Image image;
  for (int64_t i = 0; i < data.size(); ++i) {
    try {
      data.read(i, image);
    } catch (const Error& problem) {
      report.problems.emplace_back(problem.what());
    }
    ++counts.at(static_cast<size_t>(data.label(i)));
    if (i % 64 == 0) console().progress(fmt::format("checking {} {}/{}", name, i, data.size()));
  }
  console().clear_progress();
  report.smallest_class = *std::min_element(counts.begin(), counts.end());
  report.largest_class = *std::max_element(counts.begin(), counts.end());
  return report;
}

int run_check(const std::string& spec, bool json) {
  // Strictly: what training would pass over is what this looks for.
  const bool is_folder = parse_data_spec(spec).kind == "folder";
  const DataSource source = open_data(is_folder ? spec + ",strict" : spec);
  warn_of_skipped(source);
  std::vector<SplitReport> splits = {check_split("train", *source.train, source.classes.size())};
  if (source.validation != nullptr) {
    splits.push_back(check_split("validation", *source.validation, source.classes.size()));
  }
  splits.push_back(check_split("test", *source.test, source.classes.size()));
  size_t bad = 0;
  for (const SplitReport& split : splits) bad += split.problems.size();
  if (json) {
    nlohmann::ordered_json object = {{"data", spec}, {"classes", source.classes}, {"ok", bad == 0}};
    object["skipped"] = source.skipped;
    object["other_files"] = source.other_files;
    object["images_outside"] = source.images_outside;
    for (const SplitReport& split : splits) {
      object["splits"][split.name] = {{"images", split.images},
                                      {"smallest_class", split.smallest_class},
                                      {"largest_class", split.largest_class},
                                      {"problems", split.problems}};
    }
    std::cout << json_text(object, 2) << '\n';
  } else {
    Table table({{"split"},
                 {"images", Table::Align::kRight},
                 {"classes", Table::Align::kRight},
                 {"images per class", Table::Align::kRight},
                 {"unreadable", Table::Align::kRight}});
    for (const SplitReport& split : splits) {
      table.add({split.name, std::to_string(split.images), std::to_string(source.classes.size()),
                 split.smallest_class == split.largest_class
                     ? std::to_string(split.largest_class)
                     : fmt::format("{} to {}", split.smallest_class, split.largest_class),
                 std::to_string(split.problems.size())});
    }
    std::cout << table.text();
  }
  if (bad == 0) return 0;
  constexpr size_t kShown = 20;
  size_t shown = 0;
  for (const SplitReport& split : splits) {
    for (const std::string& problem : split.problems) {
      if (shown++ < kShown) console().error(problem);
    }
  }
  if (bad > kShown) console().error(fmt::format("... and {} more", bad - kShown));
  int64_t all = 0;
  for (const SplitReport& split : splits) all += split.images;
  fail_data("[data] {} of {} images could not be decoded ({})", bad, all, spec);
}

}  // namespace

void add_data(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("data", "fetch and check data sets");
  verb->require_subcommand(1);

  auto arguments = std::make_shared<FetchArguments>();
  CLI::App* fetch_verb = verb->add_subcommand("fetch", "download a data set, verify and unpack it");
  fetch_verb->add_option("NAME", arguments->name, "cifar10 or cifar100")
      ->required()
      ->check(offered({"cifar10", "cifar100"}));
  fetch_verb->add_option("--to", arguments->directory, "directory for the data set's folder (default: the data cache)")
      ->option_text("DIR");
  fetch_verb->add_option("--url", arguments->url, "another URL for the archive")->option_text("URL");
  fetch_verb->add_option("--sha256", arguments->sha256, "its SHA-256, if it is not the official archive")
      ->option_text("HEX");
  fetch_verb
      ->add_option("--attempts", arguments->attempts, "number of attempts; each resumes where the previous one stopped")
      ->check(CLI::Range(1, 1000))
      ->option_text("N [5]");
  fetch_verb->add_flag("--keep-archive", arguments->keep_archive, "keep the .tar.gz next to the folder");
  fetch_verb->footer(
      "Examples:\n"
      "  onetap data fetch cifar10\n"
      "  onetap data fetch cifar100 --to data\n"
      "\nAn interrupted download resumes where it stopped. The data cache is $ONETAP_DATA, else\n"
      "$XDG_CACHE_HOME/onetap/data, else ~/.cache/onetap/data; --data cifar10 without a directory reads it.");
  fetch_verb->callback([arguments, &action] { action = [arguments] { return run_fetch(*arguments); }; });

  auto spec = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  CLI::App* check_verb = verb->add_subcommand("check", "read every image and count the classes");
  check_verb->add_option("DATA", *spec, "shapes, cifar10[:DIR], cifar100[:DIR] or folder:DIR")
      ->required()
      ->check(offered(data_words()));
  check_verb->add_flag("--json", *json, "print JSON");
  check_verb->footer(
      "Examples:\n"
      "  onetap data check cifar10:data\n"
      "  onetap data check folder:imagenet --json");
  check_verb->callback([spec, json, &action] { action = [spec, json] { return run_check(*spec, *json); }; });

  verb->footer(
      "Examples:\n"
      "  onetap data fetch cifar10 --to data\n"
      "  onetap data check cifar10:data");
}

}  // namespace onetap::tool
