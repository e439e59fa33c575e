#include "onetap/base/cpus.h"

#include "onetap/base/text.h"

#include <algorithm>
#include <fstream>
#include <sched.h>
#include <string>

namespace onetap {
namespace {

// CPUs by the cgroup's quota (containers), or 0 where there is no limit.
int64_t cgroup_cpus() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  int64_t period = 0;
  if (!(file >> quota >> period) || period <= 0) return 0;
  const auto allowed = parse_int(quota);
  return allowed ? std::max<int64_t>(1, (*allowed + period - 1) / period) : 0;
}

}  // namespace

int64_t available_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int64_t count = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
  if (const int64_t quota = cgroup_cpus(); quota > 0) count = std::min(count, quota);
  return std::max<int64_t>(1, count);
}

}  // namespace onetap
