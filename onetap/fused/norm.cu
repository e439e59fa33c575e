// Batch norm with the sum and ReLU after it.
#include "onetap/fused/kernels.h"
#include "onetap/fused/vector.cuh"
#include "onetap/graph/batch_norm.h"

#include <algorithm>

namespace onetap::fused::cuda {
namespace {

constexpr float kEpsilon = static_cast<float>(kBatchNormEpsilon);
constexpr float kRunningMomentum = static_cast<float>(kBatchNormMomentum);

constexpr int kRowThreads = 512;
constexpr int kResident = 3;  // blocks that a multiprocessor has registers for
// For the 132 multiprocessors of the chip this was tuned on. Sums have an end that is paid once a block; forward a
// block has more registers and more reads under way.
constexpr int kBlocks = 132 * kResident;
constexpr int kForwardBlocks = 132 * 2;

// What a thread takes at once. Backwards it keeps so many numbers for every channel that eight would leave registers
// for too few threads to hide the memory's latency.
template <typename T>
using ForwardVector = Vector<T, 16 / sizeof(T)>;
template <typename T>
using BackwardVector = Vector<T, 4>;

// A thread's place in a pass over all rows: channels [channel, channel + kSize) of rows row, row - step, ... From the
// last row to the first: it comes after sums that went the other way, so what they read last is still in the cache.
template <typename V>
struct Lane {
  int64_t row, step;
  int channel;
  bool active;

  __device__ explicit Lane(const Rows& rows) {
    const int channels = static_cast<int>(rows.channels);
    const int vectors = channels / V::kSize, rows_in_block = kRowThreads / vectors;
    const int row_in_block = threadIdx.x / vectors;
    active = row_in_block < rows_in_block;
    channel = threadIdx.x % vectors * V::kSize;
    row = rows.rows - 1 - (static_cast<int64_t>(blockIdx.x) * rows_in_block + row_in_block);
    step = static_cast<int64_t>(gridDim.x) * rows_in_block;
  }
};

template <typename V>
int pass_blocks(const Rows& rows, int64_t most) {
  const int64_t rows_in_block = kRowThreads / (rows.channels / V::kSize);
  return static_cast<int>(std::min(most, (rows.rows + rows_in_block - 1) / rows_in_block));
}

// Channels whose sums a block makes: few, so that the block which ends last has little to add up.
constexpr int kChunk = 32;
constexpr int kNumbers = 2 * kChunk;             // two sums per channel
constexpr int kPieces = kRowThreads / kNumbers;  // threads that add up for one sum

template <typename V>
struct SumLane {
  static constexpr int kVectors = kChunk / V::kSize;
  static constexpr int kRows = kRowThreads / kVectors;
  int64_t row, step;
  int channel;
  bool active;

  __device__ explicit SumLane(int channels) {
    channel = blockIdx.y * kChunk + threadIdx.x % kVectors * V::kSize;
    active = channel < channels;
    row = static_cast<int64_t>(blockIdx.x) * kRows + threadIdx.x / kVectors;
    step = static_cast<int64_t>(gridDim.x) * kRows;
  }
};

int64_t chunks_of(int64_t channels) {
  return (channels + kChunk - 1) / kChunk;
}

template <typename V>
dim3 sum_blocks(const Rows& rows) {
  const int64_t chunks = chunks_of(rows.channels), needed = (rows.rows + SumLane<V>::kRows - 1) / SumLane<V>::kRows;
  return dim3(static_cast<unsigned>(std::max<int64_t>(1, std::min(kBlocks / chunks, needed))),
              static_cast<unsigned>(chunks));
}

// Adds two numbers per channel over all rows: in a warp by shuffles, in the block through shared memory, over blocks in
// a fixed order by the block that ends last, which returns true with the chunk's totals in `totals` as [2][kChunk].
template <typename V>
__device__ bool reduce_pairs(float (&a)[V::kSize], float (&b)[V::kSize], float* scratch, unsigned* counters,
                             float (&totals)[kNumbers]) {
  constexpr int kSize = V::kSize, kVectors = SumLane<V>::kVectors, kWarps = kRowThreads / 32;
  __shared__ float shared[kRowThreads];
  __shared__ float by_warp[kWarps][kNumbers];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < kSize; ++i) {
#pragma unroll
    for (int step = kVectors; step < 32; step *= 2) {
      a[i] += __shfl_xor_sync(0xFFFFFFFFu, a[i], step);
      b[i] += __shfl_xor_sync(0xFFFFFFFFu, b[i], step);
    }
    if (lane < kVectors) {
      by_warp[warp][lane * kSize + i] = a[i];
      by_warp[warp][kChunk + lane * kSize + i] = b[i];
    }
  }
  __syncthreads();
  float* partials = scratch + static_cast<int64_t>(blockIdx.y) * gridDim.x * kNumbers;
  if (threadIdx.x < kNumbers) {
    float sum = 0;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) sum += by_warp[w][threadIdx.x];
    __stcg(partials + blockIdx.x * kNumbers + threadIdx.x, sum);
  }
  __shared__ bool is_last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) is_last = atomicAdd(counters + blockIdx.y, 1u) == gridDim.x - 1;
  __syncthreads();
  if (!is_last) return false;
  __threadfence();
  const int number = threadIdx.x % kNumbers, piece = threadIdx.x / kNumbers;
  float sum = 0;
