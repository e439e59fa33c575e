// What a verb that made a file found when it tested it, as one of the file's facts (about.tested): whoever shows the
// file need not test it again.
#pragma once

#include "onetap/tap/tap_net.h"

#include <cstdint>
#include <optional>
#include <string>

namespace onetap {

struct TestFact {
  double accuracy = 0;  // 0 to 1
  int64_t images = 0;
  std::string data;  // the kind of data set, as cifar10: not where it lies
};

// "0.9241 of 10000 images, cifar10"
void set_test_fact(TapNet& net, const TestFact& fact);
// Nothing if the file has none, or another text.
std::optional<TestFact> test_fact(const TapNet& net);

}  // namespace onetap
