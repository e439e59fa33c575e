// What tuning found, kept from one process to the next: by CPU, kernels and shape.
#pragma once

#include "onetap/kernels/conv_plan.h"
#include "onetap/kernels/kernel_set.h"

#include <filesystem>
#include <map>
#include <string>

namespace onetap {

class TuneCache {
 public:
  // $XDG_CACHE_HOME/onetap/tune.json (or ~/.cache/...); read when first asked. What is unreadable there counts as
  // empty.
  TuneCache();
  explicit TuneCache(std::filesystem::path path) : path_(std::move(path)) {}

  ConvBlocking find_or_tune(const ConvShape& shape, const ConvWeights& weights, const KernelSet& kernels);
  // Writes what is new; a folder that cannot be written is no error, only slower the next time.
  void save();

 private:
  void read();

  std::filesystem::path path_;
  std::map<std::string, ConvBlocking> found_;
  bool is_read_ = false;
  bool is_new_ = false;
};

}  // namespace onetap
