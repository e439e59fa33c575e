// A state that is accepted must survive being written and read again.
#include "onetap/journal/run_state.h"
#include "tests/fuzz/fuzz.h"

using namespace onetap;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::accepts([&] {
    const RunState state = RunState::parse(std::string(fuzz::text_of(data, size)), "fuzz");
    fuzz::require(RunState::parse(state.json(), "again").json() == state.json());
  });
  return 0;
}
