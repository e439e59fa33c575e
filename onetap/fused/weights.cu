// Weights before a step and after it: attention, its gradients, SGD.
#include "onetap/fused/kernels.h"
#include "onetap/fused/vector.cuh"
#include "onetap/nn/attention_constants.h"

#include <algorithm>
#include <type_traits>

namespace onetap::fused::cuda {
namespace {

// A thread has one slice: the S positions between an input and a group of outputs. A block has neighbouring ones, which
// come and go through shared memory, so that memory is read in order.

constexpr int kSlices = 96;   // four arrays of as many 5x5 slices fit a block's shared memory
constexpr int kEntries = 32;  // convolutions for one launch: they travel as its arguments

struct ConvTable {
  ConvEntry entries[kEntries];
  int first_block[kEntries + 1];
  int count;
};

int64_t slices_of(const ConvEntry& conv) {
  return static_cast<int64_t>(conv.blocks) * conv.inputs;
}

// The slices of a block, and this thread's.
struct Place {
  int conv;
  int count;         // of the block
  int first;         // in the layer
  int group, input;  // this thread's
  bool active;

  __device__ explicit Place(const ConvTable& table) {
    conv = 0;
    while (static_cast<int>(blockIdx.x) >= table.first_block[conv + 1]) ++conv;
    const ConvEntry& entry = table.entries[conv];
    first = (static_cast<int>(blockIdx.x) - table.first_block[conv]) * kSlices;
    count = min(kSlices, entry.blocks * entry.inputs - first);
    active = static_cast<int>(threadIdx.x) < count;
    const int mine = first + (active ? static_cast<int>(threadIdx.x) : 0);
    group = mine / entry.inputs;
    input = mine % entry.inputs;
  }
};

// Where the block's slices of output j of each group begin in the layer's weights; -1 for a group without such an
// output.
__device__ void locate(const ConvEntry& conv, const Place& place, int j, int S, int* starts) {
  __syncthreads();
  const int output = place.group * conv.share + j;
  if (place.active) starts[threadIdx.x] = output < conv.outputs ? (output * conv.inputs + place.input) * S : -1;
  __syncthreads();
}

// Where number i of a block's slices lies in a layer's; -1 for none.
template <int S>
struct Scattered {
  const int* starts;
  int count;
  __device__ int operator()(int i) const {
    const int start = i < count * S ? starts[i / S] : -1;
    return start >= 0 ? start + i % S : -1;
  }
};
template <int S>
struct Together {
  int first, count;
  __device__ int operator()(int i) const { return i < count * S ? first * S + i : -1; }
};

// All of a thread's reads are under way before the first is waited for.
template <int S, template <int> class Where>
__device__ void fetch(const float* from, const Where<S>& where, float* to) {
  float values[S];
#pragma unroll
  for (int k = 0; k < S; ++k) {
    const int at = where(threadIdx.x + k * kSlices);
    values[k] = at >= 0 ? from[at] : 0.0f;
  }
#pragma unroll
  for (int k = 0; k < S; ++k) to[threadIdx.x + k * kSlices] = values[k];
}

template <int S, template <int> class Where>
__device__ void put_back(const float* from, const Where<S>& where, float* to) {
#pragma unroll
  for (int k = 0; k < S; ++k) {
    const int i = threadIdx.x + k * kSlices, at = where(i);
    if (at >= 0) to[at] = from[i];
  }
}

// P of one slice, as nn/attention.cpp computes it: N less its maximum, in units of a power of two near the largest
// difference, so that it is the same for logits of any scale. NaN among the logits makes all of P NaN.
template <int S>
struct Attention {
  static constexpr float kDegrees = S > 1 ? S - 1 : 1;  // of freedom
  float p[S];
  float best, inverse_sd, mean;  // sd and mean in units of 1 / (lift * inverse_unit)
  float lift, inverse_unit;      // apart, for their product may be too large
  bool flat;

  __device__ Attention(const float* a, float temperature) {
    float least = INFINITY;
    best = -INFINITY;
#pragma unroll
    for (int s = 0; s < S; ++s) {
      best = fmaxf(best, a[s]);
      least = fminf(least, a[s]);
    }
    choose_unit(best - least);
    float sum = 0;
#pragma unroll
    for (int s = 0; s < S; ++s) sum += below(a[s]);
    mean = sum / S;
    float squares = 0;
#pragma unroll
    for (int s = 0; s < S; ++s) squares += (below(a[s]) - mean) * (below(a[s]) - mean);
    inverse_sd = flat ? 1.0f : rsqrtf(squares / kDegrees);
    const float factor = inverse_sd / temperature;
    float total = 0;
#pragma unroll
    for (int s = 0; s < S; ++s) {
      const float exponent = below(a[s]) * factor;
      // Not fmaxf, which would lose a NaN.
      total += p[s] = __expf(exponent < nn::kDeepestExponent ? nn::kDeepestExponent : exponent);
    }
    const float share = 1.0f / total;
#pragma unroll
    for (int s = 0; s < S; ++s) p[s] *= share;
  }

