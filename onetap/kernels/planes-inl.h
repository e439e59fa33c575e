// The kernels of PlanePlan: part of kernels-inl.h, which includes it.

// Whether a lane is among the first so many: kFirstLanes + kLineFloats - count.
alignas(kLineBytes) constexpr uint32_t kFirstLanes[2 * kLineFloats] = {~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u,
                                                                       ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u};

KERNELS_ATTR inline ops::V first_lanes(ops::V v, int64_t count) {
  return ops::bit_and(v, ops::load_unaligned(reinterpret_cast<const float*>(kFirstLanes + kLineFloats - count)));
}

// A row, then zeros up to a whole vector: what lies there is a border, or a row that is copied later. `after`: floats
// that may be read from the row on.
KERNELS_ATTR inline void pad_row(const float* ONETAP_RESTRICT row, int64_t width, int64_t after, float* to) {
  int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes) ops::store_unaligned(ops::load_unaligned(row + i), to + i);
  if (i == width) return;
  if (i + kLanes <= after) {
    ops::store_unaligned(first_lanes(ops::load_unaligned(row + i), width - i), to + i);
  } else {
    for (; i < width; ++i) to[i] = row[i];
  }
}

// Likewise, its even places to one row and the odd ones to another.
KERNELS_ATTR inline void pad_row_pairs(const float* ONETAP_RESTRICT row, int64_t width, int64_t after, float* even,
                                       float* odd) {
  const int64_t evens = (width + 1) / 2, odds = width / 2;
  for (int64_t i = 0; i < evens; i += kLanes) {
    if (2 * (i + kLanes) <= after) {
      ops::V a, b;
      ops::load_pairs(row + 2 * i, a, b);
      ops::store_unaligned(first_lanes(a, std::min(kLanes, evens - i)), even + i);
      ops::store_unaligned(first_lanes(b, std::min(kLanes, odds - i)), odd + i);
    } else {
      for (int64_t j = i; j < evens; ++j) even[j] = row[2 * j];
      for (int64_t j = i; j < odds; ++j) odd[j] = row[2 * j + 1];
      return;
    }
  }
}

KERNELS_ATTR inline void pad_planes(const PadPlanes& task) {
  const int64_t step = task.stride_w;
  // Where column x of a row lies in the row of its part.
  const auto place = [&](int64_t x) { return (x + task.left) % step * task.part + (x + task.left) / step; };
  const int64_t first = place(0), second = place(1);
  for (int64_t c = 0; c < task.channels; ++c) {
    for (int64_t r = 0; r < task.rows; ++r) {
      const float* row = task.x + c * task.x_plane + r * task.width;
      const int64_t after = task.after - (row - task.x);
      float* to = task.to + c * task.to_plane + r * task.pitch;
      if (step == 1) {
        pad_row(row, task.width, after, to + first);
      } else if (step == 2) {
        pad_row_pairs(row, task.width, after, to + first, to + second);
      } else {
        for (int64_t x = 0; x < task.width; ++x) to[place(x)] = row[x];
      }
    }
  }
}

// Calls sum(its group's copies, d) for every result d.
template <typename Sum>
KERNELS_ATTR inline __attribute__((always_inline)) void over_results(const PlaneSums& task, Sum&& sum) {
  for (int64_t group = 0; group < task.groups; ++group) {
    for (int64_t r = 0; r < task.results; ++r) {
      sum(task.x + group * task.group_floats, group * task.results + r);
    }
  }
}

// N units of every result.
template <int N>
KERNELS_ATTR void whole_units(const PlaneSums& task, const PlaneUnit* ONETAP_RESTRICT units) {
  const ops::V floor = ops::broadcast(task.relu ? 0.0f : -std::numeric_limits<float>::infinity());
  const int32_t* ONETAP_RESTRICT offsets = task.offsets;
  const float* ONETAP_RESTRICT weights = task.weights;
  int64_t from[N];
  for (int n = 0; n < N; ++n) from[n] = units[n].from;
  over_results(task, [&](const float* copies, int64_t d) KERNELS_ATTR {
    const ops::V bias = ops::broadcast(task.bias[d]);
    ops::V sum[N];
    for (int n = 0; n < N; ++n) sum[n] = bias;
    for (int64_t tap = task.from[d]; tap < task.from[d + 1]; ++tap) {
      const ops::V w = ops::broadcast(weights[tap]);
      const float* x = copies + offsets[tap];
      for (int n = 0; n < N; ++n) sum[n] = ops::mul_add(w, ops::load_unaligned(x + from[n]), sum[n]);
    }
    // At the end, so that the sums stay in registers.
    float* y = task.y + d * task.y_plane;
    if (task.residual == nullptr) {
      for (int n = 0; n < N; ++n) ops::store_unaligned(ops::at_least(floor, sum[n]), y + units[n].to);
      return;
    }
    const float* residual = task.residual + d * task.residual_plane;
    for (int n = 0; n < N; ++n) {
      const ops::V whole = ops::add(sum[n], ops::load_unaligned(residual + units[n].to));
      ops::store_unaligned(ops::at_least(floor, whole), y + units[n].to);
    }
  });
}

