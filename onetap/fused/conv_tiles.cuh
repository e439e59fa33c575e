// How the weights of convolutions are dealt out to blocks of threads, and how they come and go.
#pragma once

#include "onetap/fused/kernel_limits.h"
#include "onetap/fused/kernels.h"

namespace onetap::fused::cuda {

// A thread has one input of a set of positions: the slices between it and outputs that have the set in common. A block
// has neighbouring sets with all of their inputs; slices and logits come and go through shared memory, so that memory
// is read in order. Where many outputs have a set in common, several blocks have a part of them each.

constexpr int kSlices = 96;   // four arrays of as many 5x5 slices fit a block's shared memory
constexpr int kEntries = 32;  // convolutions for one launch: they travel as its arguments
constexpr int kOutputs = 8;   // of a set for one thread, one after another
static_assert(kMostSharedInputs <= kSlices);

struct ConvTable {
  ConvEntry entries[kEntries];
  int first_block[kEntries + 1];
  int count;
};
static_assert(sizeof(ConvTable) <= 4000);  // a kernel's arguments take 4 KiB at most

__host__ __device__ constexpr int pieces(int count, int most) {
  return (count + most - 1) / most;
}

__host__ __device__ inline int sets_of(const ConvEntry& conv) {
  return conv.output_blocks * conv.input_blocks;
}
// Into how many parts the outputs of a set are cut, for a block each.
__host__ __device__ inline int parts_of(const ConvEntry& conv) {
  return pieces(conv.share_outputs, kOutputs);
}
// Sets of a block of threads.
__host__ __device__ inline int tile_sets(const ConvEntry& conv) {
  return kSlices / conv.share_inputs;
}

inline int tile_blocks(const ConvEntry& conv) {
  return pieces(sets_of(conv), tile_sets(conv)) * parts_of(conv);
}

__device__ inline int conv_of_block(const ConvTable& table) {
  int conv = 0;
  while (static_cast<int>(blockIdx.x) >= table.first_block[conv + 1]) ++conv;
  return conv;
}

// The sets of a block, and this thread's slices.
struct Place {
  int conv;
  int part;
  int first, count;       // sets of the block
  int slot;               // this thread's set among them
  int outputs;            // at most, of a set for this block
  int first_output, end;  // those of this thread
  int input;
  bool active;  // there is such an input

  __device__ explicit Place(const ConvTable& table) {
    conv = conv_of_block(table);
    const ConvEntry& entry = table.entries[conv];
    const int block = static_cast<int>(blockIdx.x) - table.first_block[conv], thread = static_cast<int>(threadIdx.x);
    part = block % parts_of(entry);
    first = block / parts_of(entry) * tile_sets(entry);
    count = min(tile_sets(entry), sets_of(entry) - first);
    slot = thread / entry.share_inputs;
    const int set = first + min(slot, count - 1);
    input = set % entry.input_blocks * entry.share_inputs + thread % entry.share_inputs;
    active = slot < count && input < entry.inputs;
    outputs = pieces(entry.share_outputs, parts_of(entry));
    const int output = set / entry.input_blocks * entry.share_outputs;
    first_output = output + part * outputs;
    end = min(min(output + entry.share_outputs, first_output + outputs), entry.outputs);
  }
};

// Where the block's slices of output j of each part begin in the layer's weights; -1 where there is none.
__device__ inline void locate(const ConvEntry& conv, const Place& place, int j, int S, int* starts) {
  __syncthreads();
  const int output = place.first_output + j;
  const bool here = place.active && output < place.end;
  starts[threadIdx.x] = here ? (output * conv.inputs + place.input) * S : -1;
  __syncthreads();
}

// Where number i of a block's slices, or of its sets' logits, lies in a layer's; -1 for none.
template <int S>
struct Scattered {
  const int* starts;
  __device__ int operator()(int i) const {
    const int start = starts[i / S];
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

}  // namespace onetap::fused::cuda
