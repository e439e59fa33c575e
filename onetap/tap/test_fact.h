// What the verbs that made a file wrote into it for whoever shows it: what a test of it found (about.tested), so that
// it need not be tested again, and the step of the training that it is from.
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
// The same of the network in floats that an int8 one was made of (about.before).
void set_before_fact(TapNet& net, const TestFact& fact);
// Nothing if the file has none, or another text.
std::optional<TestFact> test_fact(const TapNet& net);

// The step of the training that a network was frozen from (about.step), if it says so.
std::optional<int64_t> frozen_step(const TapNet& net);

// What to tell a user whose `file` was frozen at another step than that of its run's last test; nothing if it was not,
// or from a checkpoint that the user chose (about.checkpoint).
std::optional<std::string> other_step_text(const std::string& file, const TapNet& net, int64_t last_test);

}  // namespace onetap
