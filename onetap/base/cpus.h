// How much of the machine is ours.
#pragma once

#include <cstdint>

namespace onetap {

// CPUs this process may use: affinity and cgroup limits respected.
int64_t available_cpus();

}  // namespace onetap