#pragma unroll 8
  for (int block = piece; block < gridDim.x; block += kPieces) sum += __ldcg(partials + block * kNumbers + number);
  shared[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x < kNumbers) {
    sum = 0;
#pragma unroll
    for (int p = 0; p < kPieces; ++p) sum += shared[p * kNumbers + threadIdx.x];
    totals[threadIdx.x] = sum;
  }
  __syncthreads();
  if (threadIdx.x == 0) counters[blockIdx.y] = 0;
  return true;
}

// Unlike fmaxf(x, 0), it keeps NaN: what went wrong must reach the loss.
__device__ float no_less_than_zero(float x) {
  return x < 0.0f ? 0.0f : x;
}

// A thread's share of per-channel values.
template <int N>
__device__ void load_channels(const float* from, float (&to)[N]) {
#pragma unroll
  for (int i = 0; i < N; i += 4) {
    const float4 four = *reinterpret_cast<const float4*>(from + i);
    to[i] = four.x;
    to[i + 1] = four.y;
    to[i + 2] = four.z;
    to[i + 3] = four.w;
  }
}

template <typename V>
__global__ void __launch_bounds__(kRowThreads, kResident)
    statistics_kernel(NormArguments norm, const void* __restrict__ x, float* scratch, unsigned* counters) {
  __shared__ float totals[kNumbers];
  constexpr int kSize = V::kSize;
  const int channels = static_cast<int>(norm.rows.channels);
  const SumLane<V> lane(channels);
  float sum[kSize] = {}, squares[kSize] = {};
  if (lane.active) {
    // Around the first row's values, so that a large mean does not swallow the variance.
    const V around = load<V>(x, lane.channel);
#pragma unroll 2
    for (int64_t row = lane.row; row < norm.rows.rows; row += lane.step) {
      const V pixels = load<V>(x, row * channels + lane.channel);
#pragma unroll
      for (int i = 0; i < kSize; ++i) {
        const float off = pixels.v[i] - around.v[i];
        sum[i] += off;
        squares[i] += off * off;
      }
    }
  }
  if (!reduce_pairs<V>(sum, squares, scratch, counters, totals)) return;
  const float count = static_cast<float>(norm.rows.rows);
  const int c = blockIdx.y * kChunk + threadIdx.x;
  if (threadIdx.x < kChunk && c < channels) {
    const float off = totals[threadIdx.x] / count;
    const float variance = no_less_than_zero(totals[kChunk + threadIdx.x] / count - off * off);
    const float mean = off + to_float(static_cast<const typename V::Element*>(x)[c]);
    const float inverse_sd = rsqrtf(variance + kEpsilon);
    norm.mean[c] = mean;
    norm.inverse_sd[c] = inverse_sd;
    const bool real = c < norm.real;
    norm.scale[c] = real ? norm.gamma[c] * inverse_sd : 0.0f;
    norm.shift[c] = real ? norm.beta[c] - mean * norm.scale[c] : 0.0f;
    if (real) {
      const float unbiased = variance * count / fmaxf(count - 1.0f, 1.0f);
      norm.running_mean[c] += kRunningMomentum * (mean - norm.running_mean[c]);
      norm.running_var[c] += kRunningMomentum * (unbiased - norm.running_var[c]);
    }
  }
  if (threadIdx.x == 0 && blockIdx.y == 0) *norm.batches += 1;
}

__global__ void running_kernel(NormArguments norm) {
  const int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= norm.rows.channels) return;
  const bool real = c < norm.real;
  norm.scale[c] = real ? norm.gamma[c] * rsqrtf(norm.running_var[c] + kEpsilon) : 0.0f;
  norm.shift[c] = real ? norm.beta[c] - norm.running_mean[c] * norm.scale[c] : 0.0f;
}

