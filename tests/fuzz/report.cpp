// Whatever the lines of a run's files say, as far as they can be read, becomes a page.
#include "onetap/base/text.h"
#include "onetap/report/page.h"
#include "tests/fuzz/fuzz.h"

using namespace onetap;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ReportRun run;
  run.label = "fuzz";
  for_each_whole_line(fuzz::text_of(data, size), [&](std::string_view line, size_t) {
    fuzz::accepts([&] { run.metrics.push_back(MetricLine::parse(line, "metrics")); });
    fuzz::accepts([&] { run.classes = ClassScores::parse(line, "classes"); });
    fuzz::accepts([&] { run.attention.push_back(AttentionLine::parse(line, "attention")); });
  });
  fuzz::require(!report_page({run}).empty());
  return 0;
}
