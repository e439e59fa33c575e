// How long a training will take.
#pragma once

#include "onetap/reproduce/plan.h"

namespace onetap {

struct RunPace {
  double seconds_per_step = 0;
  std::string source;  // the name of the run that it was measured in, or kModel
  static constexpr const char* kModel = "H200";
};

// By a run of the same stem that has some epochs done; else by what steps of ResNet-20 took on an H200
// (docs/training-speed.md), which says nothing about CPUs: then nothing.
std::optional<RunPace> expected_pace(const Job& job, const std::filesystem::path& out, bool on_cpu);

}  // namespace onetap
