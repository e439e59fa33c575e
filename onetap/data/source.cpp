#include "onetap/data/source.h"

#include "onetap/base/fail.h"
#include "onetap/base/text.h"
#include "onetap/data/cifar.h"
#include "onetap/data/folder.h"
#include "onetap/data/shapes.h"

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

}  // namespace

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
  if (spec.kind == "shapes") parse_shapes(spec.argument);
  if (spec.kind == "folder" && spec.argument.empty()) fail_usage("[data] expected folder:DIR, got '{}'", text);
  return spec;
}

std::string absolute_data_spec(const std::string& text) {
  const DataSpec spec = parse_data_spec(text);
  if (spec.kind == "shapes") return text;
  const fs::path directory = spec.argument.empty() ? data_cache_directory() : fs::path(spec.argument);
  return spec.kind + ":" + fs::absolute(directory).lexically_normal().string();
}

DataSource open_data(std::string_view text) {
  const DataSpec spec = parse_data_spec(text);
  DataSource source;
  if (spec.kind == "shapes") {
    source = open_shapes(parse_shapes(spec.argument));
  } else if (spec.kind == "folder") {
    source = open_folder(spec.argument);
  } else {
    const fs::path directory = spec.argument.empty() ? data_cache_directory() : fs::path(spec.argument);
    source = open_cifar(spec.kind == "cifar10" ? Cifar::k10 : Cifar::k100, directory);
  }
  source.spec = std::string(text);
  return source;
}

}  // namespace onetap
