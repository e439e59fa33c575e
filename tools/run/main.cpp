// onetap-run: the verb 'run' as a program of its own, for devices. Plain C input and output and arguments parsed by
// hand: streams, which a command-line library needs too, add 0.9 MB to a static program.
#include "onetap/base/cpus.h"
#include "onetap/base/fail.h"
#include "onetap/base/file.h"
#include "onetap/base/naming_file.h"
#include "onetap/base/text.h"
#include "onetap/base/utf8.h"
#include "onetap/base/version.h"
#include "onetap/data/read_view.h"
#include "onetap/kernels/kernel_set.h"
#include "tools/onetap/classify.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

namespace onetap::tool {
namespace {

std::string help_text() {
  return "usage: onetap-run [options] MODEL IMAGE...\n"
         "\n"
         "Classifies images (JPEG, PNG or BMP files, - for standard input) with a .tap file, on this CPU.\n"
         "\n"
         "  --top K        classes to print [5]\n"
         "  --threads N    CPU threads (default: all that this process may use)\n"
         "  --target NAME  kernels to use (default: ONETAP_TARGET, or the best for this CPU), of\n"
         "                 " +
         join(target_names(), ", ") +
         "\n"
         "  --tune         time alternatives for every layer, and store the fastest\n"
         "  --memory SIZE  refuse a network that needs more, such as 64M (default: ONETAP_MEMORY, or 1G)\n"
         "  --version, --help\n"
         "\n"
         "An image that cannot be read is reported on stderr, the others are still processed, and the exit code is "
         "4.\n";
}

struct Arguments {
  std::vector<std::string> files;  // the model, then the images
  ModelOptions model;
  int64_t top = 5;
  int64_t threads = 0;
  std::string answer;  // what was asked for instead of a run: help or version
};

int64_t parse_number(std::string_view option, std::string_view text, int64_t most) {
  const auto number = parse_int(text);
  if (!number || *number < 1 || *number > most) {
    fail_usage("[run] expected a number from 1 to {} for {}, got '{}'", most, option, text);
  }
  return *number;
}

Arguments parse_arguments(const std::vector<std::string>& words) {
  Arguments arguments;
  bool only_files = false;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const auto value = [&]() -> const std::string& {
      if (i + 1 == words.size()) fail_usage("[run] expected a value for {}, got none", word);
      return words[++i];
    };
    if (only_files || word.size() < 2 || word[0] != '-') {
      arguments.files.push_back(word);
    } else if (word == "--") {
      only_files = true;
    } else if (word == "--top") {
      arguments.top = parse_number(word, value(), 1 << 20);
    } else if (word == "--threads") {
      arguments.threads = parse_number(word, value(), 1024);
    } else if (word == "--target") {
      arguments.model.target = value();
    } else if (word == "--tune") {
      arguments.model.tune = true;
    } else if (word == "--memory") {
      arguments.model.memory_limit = parse_memory(value(), word);
    } else if (word == "--version") {
      arguments.answer = "onetap-run " ONETAP_VERSION "\n";
    } else if (word == "--help" || word == "-h") {
      arguments.answer = help_text();
    } else {
      fail_usage("[run] expected an option of those that --help lists, got '{}'", word);
    }
  }
  if (arguments.answer.empty() && arguments.files.size() < 2) {
    fail_usage("[run] expected a .tap file and images, got {} ('onetap-run --help' explains)",
               arguments.files.empty() ? "nothing" : "no image");
  }
  return arguments;
}

std::string read_input() {
  std::string bytes;
  char buffer[1 << 16];
  while (const size_t count = std::fread(buffer, 1, sizeof(buffer), stdin)) {
    bytes.append(buffer, count);
    if (bytes.size() > kMaxImageFile) break;
  }
  if (bytes.empty()) fail_data("[run] expected an image on standard input, got nothing");
  return bytes;
}

void report(const char* problem) {
  std::fprintf(stderr, "onetap-run: %s\n", printable(problem).c_str());
}

int run(const Arguments& arguments) {
  const auto model = Model::open(arguments.files[0], arguments.model);
  const View view =
      naming_file(arguments.files[0], [&] { return network_view(model->graph(), model->pixels(), "run"); });
  Session session(model, {arguments.threads > 0 ? arguments.threads : available_cpus(), 1});
  std::vector<float> pixels(static_cast<size_t>(view.floats())), outputs(static_cast<size_t>(model->output_floats()));
  Image image;
  int code = 0;
  for (size_t i = 1; i < arguments.files.size(); ++i) {
    const std::string& name = arguments.files[i];
    try {
      decode_test_view(name == "-" ? read_input() : read_file(name, kMaxImageFile), name, view, image, pixels.data());
    } catch (const Error& problem) {
      report(problem.what());
      code = Error(ErrorKind::kData, "").exit_code();
      continue;
    }
    session.run(pixels.data(), 1, outputs.data());
    const auto guesses = best_guesses(*model, outputs, static_cast<size_t>(arguments.top));
    std::printf("%s:", printable(name).c_str());
    for (const Guess& guess : guesses) {
      std::printf("  %s %.2f %%", printable(guess.name).c_str(), 100 * guess.probability);
    }
    std::printf("\n");
  }
  return code;
}

int run_or_answer(const std::vector<std::string>& words) {
  const Arguments arguments = parse_arguments(words);
  const int code = arguments.answer.empty() ? run(arguments) : (std::fputs(arguments.answer.c_str(), stdout), 0);
  // A full disk or a closed pipe must not pass for success.
  if (std::fflush(stdout) != 0) fail("[run] cannot write to standard output: {}", std::strerror(errno));
  return code;
}

}  // namespace
}  // namespace onetap::tool

int main(int argc, char** argv) {
  using onetap::tool::report;
  onetap::report_large_files_as_errors();
  try {
    return onetap::tool::run_or_answer({argv + 1, argv + argc});
  } catch (const onetap::Error& problem) {
    report(problem.what());
    return problem.exit_code();
  } catch (const std::bad_alloc&) {
    report("out of memory");
  } catch (const std::exception& problem) {
    report(problem.what());
  }
  return 1;
}
