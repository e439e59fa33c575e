// onetap run: what a frozen network sees on images.
#include "onetap/base/cpus.h"
#include "onetap/base/fail.h"
#include "onetap/base/file.h"
#include "onetap/base/json.h"
#include "onetap/base/naming_file.h"
#include "onetap/base/text.h"
#include "onetap/data/image_codec.h"
#include "onetap/data/read_view.h"
#include "tools/onetap/classify.h"
#include "tools/onetap/console.h"
#include "tools/onetap/frozen_argument.h"
#include "tools/onetap/memory_option.h"
#include "tools/onetap/opened_data.h"
#include "tools/onetap/target_option.h"
#include "tools/onetap/verbs.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <iterator>
#include <map>

namespace onetap::tool {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct RunArguments {
  std::string model;
  std::vector<std::string> images;
  ModelOptions options;
  size_t top = 5;
  int64_t threads = 0;
  bool json = false;
};

// Files as they were given; a folder stands for the images in it and below, in the order of their names.
std::vector<std::string> list_images(const std::vector<std::string>& given) {
  std::vector<std::string> files;
  std::map<std::string, int64_t> others;  // by extension
  for (const std::string& name : given) {
    if (name == "-" || !fs::is_directory(name)) {
      files.push_back(name);
      continue;
    }
    std::vector<std::string> found;
    std::error_code ignored;  // links to nothing, or to where this user may not look
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(name)) {
      if (entry.is_directory(ignored)) continue;
      if (!is_image_name(entry.path())) {
        ++others[lower_extension(entry.path())];
      } else if (entry.is_regular_file(ignored)) {
        found.push_back(entry.path().string());
      } else {
        console().warn(fmt::format("skipped {}: it is not a regular file", entry.path().string()));
      }
    }
    if (found.empty()) fail_data("[run] expected image files, found none ({})", name);
    std::sort(found.begin(), found.end());
    files.insert(files.end(), std::make_move_iterator(found.begin()), std::make_move_iterator(found.end()));
  }
  warn_of_other_files(others);
  return files;
}

std::string read_image(const std::string& name) {
  if (name != "-") return read_file(name, kMaxImageFile);
  std::string bytes{std::istreambuf_iterator<char>(std::cin), {}};
  if (bytes.empty()) fail_data("[run] expected an image on standard input, got nothing");
  return bytes;
}

// What became of one image.
struct Answer {
  std::vector<Guess> guesses;
  std::string error;
  int exit_code = 0;
};

// A session of one thread with its buffers: one per worker.
class Worker {
 public:
  Worker(std::shared_ptr<const Model> model, const View& view, int64_t threads)
      : session_(std::move(model), {threads, 1}),
        view_(view),
        pixels_(static_cast<size_t>(view.floats())),
        outputs_(static_cast<size_t>(session_.model().output_floats())) {}

  Answer answer(const std::string& name, size_t top) {
    try {
      decode_test_view(read_image(name), name, view_, image_, pixels_.data());
      session_.run(pixels_.data(), 1, outputs_.data());
      return {best_guesses(session_.model(), outputs_, top), "", 0};
    } catch (const Error& problem) {
      return {{}, problem.what(), problem.exit_code()};
    } catch (const std::exception& problem) {
      return {{}, problem.what(), Error(ErrorKind::kFailure, "").exit_code()};
    }
  }

 private:
  Session session_;
  View view_;
  Image image_;
  std::vector<float> pixels_, outputs_;
};

void print_answer(const RunArguments& arguments, const std::string& name, const Answer& answer) {
  if (arguments.json) {
    Json line = {{"image", name}};
    if (answer.error.empty()) {
      line["top"] = Json::array();
      for (const Guess& guess : answer.guesses) {
        line["top"].push_back({{"class", guess.name}, {"index", guess.index}, {"probability", guess.probability}});
      }
    } else {
      line["error"] = answer.error;
    }
    std::cout << json_text(line) << '\n';
    return;
  }
  if (!answer.error.empty()) return;
  std::string text = name + ':';
  for (const Guess& guess : answer.guesses) text += fmt::format("  {} {}", guess.name, percent_text(guess.probability));
  console().print(text);
}

