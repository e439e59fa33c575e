#include "onetap/runtime/tune_cache.h"

#include "onetap/base/error.h"
#include "onetap/base/file.h"
#include "onetap/base/json.h"
#include "onetap/base/text.h"
#include "onetap/base/version.h"
#include "onetap/runtime/choose.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdlib>

namespace onetap {
namespace {

constexpr uint64_t kMaxFile = uint64_t{16} << 20;

std::filesystem::path cache_file() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache == '/') return std::filesystem::path(cache) / "onetap" / "tune.json";
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home == '/') return std::filesystem::path(home) / ".cache" / "onetap" / "tune.json";
  return {};
}

std::string cpu_name() {
  const std::string text = read_start("/proc/cpuinfo", 4096);  // the first CPU is in the first lines
  for (const std::string_view line : split(text, '\n')) {
    if (line.rfind("model name", 0) == 0 || line.rfind("CPU part", 0) == 0) {
      const size_t colon = line.find(": ");
      if (colon != std::string_view::npos) return std::string(line.substr(colon + 2));
    }
  }
  return "unknown CPU";
}

std::string key_of(const ConvShape& s, const KernelSet& kernels) {
  static const std::string cpu = cpu_name();
  const std::string shared_inputs = s.share_inputs > 1 ? fmt::format("x{}", s.share_inputs) : "";
  const std::string target =
      kernels.type == DType::kF32 ? kernels.name : fmt::format("{} {}", kernels.name, dtype_name(kernels.type));
  return fmt::format(
      "{} | {} {} | in {}x{}x{} out {} kernel {}x{} stride {}x{} padding {}x{} dilation {}x{} groups {} "
      "taps {} share {}{}{}",
      cpu, ONETAP_VERSION, target, s.in, s.in_h, s.in_w, s.out, s.kernel_h, s.kernel_w, s.stride_h, s.stride_w,
      s.padding_h, s.padding_w, s.dilation_h, s.dilation_w, s.groups, s.taps, s.share_outputs, shared_inputs,
      s.may_be_empty ? " some empty" : "");
}

}  // namespace

TuneCache::TuneCache() : path_(cache_file()) {}

void TuneCache::read() {
  is_read_ = true;
  if (path_.empty() || !std::filesystem::exists(path_)) return;
  try {
    const nlohmann::json object = parse_json(read_file(path_, kMaxFile));
    for (const auto& [key, value] : object.items()) {
      ConvBlocking blocking;
      blocking.outputs = static_cast<int>(std::min<int64_t>(whole_number(value, "outputs", 1), kMaxOutputs));
      blocking.vectors = static_cast<int>(std::min<int64_t>(whole_number(value, "vectors", 1), kMaxVectors));
      blocking.channels = whole_number(value, "channels", 1);
      blocking.tile_vectors = whole_number(value, "tile_vectors", 1);
      blocking.dense = value.at("dense").get<bool>();
      found_.emplace(key, blocking);
    }
  } catch (const nlohmann::json::exception&) {
    found_.clear();
  } catch (const Error&) {
    found_.clear();
  }
}

ConvBlocking TuneCache::find_or_tune(const ConvShape& shape, const ConvWeights& weights, const KernelSet& kernels) {
  if (!is_read_) read();
  const std::string key = key_of(shape, kernels);
  const auto known = found_.find(key);
  if (known != found_.end()) return known->second;
  is_new_ = true;
  return found_.emplace(key, tune_blocking(shape, weights, kernels)).first->second;
}

void TuneCache::save() {
  if (!is_new_ || path_.empty()) return;
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (const auto& [key, blocking] : found_) {
    object[key] = {{"outputs", blocking.outputs},
                   {"vectors", blocking.vectors},
                   {"channels", blocking.channels},
                   {"tile_vectors", blocking.tile_vectors},
                   {"dense", blocking.dense}};
  }
  std::error_code ignored;
  std::filesystem::create_directories(path_.parent_path(), ignored);
  try {
    write_file_atomic(path_, json_text(object, 1) + '\n');
    is_new_ = false;
  } catch (const Error&) {
  }
}

}  // namespace onetap
