#include "tools/onetap/reproduce_data.h"

#include "onetap/base/fail.h"
#include "onetap/data/cifar.h"
#include "onetap/data/source.h"

namespace fs = std::filesystem;

namespace onetap::tool {
namespace {

// kData if the folder does not hold the set. Reads none of its images.
void check_folder(const DataSpec& spec) {
  if (spec.kind == "folder") {
    const fs::path train = fs::path(spec.argument) / "train";
    std::error_code error;
    if (!fs::is_directory(train, error)) {
      fail_data("[reproduce] expected ImageNet as {}/CLASS/*.JPEG and val beside it, got no such folder",
                train.string());
    }
    return;
  }
  const fs::path directory = spec.argument.empty() ? data_cache_directory() : fs::path(spec.argument);
  check_cifar_sizes(cifar_layout(spec.kind == "cifar10" ? Cifar::k10 : Cifar::k100), directory);
}

}  // namespace

std::map<std::string, std::string> find_experiment_data(const std::vector<std::string>& specs) {
  std::map<std::string, std::string> found = {{"shapes", experiment_data("shapes").kind}};
  for (const std::string& text : specs) {
    const DataSpec spec = parse_data_spec(text);
    if (spec.kind == "shapes") {
      fail_usage("[reproduce] expected --data cifar10:DIR, cifar100:DIR or folder:DIR (ImageNet), got '{}'", text);
    }
    check_folder(spec);
    const bool is_new = found.emplace(spec.kind == "folder" ? "imagenet" : spec.kind, absolute_data_spec(text)).second;
    if (!is_new) fail_usage("[reproduce] expected each data set once, got --data {} again", text);
  }
  for (const char* cached : {"cifar10", "cifar100"}) {
    if (found.count(cached) > 0) continue;
    try {
      check_folder({cached, "", ""});
      found[cached] = absolute_data_spec(cached);
    } catch (const Error&) {
      continue;  // not in the cache
    }
  }
  return found;
}

std::string fetch_advice(const std::string& name) {
  if (name == "imagenet") return "ImageNet: --data folder:DIR with DIR/train/CLASS and DIR/val/CLASS";
  return fmt::format("{0}: 'onetap data fetch {1} --to DIR', then --data {1}:DIR", experiment_data(name).title, name);
}

}  // namespace onetap::tool
