#include "onetap/tap/moves.h"

#include "onetap/graph/shift.h"

#include <algorithm>
#include <cmath>

namespace onetap {
namespace {

// No image is as large: what is further away is as far away.
constexpr float kFar = 1 << 22;

struct Neighbour {
  int32_t offset;
  float weight;
};

// The two rows, or columns, around a place between them.
struct Neighbours {
  explicit Neighbours(float shift) {
    const float low = std::floor(std::clamp(shift, -kFar, kFar));
    const float above = std::clamp(shift - low, 0.0f, 1.0f);
    pair[0] = {static_cast<int32_t>(low), 1 - above};
    pair[1] = {static_cast<int32_t>(low) + 1, above};
  }
  Neighbour pair[2];
};

}  // namespace

PlaneTaps moved_taps(const TapNet& net, const Node& node) {
  const Shape& in = net.graph.source(node).shape;
  PlaneTaps moved;
  const auto add = [&](int64_t down, int64_t right, float weight) {
    if (weight == 0 || !reaches(down, node.stride.h, node.shape[1], in[1]) ||
        !reaches(right, node.stride.w, node.shape[2], in[2])) {
      return;
    }
    moved.taps.push_back({0, static_cast<int32_t>(down), static_cast<int32_t>(right), weight});
  };
  if (node.op == Op::kShift) {
    for (const int64_t code : shift_codes(node, in[0])) {
      add((code / node.kernel.w - node.kernel.h / 2) * node.dilation.h,
          (code % node.kernel.w - node.kernel.w / 2) * node.dilation.w, 1);
      moved.end_result();
    }
    return moved;
  }
  const float* shifts = floats_of(node, net.tensors(node).weight);
  for (int64_t c = 0; c < in[0]; ++c) {
    const Neighbours rows(shifts[2 * c]), columns(shifts[2 * c + 1]);
    for (const Neighbour& row : rows.pair) {
      for (const Neighbour& column : columns.pair) add(row.offset, column.offset, row.weight * column.weight);
    }
    moved.end_result();
  }
  return moved;
}

}  // namespace onetap
