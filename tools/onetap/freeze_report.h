// What onetap freeze did, for people and for programs.
#pragma once

#include "onetap/freeze/verify.h"
#include "onetap/tap/drop.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace onetap::tool {

struct FreezeReport {
  std::filesystem::path out;
  std::vector<Stage> stages;
  DropResult drop;
  uint64_t file = 0;  // bytes of `out`
  // Of a run: bytes of the trained tensors, attention included, and of the same network dense, in 32-bit floats.
  std::optional<uint64_t> checkpoint, dense;
  std::optional<uint64_t> given;  // of a .tap file that was read
  std::vector<std::string> warnings;
};

nlohmann::ordered_json freeze_json(const FreezeReport& report);
// The table of stages.
std::string freeze_table(const FreezeReport& report);
// Sentences about sizes and about what was dropped.
std::vector<std::string> freeze_notes(const FreezeReport& report);

// A warning if the kept taps alone classify clearly worse than the network in training; it offers to take batch norm's
// statistics anew from `images` training images, unless that was done.
std::optional<std::string> hardening_warning(const std::vector<Stage>& stages, int64_t images);

}  // namespace onetap::tool
