// Weights before a step and after it: attention, its gradients, SGD.
#include "onetap/fused/attention.cuh"
#include "onetap/fused/conv_tiles.cuh"
#include "onetap/fused/kernels.h"
#include "onetap/fused/vector.cuh"

#include <algorithm>
#include <type_traits>

namespace onetap::fused::cuda {
namespace {

// What this thread's weights are multiplied by: P of its set, or the hard max; ones where there is no attention.
// `logits` holds the block's.
template <int S>
__device__ void factors(const ConvEntry& conv, const Place& place, const float* logits, float temperature,
                        float (&factor)[S]) {
#pragma unroll
  for (int s = 0; s < S; ++s) factor[s] = 1.0f;
  if (conv.attention == nullptr || !place.active) return;
  const float* a = logits + place.slot * S;
  const Attention<S> attention(a, temperature);
  const int hard = conv.straight_through ? attention.first_best(a) : -1;
#pragma unroll
  for (int s = 0; s < S; ++s) {
    const float p = attention.p[s];
    factor[s] = hard < 0 ? p : (s == hard ? 1.0f : 0.0f) + (p - p);  // NaN stays
  }
}

// Of this thread's slice in a packed tensor, for output j of its part.
__device__ int64_t packed_at(const ConvEntry& conv, const Place& place, int j, int S) {
  return static_cast<int64_t>(place.first_output + j) * S * conv.padded_inputs + place.input;
}

template <typename T, int S>
__device__ void pack_block(const ConvEntry& conv, const Place& place, float temperature, float* shared, int* starts) {
  float* logits = shared;
  float* weights = shared + kSlices * S;
  float factor[S];
  if (conv.attention != nullptr) fetch(conv.attention, Together<S>{place.first, place.count}, logits);
  for (int j = 0; j < place.outputs; ++j) {
    locate(conv, place, j, S, starts);
    fetch(conv.weight, Scattered<S>{starts}, weights);
    __syncthreads();
    if (j == 0) factors<S>(conv, place, logits, temperature, factor);
    if (starts[threadIdx.x] >= 0) {
      T* to = static_cast<T*>(conv.packed) + packed_at(conv, place, j, S);
#pragma unroll
      for (int s = 0; s < S; ++s) {
        put(weights[threadIdx.x * S + s] * factor[s], to + static_cast<int64_t>(s) * conv.padded_inputs);
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

// New logits of one set, by the gradients dp of its P.
template <int S>
__device__ void update_logits(float* logits, float* velocities, const float (&dp)[S], float rate, float temperature,
                              const Update& update) {
  const Attention<S> attention(logits, temperature);
  float da[S];
  attention.backward(logits, dp, temperature, da);
#pragma unroll
  for (int s = 0; s < S; ++s) logits[s] = descend(logits[s], da[s], rate, update, velocities + s);
}

// Adds up what the inputs of each set have in dp; the first threads get the sums, one each for a set. `memory` is free.
template <int S>
__device__ void sum_inputs(const ConvEntry& conv, const Place& place, float* memory, float (&dp)[S]) {
  if (conv.share_inputs == 1) return;
#pragma unroll
  for (int s = 0; s < S; ++s) memory[threadIdx.x * S + s] = dp[s];
  __syncthreads();
  if (static_cast<int>(threadIdx.x) >= place.count) return;
#pragma unroll
  for (int s = 0; s < S; ++s) dp[s] = 0;
  for (int i = 0; i < conv.share_inputs; ++i) {
    const float* input = memory + (threadIdx.x * conv.share_inputs + i) * S;
#pragma unroll
    for (int s = 0; s < S; ++s) dp[s] += input[s];
  }
}

template <typename T, int S>
__device__ void update_block(const ConvEntry& conv, const Place& place, const float* rates, const Update& update,
                             float* shared, int* starts) {
  const float rate = rates[0], temperature = rates[1];
  const bool attends = conv.attention != nullptr, is_part = parts_of(conv) > 1;
  float* logits = shared;
  float* logit_velocities = shared + kSlices * S;
  float* weights = shared + 2 * kSlices * S;
  float* velocities = shared + 3 * kSlices * S;
  float factor[S], dp[S] = {};
  const Together<S> logits_at{place.first, place.count};
  const Scattered<S> weights_at{starts};
  if (attends) fetch(conv.attention, logits_at, logits);
  if (attends && !is_part) fetch(conv.attention_momentum, logits_at, logit_velocities);
  for (int j = 0; j < place.outputs; ++j) {
    locate(conv, place, j, S, starts);
    fetch(conv.weight, weights_at, weights);
    fetch(conv.weight_momentum, weights_at, velocities);
    const bool here = starts[threadIdx.x] >= 0;
    float grad[S];
    if (here) {
      const T* from = static_cast<const T*>(conv.grad) + packed_at(conv, place, j, S);
#pragma unroll
      for (int s = 0; s < S; ++s) grad[s] = to_float(from[static_cast<int64_t>(s) * conv.padded_inputs]);
    }
    __syncthreads();
    if (j == 0) factors<S>(conv, place, logits, temperature, factor);
    if (here) {
      float* weight = weights + threadIdx.x * S;
      float* velocity = velocities + threadIdx.x * S;
#pragma unroll
      for (int s = 0; s < S; ++s) {
        dp[s] = fmaf(grad[s], weight[s], dp[s]);
        weight[s] = descend(weight[s], grad[s] * factor[s], rate, update, velocity + s);
      }
    }
    __syncthreads();
    put_back(weights, weights_at, conv.weight);
    put_back(velocities, weights_at, conv.weight_momentum);
  }
  if (!attends) return;
  if (conv.share_inputs > 1 || is_part) __syncthreads();  // weights and velocities are put back
  sum_inputs<S>(conv, place, weights, dp);
  const bool leads = static_cast<int>(threadIdx.x) < place.count;
  if (is_part) {
#pragma unroll
    for (int s = 0; s < S; ++s) velocities[threadIdx.x * S + s] = leads ? dp[s] : 0.0f;
    __syncthreads();
    put_back(velocities, logits_at, conv.partial + static_cast<int64_t>(place.part) * sets_of(conv) * S);
    return;
  }
  if (leads) {
    const int at = static_cast<int>(threadIdx.x) * S;
    update_logits<S>(logits + at, logit_velocities + at, dp, rate, temperature, update);
  }
  __syncthreads();
  put_back(logits, logits_at, conv.attention);
  put_back(logit_velocities, logits_at, conv.attention_momentum);
}

// What update_block left of sets whose outputs are in several parts: adds these up, in order, and updates the logits.
template <int S>
__device__ void finish_block(const ConvEntry& conv, int block, const float* rates, const Update& update, float* sums) {
  const int most = kSlices / S, first = block * most, count = min(most, sets_of(conv) - first);
  const int thread = static_cast<int>(threadIdx.x), all = sets_of(conv) * S;
  if (thread < count * S) {
    const float* from = conv.partial + first * S + thread;
    float sum = 0;
#pragma unroll 8
    for (int part = 0; part < parts_of(conv); ++part) sum += from[static_cast<int64_t>(part) * all];
    sums[thread] = sum;
  }
  __syncthreads();
  if (thread >= count) return;
  const int64_t at = static_cast<int64_t>(first + thread) * S;
  float dp[S], logits[S], velocities[S];
#pragma unroll
  for (int s = 0; s < S; ++s) {
    dp[s] = sums[thread * S + s];
    logits[s] = conv.attention[at + s];
    velocities[s] = conv.attention_momentum[at + s];
  }
  update_logits<S>(logits, velocities, dp, rates[0], rates[1], update);
#pragma unroll
  for (int s = 0; s < S; ++s) {
    conv.attention[at + s] = logits[s];
    conv.attention_momentum[at + s] = velocities[s];
  }
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

template <int S>
__global__ void __launch_bounds__(kSlices)
    finish_kernel(const __grid_constant__ ConvTable table, const float* rates, Update update) {
  __shared__ float sums[kSlices];
  const int conv = conv_of_block(table);
  finish_block<S>(table.entries[conv], static_cast<int>(blockIdx.x) - table.first_block[conv], rates, update, sums);
}

int finish_blocks(const ConvEntry& conv) {
  return parts_of(conv) > 1 ? pieces(sets_of(conv), kSlices / conv.area) : 0;
}

// Calls launch(table, blocks) for the convolutions with kernels of this area, as many at a time as fit. blocks_of says
// how many blocks of threads a convolution has; one without any is left out.
template <typename Launch>
void over_convs(const ConvEntry* convs, int count, int area, int (*blocks_of)(const ConvEntry&), Launch&& launch) {
  ConvTable table{};
  int blocks = 0;
  for (int i = 0; i < count; ++i) {
    if (convs[i].area == area && blocks_of(convs[i]) > 0) {
      table.entries[table.count] = convs[i];
      table.first_block[table.count++] = blocks;
      blocks += blocks_of(convs[i]);
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

int64_t partial_floats(const ConvEntry& conv) {
  const int parts = parts_of(conv);
  return parts > 1 ? static_cast<int64_t>(parts) * sets_of(conv) * conv.area : 0;
}

void pack_weights(const ConvEntry* convs, int count, bool wide, const float* rates, cudaStream_t stream) {
  over_kinds(wide, [&](auto zero, auto area) {
    over_convs(convs, count, area(), tile_blocks, [&](const ConvTable& table, int blocks) {
      pack_kernel<decltype(zero), decltype(area)::value><<<blocks, kSlices, 0, stream>>>(table, rates);
    });
  });
}

void update_convs(const ConvEntry* convs, int count, bool wide, const float* rates, const Update& update,
                  cudaStream_t stream) {
  over_kinds(wide, [&](auto zero, auto area) {
    over_convs(convs, count, area(), tile_blocks, [&](const ConvTable& table, int blocks) {
      update_kernel<decltype(zero), decltype(area)::value><<<blocks, kSlices, 0, stream>>>(table, rates, update);
    });
    over_convs(convs, count, area(), finish_blocks, [&](const ConvTable& table, int blocks) {
      finish_kernel<decltype(area)::value><<<blocks, kSlices, 0, stream>>>(table, rates, update);
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