template <typename V, bool kResidual>
__global__ void __launch_bounds__(kRowThreads) apply_kernel(NormArguments norm, const void* __restrict__ x,
                                                            const void* __restrict__ residual, void* __restrict__ y) {
  constexpr int kSize = V::kSize;
  const int channels = static_cast<int>(norm.rows.channels);
  const Lane<V> lane(norm.rows);
  if (!lane.active) return;
  float scale[kSize], shift[kSize];
  load_channels(norm.scale + lane.channel, scale);
  load_channels(norm.shift + lane.channel, shift);
#pragma unroll 4
  for (int64_t row = lane.row; row >= 0; row -= lane.step) {
    const int64_t at = row * channels + lane.channel;
    V out = load<V>(x, at, /*again=*/false);
    V other{};
    if (kResidual) other = load<V>(residual, at, /*again=*/false);
#pragma unroll
    for (int i = 0; i < kSize; ++i) {
      out.v[i] = fmaf(out.v[i], scale[i], shift[i]);
      if (kResidual) out.v[i] += other.v[i];
      if (norm.relu) out.v[i] = no_less_than_zero(out.v[i]);
    }
    store(out, y, at);
  }
}

// dy through the ReLU, for one vector. The second pass reads dy again, unless it finds what this returns: dz.
template <typename V, bool kSecond, bool kByOutput>
__device__ V through_relu(const NormBackwardArguments& a, int64_t at, const V& x, const float (&scale)[V::kSize],
                          const float (&shift)[V::kSize]) {
  V dz = load<V>(a.dy[0], at, /*again=*/!kByOutput);
  if (kSecond) {
    const V more = load<V>(a.dy[1], at, /*again=*/!kByOutput);
#pragma unroll
    for (int i = 0; i < V::kSize; ++i) dz.v[i] += more.v[i];
  }
  if (a.norm.relu) {
    V y{};
    if (kByOutput) y = load<V>(a.y, at, /*again=*/false);
#pragma unroll
    for (int i = 0; i < V::kSize; ++i) {
      const float out = kByOutput ? y.v[i] : fmaf(x.v[i], scale[i], shift[i]);
      if (out <= 0.0f) dz.v[i] = 0.0f;  // a NaN lets the gradient through, as autograd does
    }
  }
  return dz;
}

template <typename V, bool kSecond, bool kResidual>
__global__ void __launch_bounds__(kRowThreads, kResident)
    backward_reduce_kernel(NormBackwardArguments a, float* scratch, unsigned* counters) {
  __shared__ float totals[kNumbers];
  constexpr int kSize = V::kSize;
  const int channels = static_cast<int>(a.norm.rows.channels);
  const SumLane<V> lane(channels);
  float sum[kSize] = {}, product[kSize] = {};
  if (lane.active) {
    float scale[kSize], shift[kSize], mean[kSize];
    load_channels(a.norm.scale + lane.channel, scale);
    load_channels(a.norm.shift + lane.channel, shift);
    load_channels(a.norm.mean + lane.channel, mean);
#pragma unroll 1
    for (int64_t row = lane.row; row < a.norm.rows.rows; row += lane.step) {
      const int64_t at = row * channels + lane.channel;
      const V x = load<V>(a.x, at);
      const V dz = through_relu<V, kSecond, kResidual>(a, at, x, scale, shift);
      if (kResidual) store(dz, a.dz, at);
#pragma unroll
      for (int i = 0; i < kSize; ++i) {
        sum[i] += dz.v[i];
        product[i] += dz.v[i] * (x.v[i] - mean[i]);
      }
    }
  }
  if (!reduce_pairs<V>(sum, product, scratch, counters, totals)) return;
  const float count = static_cast<float>(a.norm.rows.rows);
  const int c = blockIdx.y * kChunk + threadIdx.x;
  if (threadIdx.x < kChunk && c < channels) {
    const bool real = c < a.norm.real;
    const float inverse_sd = a.norm.inverse_sd[c], slope = a.norm.scale[c];
    const float total = real ? totals[threadIdx.x] : 0.0f;
    const float with_x = real ? totals[kChunk + threadIdx.x] * inverse_sd : 0.0f;
    a.beta_grad[c] = total;
    a.gamma_grad[c] = with_x;
    // dx = scale * (dz - total / n - (x - mean) * inverse_sd * with_x / n)
    const float tilt = -slope * with_x / count * inverse_sd;
    a.coefficients[c] = tilt;
    a.coefficients[channels + c] = -slope * total / count - tilt * a.norm.mean[c];
  }
}

