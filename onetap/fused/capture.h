// Work on a GPU as one captured graph.
#pragma once

#include <functional>

namespace onetap::fused {

// Runs `work` a few times, so that libraries choose their algorithms, then captures it and returns what replays it. In
// a build without CUDA, `work` itself.
std::function<void()> capture_graph(const std::function<void()>& work);

}  // namespace onetap::fused
