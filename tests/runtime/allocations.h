// Counts what operator new hands out in this test's process.
#pragma once

#include <cstdint>

namespace onetap::testing {

int64_t allocations();

}  // namespace onetap::testing