template <typename V, bool kSecond, bool kResidual>
__global__ void __launch_bounds__(kRowThreads, kResident) backward_apply_kernel(NormBackwardArguments a) {
  constexpr int kSize = V::kSize;
  const int channels = static_cast<int>(a.norm.rows.channels);
  const Lane<V> lane(a.norm.rows);
  if (!lane.active) return;
  float scale[kSize], shift[kSize] = {}, tilt[kSize], level[kSize];
  load_channels(a.norm.scale + lane.channel, scale);
  if (!kResidual) load_channels(a.norm.shift + lane.channel, shift);
  load_channels(a.coefficients + lane.channel, tilt);
  load_channels(a.coefficients + channels + lane.channel, level);
#pragma unroll 1
  for (int64_t row = lane.row; row >= 0; row -= lane.step) {
    const int64_t at = row * channels + lane.channel;
    const V x = load<V>(a.x, at, /*again=*/false);
    V dx;
    if (kResidual) {
      dx = load<V>(a.dz, at, /*again=*/false);
    } else {
      dx = through_relu<V, kSecond, false>(a, at, x, scale, shift);
    }
#pragma unroll
    for (int i = 0; i < kSize; ++i) dx.v[i] = fmaf(dx.v[i], scale[i], fmaf(x.v[i], tilt[i], level[i]));
    store(dx, a.dx, at);
  }
}

template <typename V, bool kSecond, bool kResidual>
void run_norm_backward(const NormBackwardArguments& a, float* scratch, unsigned* counters, cudaStream_t stream) {
  const Rows& rows = a.norm.rows;
  backward_reduce_kernel<V, kSecond, kResidual><<<sum_blocks<V>(rows), kRowThreads, 0, stream>>>(a, scratch, counters);
  backward_apply_kernel<V, kSecond, kResidual><<<pass_blocks<V>(rows, kBlocks), kRowThreads, 0, stream>>>(a);
}

template <typename V>
void choose_norm_backward(const NormBackwardArguments& a, float* scratch, unsigned* counters, cudaStream_t stream) {
  const bool second = a.dy[1] != nullptr, residual = a.dz != nullptr;
  if (second && residual) return run_norm_backward<V, true, true>(a, scratch, counters, stream);
  if (second) return run_norm_backward<V, true, false>(a, scratch, counters, stream);
  if (residual) return run_norm_backward<V, false, true>(a, scratch, counters, stream);
  run_norm_backward<V, false, false>(a, scratch, counters, stream);
}

}  // namespace

int64_t norm_scratch_floats(int64_t channels) {
  // At most kBlocks blocks, or one for each chunk.
  return std::max<int64_t>(kBlocks, chunks_of(channels)) * kNumbers;
}

int64_t norm_counters(int64_t channels) {
  return chunks_of(channels);
}

void norm_statistics(const NormArguments& norm, const void* x, float* scratch, unsigned* counters,
                     cudaStream_t stream) {
  of_type(norm.rows.wide, [&](auto zero) {
    using V = ForwardVector<decltype(zero)>;
    statistics_kernel<V><<<sum_blocks<V>(norm.rows), kRowThreads, 0, stream>>>(norm, x, scratch, counters);
  });
}

void norm_from_running(const NormArguments& norm, cudaStream_t stream) {
  const int threads = 256;
  running_kernel<<<static_cast<int>((norm.rows.channels + threads - 1) / threads), threads, 0, stream>>>(norm);
}

void norm_apply(const NormArguments& norm, const void* x, const void* residual, void* y, cudaStream_t stream) {
  of_type(norm.rows.wide, [&](auto zero) {
    using V = ForwardVector<decltype(zero)>;
    const int blocks = pass_blocks<V>(norm.rows, kForwardBlocks);
    if (residual != nullptr) {
      apply_kernel<V, true><<<blocks, kRowThreads, 0, stream>>>(norm, x, residual, y);
    } else {
      apply_kernel<V, false><<<blocks, kRowThreads, 0, stream>>>(norm, x, nullptr, y);
    }
  });
}

void norm_backward(const NormBackwardArguments& arguments, float* scratch, unsigned* counters, cudaStream_t stream) {
  of_type(arguments.norm.rows.wide, [&](auto zero) {
    choose_norm_backward<BackwardVector<decltype(zero)>>(arguments, scratch, counters, stream);
  });
}

}  // namespace onetap::fused::cuda
