// Work on a GPU as one captured graph.
#pragma once

#include <functional>

namespace onetap::fused {

// Work that may run any number of times: `rewind` puts the clocks that `run` advances back to the start. Without it,
// trial runs would read past the end of the epoch and of the schedule.
struct Repeatable {
  std::function<void()> rewind, run;
};

// A few trial runs, each from the start, so that libraries choose their algorithms.
void warm_up(const Repeatable& work);

// Warms `work` up, captures a run of it and returns what replays it. In a build without CUDA, the run itself.
std::function<void()> capture_graph(const Repeatable& work);

}  // namespace onetap::fused
