// Which of several processes of one training this is, as whoever started it says in the environment: torchrun and
// 'onetap launch', Slurm, Open MPI, or MPICH and its kin.
#pragma once

#include "onetap/base/portion.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace onetap {

struct RankPlace {
  int64_t rank = 0;
  int64_t size = 1;
  int64_t local_rank = 0;  // on its machine: the GPU to take
  int64_t local_size = 1;  // ranks on this machine, which share its CPUs
  std::string master = "127.0.0.1";
  int64_t port = 29500;  // opened by rank 0

  // True where ranks were asked for, if only one: one process of torchrun has a group, too.
  bool launched = false;
};

using Environment = std::function<std::optional<std::string>(const char* name)>;

// Of this process. kUsage for a rank that its world does not have, for numbers that are none, and for several machines
// without a word on where to meet.
RankPlace rank_place(const Environment& environment);
RankPlace rank_place();

}  // namespace onetap
