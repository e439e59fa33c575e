#include "onetap/data/source.h"

#include "onetap/base/fail.h"
#include "onetap/base/text.h"
#include "onetap/data/cifar.h"
#include "onetap/data/folder.h"
#include "onetap/data/shapes.h"
#include "onetap/data/subset.h"

#include <algorithm>
#include <cstdlib>

namespace fs = std::filesystem;

namespace onetap {
namespace {

const std::vector<std::string>& kinds() {
  static const std::vector<std::string> names = {"shapes", "cifar10", "cifar100", "folder"};
  return names;
}

ShapesOptions parse_shapes(const std::string& argument) {
  ShapesOptions options;
  if (argument.empty()) return options;
  for (const auto part : split(argument, ',')) {
    const size_t equals = std::min(part.find('='), part.size());
    const std::string_view key = part.substr(0, equals);
    const auto value = parse_int(part.substr(std::min(equals + 1, part.size())));
    if (!value || *value < 0 || *value > 10'000'000 || ((key == "train" || key == "test") && *value < 1)) {
      fail_usage("[data] expected shapes:train=N,test=N,seed=N, got '{}'", part);
    }
    if (key == "train") {
      options.train = *value;
    } else if (key == "test") {
      options.test = *value;
    } else if (key == "seed") {
      options.seed = static_cast<uint64_t>(*value);
    } else {
      fail_usage("[data] shapes has no '{}'{}", key, did_you_mean(key, {"train", "test", "seed"}));
    }
  }
  return options;
}

struct SourceOptions {
  FolderOptions folder;
  int64_t limit = 0;
  double validation = 0;
};

const std::vector<std::string>& option_keys(const std::string& kind) {
  static const std::vector<std::string> shapes = {"limit", "validation"}, cifar = {"limit", "validation", "seed"},
                                        folder = {"limit", "validation", "seed", "test", "strict"};
  return kind == "shapes" ? shapes : kind == "folder" ? folder : cifar;
}

// "limit" of "limit=3".
std::string_view key_of(std::string_view option) {
  return option.substr(0, option.find('='));
}

// Where the options of `argument` begin: its last parts that have their keys.
size_t options_start(const std::string& kind, const std::string& argument) {
  if (kind != "shapes" && fs::is_directory(argument)) return argument.size();
  const auto& keys = option_keys(kind);
  size_t start = argument.size();
  for (;;) {
    const size_t comma = start == 0 ? std::string::npos : argument.rfind(',', start - 1);
    const size_t first = comma == std::string::npos ? 0 : comma + 1;
    const std::string key(key_of(std::string_view(argument).substr(first, start - first)));
    const bool alone = comma == std::string::npos && kind != "shapes";  // that is the directory
    if (alone || std::find(keys.begin(), keys.end(), key) == keys.end()) return start;
    start = comma == std::string::npos ? 0 : comma;
    if (start == 0) return start;
  }
}

double parse_fraction(std::string_view option, std::string_view value) {
  const auto fraction = parse_double(value);
  if (!fraction || !(*fraction > 0 && *fraction < 1)) {
    fail_usage("[data] expected a fraction above 0 and below 1 for {}, got '{}'", key_of(option), value);
  }
  return *fraction;
}

SourceOptions parse_options(std::string_view text) {
  SourceOptions options;
  for (const std::string_view option : split(text, ',')) {
    if (option.empty()) continue;
    const std::string_view key = key_of(option);
    const std::string_view value = option.substr(std::min(key.size() + 1, option.size()));
    if (option == "strict") {
      options.folder.strict = true;
    } else if (key == "test") {
      options.folder.test_share = parse_fraction(option, value);
    } else if (key == "validation") {
      options.validation = parse_fraction(option, value);
    } else {
      const auto number = parse_int(value);
      if (!number || *number < (key == "limit" ? 1 : 0)) {
        fail_usage("[data] expected a whole number for {}, got '{}'", key, value);
      }
      if (key == "limit") options.limit = *number;
      if (key == "seed") options.folder.seed = static_cast<uint64_t>(*number);
    }
  }
  return options;
}

void take_parts(const SourceOptions& options, DataSource& source) {
  const uint64_t seed = options.folder.seed;
  if (options.limit > 0) {
    source.train = limited(source.train, options.limit, seed);
    source.test = limited(source.test, options.limit, seed);
  }
  if (options.validation > 0) {
    const HeldOut parts = hold_out(source.train, options.validation, seed);
    source.train = parts.rest;
    source.validation = parts.held;
  }
}

}  // namespace

Normalisation usual_normalisation(std::string_view spec, const std::optional<PerColour>& mean,
                                  const std::optional<PerColour>& sd) {
  const std::string_view kind = spec.substr(0, spec.find(':'));
  Normalisation usual;
  if (kind == "cifar10" || kind == "cifar100") usual = {{0.4914f, 0.4822f, 0.4465f}, {0.2023f, 0.1994f, 0.2010f}};
  if (kind == "folder") usual = {{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}};
  return {mean.value_or(usual.mean), sd.value_or(usual.sd)};
}

fs::path data_cache_directory() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return fs::path(value == nullptr ? "" : value);
  };
  if (fs::path own = variable("ONETAP_DATA"); !own.empty()) return own;
  if (const fs::path cache = variable("XDG_CACHE_HOME"); !cache.empty()) return cache / "onetap" / "data";
  return variable("HOME") / ".cache" / "onetap" / "data";
}