  // From the gradients of p to those of the logits a.
  __device__ void backward(const float* a, const float (&dp)[S], float temperature, float (&da)[S]) const {
    float mixed = 0;
#pragma unroll
    for (int s = 0; s < S; ++s) mixed += p[s] * dp[s];
    float along = 0;
#pragma unroll
    for (int s = 0; s < S; ++s) {
      const bool cut = below(a[s]) * inverse_sd / temperature < nn::kDeepestExponent;
      da[s] = cut ? 0.0f : p[s] * (dp[s] - mixed) / temperature;
      along += da[s] * below(a[s]);
    }
    const float bend = flat ? 0.0f : along * inverse_sd * inverse_sd * inverse_sd / kDegrees;
#pragma unroll
    for (int s = 0; s < S; ++s) da[s] = (da[s] * inverse_sd - bend * (below(a[s]) - mean)) * inverse_unit * lift;
  }

 private:
  // At most 0; the largest difference of the slice comes to between 1 and 2.
  __device__ float below(float a) const {
    return (a - best) * lift * inverse_unit;
  }

  __device__ void choose_unit(float range) {
    flat = range == 0.0f;
    lift = inverse_unit = 1.0f;
    if (flat) return;
    if (range < 0x1p-60f) lift = 0x1p+88f;  // denormal numbers become ordinary ones
    // 2^-e for a number of 2^e to 2^(e + 1), by its bits; 2^-127 where that would be the next smaller power.
    const int exponent = __float_as_int(range * lift) & 0x7f800000;
    inverse_unit = __int_as_float(max(0x7f000000 - exponent, 0x00400000));
  }
};

// p of this thread's slice; ones where there is no attention. `logits` holds the block's.
template <int S>
__device__ void probabilities(const ConvEntry& conv, const Place& place, const float* logits, float temperature,
                              float (&p)[S]) {
#pragma unroll
  for (int s = 0; s < S; ++s) p[s] = 1.0f;
  if (conv.attention == nullptr || !place.active) return;
  const Attention<S> attention(logits + threadIdx.x * S, temperature);
#pragma unroll
  for (int s = 0; s < S; ++s) p[s] = attention.p[s];
}

// Of this thread's slice in a packed tensor, for output j of its group.
__device__ int64_t packed_at(const ConvEntry& conv, const Place& place, int j, int S) {
  return static_cast<int64_t>(place.group * conv.share + j) * S * conv.padded_inputs + place.input;
}

template <typename T, int S>
__device__ void pack_block(const ConvEntry& conv, const Place& place, float temperature, float* shared, int* starts) {
  float* logits = shared;
  float* weights = shared + kSlices * S;
  float p[S];
  if (conv.attention != nullptr) fetch(conv.attention, Together<S>{place.first, place.count}, logits);
  for (int j = 0; j < conv.share; ++j) {
    locate(conv, place, j, S, starts);
    fetch(conv.weight, Scattered<S>{starts, place.count}, weights);
    __syncthreads();
    if (j == 0) probabilities<S>(conv, place, logits, temperature, p);
    if (place.active && starts[threadIdx.x] >= 0) {
      T* to = static_cast<T*>(conv.packed) + packed_at(conv, place, j, S);
#pragma unroll
      for (int s = 0; s < S; ++s) {
        put(weights[threadIdx.x * S + s] * p[s], to + static_cast<int64_t>(s) * conv.padded_inputs);
      }
    }
  }
}

// One step of SGD for one number; returns the new one.
__device__ float descend(float parameter, float grad, float rate, const Update& update, float* velocity) {
  const float change = fmaf(update.weight_decay, parameter, grad);
  *velocity = fmaf(update.momentum, *velocity, change);
  return parameter - rate * (update.nesterov ? fmaf(update.momentum, *velocity, change) : *velocity);
}

template <typename T, int S>
__device__ void update_block(const ConvEntry& conv, const Place& place, const float* rates, const Update& update,
                             float* shared, int* starts) {
  const float rate = rates[0], temperature = rates[1];
  const bool attends = conv.attention != nullptr;
  float* logits = shared;
  float* logit_velocities = shared + kSlices * S;
  float* weights = shared + 2 * kSlices * S;
  float* velocities = shared + 3 * kSlices * S;
  float p[S], dp[S] = {};
  const Together<S> logits_at{place.first, place.count};
  const Scattered<S> weights_at{starts, place.count};
  if (attends) {
    fetch(conv.attention, logits_at, logits);
    fetch(conv.attention_momentum, logits_at, logit_velocities);
  }
  for (int j = 0; j < conv.share; ++j) {
    locate(conv, place, j, S, starts);
    fetch(conv.weight, weights_at, weights);
    fetch(conv.weight_momentum, weights_at, velocities);
    const bool here = place.active && starts[threadIdx.x] >= 0;
    float grad[S];
    if (here) {
      const T* from = static_cast<const T*>(conv.grad) + packed_at(conv, place, j, S);
#pragma unroll
      for (int s = 0; s < S; ++s) grad[s] = to_float(from[static_cast<int64_t>(s) * conv.padded_inputs]);
    }
    __syncthreads();
    if (j == 0) probabilities<S>(conv, place, logits, temperature, p);
    if (here) {
      float* weight = weights + threadIdx.x * S;
      float* velocity = velocities + threadIdx.x * S;
#pragma unroll
      for (int s = 0; s < S; ++s) {
        dp[s] = fmaf(grad[s], weight[s], dp[s]);
        weight[s] = descend(weight[s], grad[s] * p[s], rate, update, velocity + s);
      }
    }
    __syncthreads();
    put_back(weights, weights_at, conv.weight);
    put_back(velocities, weights_at, conv.weight_momentum);
  }
  if (!attends) return;
  if (place.active) {
    float* mine = logits + threadIdx.x * S;
    const Attention<S> attention(mine, temperature);
    float da[S];
    attention.backward(mine, dp, temperature, da);
    Update of_logits = update;
    of_logits.weight_decay *= update.logit_decay;
#pragma unroll
    for (int s = 0; s < S; ++s) {
      mine[s] = descend(mine[s], da[s], rate, of_logits, logit_velocities + threadIdx.x * S + s);
    }
  }
  __syncthreads();
  put_back(logits, logits_at, conv.attention);
  put_back(logit_velocities, logits_at, conv.attention_momentum);
}

template <typename T, int S>
__global__ void __launch_bounds__(kSlices) pack_kernel(const __grid_constant__ ConvTable table, const float* rates) {
  __shared__ float shared[2 * kSlices * S];
  __shared__ int starts[kSlices];
  const Place place(table);
  pack_block<T, S>(table.entries[place.conv], place, rates[1], shared, starts);
}

template <typename T, int S>
__global__ void __launch_bounds__(kSlices)
    update_kernel(const __grid_constant__ ConvTable table, const float* rates, Update update) {
  __shared__ float shared[4 * kSlices * S];
  __shared__ int starts[kSlices];
  const Place place(table);
  update_block<T, S>(table.entries[place.conv], place, rates, update, shared, starts);
}

// Calls launch(table, blocks) for the convolutions with kernels of this area, as many at a time as fit.
template <typename Launch>
void over_convs(const ConvEntry* convs, int count, int area, Launch&& launch) {
  ConvTable table{};
  int blocks = 0;
  for (int i = 0; i < count; ++i) {
    if (convs[i].area == area) {
      table.entries[table.count] = convs[i];
      table.first_block[table.count++] = blocks;
      blocks += static_cast<int>((slices_of(convs[i]) + kSlices - 1) / kSlices);
    }
    if (table.count == 0 || (table.count < kEntries && i + 1 < count)) continue;
    for (int end = table.count; end <= kEntries; ++end) table.first_block[end] = blocks;
    launch(table, blocks);
    table.count = blocks = 0;
  }
}

// Calls run(Type(), area) for the activations' type and every area that kernels are compiled for.
template <typename Run>
void over_kinds(bool wide, const Run& run) {
  of_type(wide, [&](auto zero) {
    run(zero, std::integral_constant<int, 1>());
    run(zero, std::integral_constant<int, 9>());
    run(zero, std::integral_constant<int, 25>());
  });
}

struct PlainTable {
  static constexpr int kMost = 64;
  PlainEntry entries[kMost];
};

__global__ void plain_kernel(const __grid_constant__ PlainTable table, const float* rates, Update update) {
  const PlainEntry& entry = table.entries[blockIdx.y];
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= entry.count) return;
  update.weight_decay *= entry.decay;
  entry.parameter[i] = descend(entry.parameter[i], entry.grad[i], rates[0] * entry.rate, update, entry.momentum + i);
}

}  // namespace

