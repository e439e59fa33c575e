#include "onetap/base/cpus.h"

#include "onetap/base/file.h"
#include "onetap/base/text.h"

#include <algorithm>
#include <sched.h>

namespace onetap {
namespace {

// CPUs by the cgroup's quota (containers), or 0 where there is no limit.
int64_t cgroup_cpus() {
  const std::string text = read_start("/sys/fs/cgroup/cpu.max", 64);  // "max 100000" or "200000 100000"
  const auto numbers = words(trim(text));
  if (numbers.size() != 2) return 0;
  const auto allowed = parse_int(numbers[0]), period = parse_int(numbers[1]);
  if (!allowed || !period || *allowed <= 0 || *period <= 0) return 0;
  return (*allowed - 1) / *period + 1;
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