int run_run(const RunArguments& arguments) {
  const std::filesystem::path file = frozen_file(arguments.model, "run");
  const auto model = Model::open(file, arguments.options);
  const View view = naming_file(file, [&] { return network_view(model->graph(), model->pixels(), "run"); });
  const std::vector<std::string> files = list_images(arguments.images);
  const int64_t threads = arguments.threads > 0 ? arguments.threads : available_cpus();

  // One image: all threads on it. Many: each thread decodes and runs its own, a few at a time, so that answers come in
  // order and memory stays what it is.
  const bool alone = files.size() == 1;
  ThreadPool pool(alone ? 1 : threads);
  std::vector<std::unique_ptr<Worker>> workers;
  for (int64_t i = 0; i < pool.size(); ++i) {
    workers.push_back(std::make_unique<Worker>(model, view, alone ? threads : 1));
  }
  constexpr size_t kPerThread = 32;
  const size_t group = static_cast<size_t>(pool.size()) * kPerThread;
  std::vector<Answer> answers(std::min(group, files.size()));
  const auto start = std::chrono::steady_clock::now();
  size_t failed = 0;
  int code = 0;
  for (size_t first = 0; first < files.size(); first += group) {
    const size_t count = std::min(group, files.size() - first);
    pool.run(static_cast<int64_t>(count), [&](int64_t part, int64_t worker) {
      const auto i = static_cast<size_t>(part);
      answers[i] = workers[static_cast<size_t>(worker)]->answer(files[first + i], arguments.top);
    });
    for (size_t i = 0; i < count; ++i) {
      if (!answers[i].error.empty()) {
        ++failed;
        // A network that fails counts for more than an image that does.
        code = code == 0 ? answers[i].exit_code : std::min(code, answers[i].exit_code);
        console().error(answers[i].error);
      }
      print_answer(arguments, files[first + i], answers[i]);
    }
    std::cout.flush();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (files.size() > group) {
      console().progress(fmt::format("{}/{} images, {:.0f} per second", first + count, files.size(),
                                     static_cast<double>(first + count) / std::max(1e-9, seconds)));
    }
  }
  console().clear_progress();
  if (failed > 0 && files.size() > 1)
    console().warn(fmt::format("{} of {} images have no prediction", failed, files.size()));
  return code;
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  auto options = std::make_shared<RunArguments>();
  CLI::App* verb = app.add_subcommand("run", "classify images with a .tap file, on this CPU");
  verb->add_option("MODEL", options->model, "a .tap file, or a run directory with model.tap")->required();
  verb->add_option("IMAGE", options->images, "JPEG, PNG, WebP or BMP files, folders of them, or - for standard input")
      ->required();
  verb->add_option("--top", options->top, "classes to print")->check(CLI::Range(1, 1 << 20))->option_text("K [5]");
  verb->add_option("--threads", options->threads, "CPU threads (default: all that this process may use)")
      ->check(CLI::Range(1, 1024))
      ->option_text("N");
  add_target_option(*verb, options->options.target);
  verb->add_flag("--tune", options->options.tune, "time alternatives for every layer, and store the fastest");
  add_memory_option(*verb, options->options.memory_limit);
  verb->add_flag("--json", options->json,
                 "print one JSON object per line: image, top (class, index, probability) or error");
  verb->footer(
      "Examples:\n"
      "  onetap run model.tap cat.jpg\n"
      "  onetap run runs/first cat.jpg                 (runs/first/model.tap)\n"
      "  onetap run model.tap photos/ --top 1 --json > predictions.jsonl\n"
      "  curl -s https://example.org/cat.jpg | onetap run model.tap -\n"
      "\nImages are resized and scaled as the .tap file specifies. One that cannot be read is reported on stderr, the\n"
      "others are still processed, and the exit code is 4. Outputs that are not finite are an error, too, with exit "
      "code 1.");
  verb->callback([options, &action] { action = [options] { return run_run(*options); }; });
}

}  // namespace onetap::tool