void pack_weights(const ConvEntry* convs, int count, bool wide, const float* rates, cudaStream_t stream) {
  over_kinds(wide, [&](auto zero, auto area) {
    over_convs(convs, count, area(), [&](const ConvTable& table, int blocks) {
      pack_kernel<decltype(zero), decltype(area)::value><<<blocks, kSlices, 0, stream>>>(table, rates);
    });
  });
}

void update_convs(const ConvEntry* convs, int count, bool wide, const float* rates, const Update& update,
                  cudaStream_t stream) {
  over_kinds(wide, [&](auto zero, auto area) {
    over_convs(convs, count, area(), [&](const ConvTable& table, int blocks) {
      update_kernel<decltype(zero), decltype(area)::value><<<blocks, kSlices, 0, stream>>>(table, rates, update);
    });
  });
}

void update_plain(const PlainEntry* entries, int count, const float* rates, const Update& update, cudaStream_t stream) {
  constexpr int kThreads = 256;
  for (int first = 0; first < count; first += PlainTable::kMost) {
    PlainTable table{};
    const int here = std::min(PlainTable::kMost, count - first);
    int64_t most = 1;
    for (int i = 0; i < here; ++i) {
      table.entries[i] = entries[first + i];
      most = std::max(most, entries[first + i].count);
    }
    const dim3 blocks(static_cast<unsigned>((most + kThreads - 1) / kThreads), static_cast<unsigned>(here));
    plain_kernel<<<blocks, kThreads, 0, stream>>>(table, rates, update);
  }
}

}  // namespace onetap::fused::cuda