// A unit that ends with the plane.
KERNELS_ATTR inline void cut_unit(const PlaneSums& task, const PlaneUnit& unit) {
  const int64_t count = std::min<int64_t>(kLanes, task.pixels - unit.to);
  const ops::V floor = ops::broadcast(task.relu ? 0.0f : -std::numeric_limits<float>::infinity());
  over_results(task, [&](const float* copies, int64_t d) KERNELS_ATTR {
    alignas(kLineBytes) float values[kLanes] = {};
    if (task.residual != nullptr) {
      const float* from = task.residual + d * task.residual_plane + unit.to;
      for (int64_t i = 0; i < count; ++i) values[i] = from[i];
    }
    ops::V sum = ops::add(ops::broadcast(task.bias[d]), ops::load(values));
    for (int64_t tap = task.from[d]; tap < task.from[d + 1]; ++tap) {
      const float* x = copies + task.offsets[tap] + unit.from;
      sum = ops::mul_add(ops::broadcast(task.weights[tap]), ops::load_unaligned(x), sum);
    }
    ops::store(ops::at_least(floor, sum), values);
    float* y = task.y + d * task.y_plane + unit.to;
    for (int64_t i = 0; i < count; ++i) y[i] = values[i];
  });
}

// kWindowRows rows of T units with 3x3 taps: of the rows that it loads, most go into three sums.
constexpr int kWindow = 3, kWindowRows = 4;

template <int T>
KERNELS_ATTR void window_units(const PlaneSums& task, const PlaneUnit* ONETAP_RESTRICT units) {
  const ops::V floor = ops::broadcast(task.relu ? 0.0f : -std::numeric_limits<float>::infinity());
  const int64_t row = task.row_floats;
  int64_t from[T];
  for (int t = 0; t < T; ++t) from[t] = units[t].from;
  over_results(task, [&](const float* copies, int64_t d) KERNELS_ATTR {
    const float* ONETAP_RESTRICT weights = task.weights + task.from[d];
    const int32_t* ONETAP_RESTRICT offsets = task.offsets + task.from[d];
    const ops::V bias = ops::broadcast(task.bias[d]);
    ops::V sum[kWindowRows][T];
    for (int r = 0; r < kWindowRows; ++r) {
      for (int t = 0; t < T; ++t) sum[r][t] = bias;
    }
    for (int column = 0; column < kWindow; ++column) {
      ops::V w[kWindow];
      for (int k = 0; k < kWindow; ++k) w[k] = ops::broadcast(weights[k * kWindow + column]);
      const float* x = copies + offsets[column];
#pragma GCC unroll 8  // sums must have fixed registers
      for (int i = 0; i < kWindowRows + kWindow - 1; ++i) {
        for (int t = 0; t < T; ++t) {
          const ops::V pixels = ops::load_unaligned(x + i * row + from[t]);
          for (int k = 0; k < kWindow; ++k) {
            const int r = i - k;
            if (r >= 0 && r < kWindowRows) sum[r][t] = ops::mul_add(w[k], pixels, sum[r][t]);
          }
        }
      }
    }
    float* y = task.y + d * task.y_plane;
    const float* residual = task.residual != nullptr ? task.residual + d * task.residual_plane : nullptr;
    for (int r = 0; r < kWindowRows; ++r) {
      for (int t = 0; t < T; ++t) {
        const int64_t to = units[r * task.units_per_row + t].to;
        const ops::V whole = residual != nullptr ? ops::add(sum[r][t], ops::load_unaligned(residual + to)) : sum[r][t];
        ops::store_unaligned(ops::at_least(floor, whole), y + to);
      }
    }
  });
}

// Whole rows of units; returns how many units these are.
KERNELS_ATTR inline int64_t window_sums(const PlaneSums& task) {
  const int64_t across = task.units_per_row, rows = std::min(task.window_rows, task.whole_units / across);
  int64_t row = 0;
  for (; row + kWindowRows <= rows; row += kWindowRows) {
    int64_t i = 0;
    for (; i + 2 <= across; i += 2) window_units<2>(task, task.units + row * across + i);
    if (i < across) window_units<1>(task, task.units + row * across + i);
  }
  return row * across;
}

KERNELS_ATTR inline void plane_sums(const PlaneSums& task) {
  constexpr int64_t kAtOnce = 8;  // enough to hide the latency, few enough for 16 registers
  using Run = void (*)(const PlaneSums&, const PlaneUnit*);
  static constexpr Run kRuns[kAtOnce] = {&whole_units<1>, &whole_units<2>, &whole_units<3>, &whole_units<4>,
                                         &whole_units<5>, &whole_units<6>, &whole_units<7>, &whole_units<8>};
  const int64_t done = task.window_rows > 0 ? window_sums(task) : 0;
  // Pieces of nearly one size, rather than wide ones and a narrow rest.
  const int64_t left = task.whole_units - done, pieces = (left + kAtOnce - 1) / kAtOnce;
  for (int64_t piece = 0; piece < pieces; ++piece) {
    const int64_t first = left * piece / pieces, last = left * (piece + 1) / pieces;
    kRuns[last - first - 1](task, task.units + done + first);
  }
  for (int64_t i = task.whole_units; i < task.unit_count; ++i) cut_unit(task, task.units[i]);
}
