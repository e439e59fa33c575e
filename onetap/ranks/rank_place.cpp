#include "onetap/ranks/rank_place.h"

#include "onetap/base/fail.h"
#include "onetap/base/text.h"

#include <algorithm>
#include <cstdlib>

namespace onetap {
namespace {

struct Names {
  const char *rank, *size, *local_rank, *local_size;
  bool also_alone;  // a world of one is meant to be a group
};

// In the order in which they are believed: torchrun under Slurm sets its own. Of Slurm the names that a step has alone:
// in a batch script without srun, SLURM_NTASKS speaks of processes that are not there.
constexpr Names kStarters[] = {
    {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", true},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", false},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", false},
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "", false},
};

std::optional<int64_t> number(const Environment& environment, const char* name) {
  const auto text = *name == '\0' ? std::nullopt : environment(name);
  if (!text) return std::nullopt;
  const auto value = parse_int(*text);
  if (!value || *value < 0) fail_usage("[ranks] expected {} to be a number, got '{}'", name, *text);
  return value;
}

// Slurm tells the tasks of every node: "4(x2),1" are 4, 4 and 1.
std::optional<int64_t> slurm_local_size(const Environment& environment) {
  const auto list = environment("SLURM_STEP_TASKS_PER_NODE");
  const auto node = number(environment, "SLURM_NODEID");
  if (!list || !node) return std::nullopt;
  int64_t passed = 0;
  for (const std::string_view part : split(*list, ',')) {
    const size_t bracket = part.find("(x");
    const auto tasks = parse_int(part.substr(0, bracket));
    const auto nodes = bracket == std::string_view::npos
                           ? std::optional<int64_t>(1)
                           : parse_int(part.substr(bracket + 2, part.size() - bracket - 3));
    if (!tasks || !nodes) return std::nullopt;
    passed += *nodes;
    if (*node < passed) return tasks;
  }
  return std::nullopt;
}

void find_rank(RankPlace& place, const Environment& environment) {
  for (const Names& names : kStarters) {
    const auto rank = number(environment, names.rank), size = number(environment, names.size);
    if (!rank || !size) continue;
    if (*rank >= *size) fail_usage("[ranks] expected {} below {} ({}), got {}", names.rank, *size, names.size, *rank);
    place.rank = *rank;
    place.size = *size;
    place.local_rank = number(environment, names.local_rank).value_or(0);
    auto local_size = number(environment, names.local_size);
    if (*names.local_size == '\0') local_size = slurm_local_size(environment);
    place.local_size = std::max<int64_t>(1, local_size.value_or(place.local_rank + 1));
    place.launched = place.size > 1 || names.also_alone;
    return;
  }
}

}  // namespace

RankPlace rank_place(const Environment& environment) {
  RankPlace place;
  find_rank(place, environment);
  const auto master = environment("MASTER_ADDR");
  if (master) place.master = *master;
  if (!master && place.size > place.local_size) {
    fail_usage("[ranks] expected MASTER_ADDR, the machine of rank 0, for {} ranks on several machines, got none",
               place.size);
  }
  place.port = number(environment, "MASTER_PORT").value_or(place.port);
  // torchrun listens at the port itself, in the language of its own version of c10d, which need not be ours.
  if (environment("TORCHELASTIC_USE_AGENT_STORE").value_or("") == "True") ++place.port;
  if (place.port < 1 || place.port > 65535) {
    fail_usage("[ranks] expected MASTER_PORT between 1 and 65535, got {}", place.port);
  }
  return place;
}

RankPlace rank_place() {
  return rank_place([](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::string>(value);
  });
}

}  // namespace onetap
