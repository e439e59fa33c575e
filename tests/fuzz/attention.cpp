// A line that is accepted must survive being written and read again.
#include "onetap/journal/attention_log.h"
#include "tests/fuzz/fuzz.h"

using namespace onetap;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::accepts([&] {
    for (const AttentionLine& line : parse_attention(fuzz::text_of(data, size), "fuzz")) {
      fuzz::require(AttentionLine::parse(line.json(), "again").json() == line.json());
    }
  });
  return 0;
}