DataSpec parse_data_spec(std::string_view text) {
  const size_t colon = std::min(text.find(':'), text.size());
  DataSpec spec;
  spec.kind = std::string(text.substr(0, colon));
  spec.argument = std::string(text.substr(std::min(colon + 1, text.size())));
  if (std::find(kinds().begin(), kinds().end(), spec.kind) == kinds().end()) {
    fail_usage("[data] expected shapes, cifar10:DIR, cifar100:DIR or folder:DIR, got '{}'{}", text,
               did_you_mean(spec.kind, kinds()));
  }
  const size_t start = options_start(spec.kind, spec.argument);
  spec.options = spec.argument.substr(start);
  spec.argument.resize(start);
  parse_options(spec.options);
  if (spec.kind == "shapes") parse_shapes(spec.argument);
  if (spec.kind == "folder" && spec.argument.empty()) fail_usage("[data] expected folder:DIR, got '{}'", text);
  return spec;
}

std::string absolute_data_spec(const std::string& text) {
  const DataSpec spec = parse_data_spec(text);
  if (spec.kind == "shapes") return text;
  const fs::path directory = spec.argument.empty() ? data_cache_directory() : fs::path(spec.argument);
  return spec.kind + ":" + fs::absolute(directory).lexically_normal().string() + spec.options;
}

int64_t typical_side(const Dataset& data) {
  constexpr int64_t kSample = 31;
  std::vector<int64_t> sides;
  const int64_t count = std::min(kSample, data.size());
  Image image;
  for (int64_t i = 0; i < count; ++i) {
    int64_t side = 0;
    data.read_reduced(
        i * data.size() / count,
        [&](int64_t height, int64_t width) {
          side = std::min(height, width);
          return 1;  // the least there is to decode
        },
        image);
    sides.push_back(side);
  }
  std::sort(sides.begin(), sides.end());
  return sides.empty() ? 0 : sides[sides.size() / 2];
}

DataSource open_data(std::string_view text) {
  const DataSpec spec = parse_data_spec(text);
  const SourceOptions options = parse_options(spec.options);
  DataSource source;
  if (spec.kind == "shapes") {
    source = open_shapes(parse_shapes(spec.argument));
  } else if (spec.kind == "folder") {
    source = open_folder(spec.argument, options.folder);
  } else {
    const fs::path directory = spec.argument.empty() ? data_cache_directory() : fs::path(spec.argument);
    source = open_cifar(spec.kind == "cifar10" ? Cifar::k10 : Cifar::k100, directory);
  }
  take_parts(options, source);
  source.spec = std::string(text);
  return source;
}

}  // namespace onetap
