#include "onetap/base/random.h"
#include "onetap/fused/kernels.h"

#include <cuda_bf16.h>

#include <algorithm>
#include <type_traits>

namespace onetap::fused::cuda {
namespace {

using Half = __nv_bfloat16;

constexpr float kEpsilon = 1e-5f;
constexpr float kRunningMomentum = 0.1f;

// 16 bytes of activations as floats.
template <typename T>
struct Vector;

template <>
struct Vector<float> {
  static constexpr int kSize = 4;
  float v[4];
  __device__ static Vector load(const float* from) {
    const float4 raw = *reinterpret_cast<const float4*>(from);
    return {{raw.x, raw.y, raw.z, raw.w}};
  }
  __device__ void store(float* to) const { *reinterpret_cast<float4*>(to) = make_float4(v[0], v[1], v[2], v[3]); }
};

template <>
struct Vector<Half> {
  static constexpr int kSize = 8;
  float v[8];
  __device__ static Vector load(const Half* from) {
    const uint4 raw = *reinterpret_cast<const uint4*>(from);
    const uint32_t words[4] = {raw.x, raw.y, raw.z, raw.w};
    Vector out;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      out.v[2 * i] = __uint_as_float(words[i] << 16);
      out.v[2 * i + 1] = __uint_as_float(words[i] & 0xFFFF0000u);
    }
    return out;
  }
  __device__ void store(Half* to) const {
    uint32_t words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const __nv_bfloat162 pair = __floats2bfloat162_rn(v[2 * i], v[2 * i + 1]);
      words[i] = *reinterpret_cast<const uint32_t*>(&pair);
    }
    *reinterpret_cast<uint4*>(to) = make_uint4(words[0], words[1], words[2], words[3]);
  }
};

__device__ float to_float(float x) { return x; }
__device__ float to_float(Half x) { return __bfloat162float(x); }
__device__ void put(float x, float* to) { *to = x; }
__device__ void put(float x, Half* to) { *to = __float2bfloat16_rn(x); }

// --- rows ---------------------------------------------------------------------------------------------------------

constexpr int kRowThreads = 512;
// Two and four for each multiprocessor of the chip this was tuned on: sums have an end that is paid once a block.
constexpr int kSumBlocks = 264;
constexpr int kPassBlocks = 528;

// A thread's place in a pass over all rows: channels [channel, channel + kSize) of rows row, row + step, ...
template <typename T>
struct Lane {
  int64_t row, step;
  int channel;
  bool active;

  __device__ explicit Lane(int channels) {
    const int vectors = channels / Vector<T>::kSize, rows_in_block = kRowThreads / vectors;
    const int row_in_block = threadIdx.x / vectors;
    active = row_in_block < rows_in_block;
    channel = threadIdx.x % vectors * Vector<T>::kSize;
    row = static_cast<int64_t>(blockIdx.x) * rows_in_block + row_in_block;
    step = static_cast<int64_t>(gridDim.x) * rows_in_block;
  }
};

template <typename T>
int pass_blocks(const Rows& rows) {
  const int64_t rows_in_block = kRowThreads / (rows.channels / Vector<T>::kSize);
  return static_cast<int>(std::min<int64_t>(kPassBlocks, (rows.rows + rows_in_block - 1) / rows_in_block));
}

// Channels whose sums a block makes: few, so that the block which ends last has little to add up.
constexpr int kChunk = 32;
constexpr int kNumbers = 2 * kChunk;                // two sums per channel
constexpr int kPieces = kRowThreads / kNumbers;     // threads that add up for one sum

template <typename T>
struct SumLane {
  static constexpr int kVectors = kChunk / Vector<T>::kSize;
  static constexpr int kRows = kRowThreads / kVectors;
  int64_t row, step;
  int channel;
  bool active;

  __device__ explicit SumLane(int channels) {
    channel = blockIdx.y * kChunk + threadIdx.x % kVectors * Vector<T>::kSize;
    active = channel < channels;
    row = static_cast<int64_t>(blockIdx.x) * kRows + threadIdx.x / kVectors;
    step = static_cast<int64_t>(gridDim.x) * kRows;
  }
};

int64_t chunks_of(int64_t channels) {
  return (channels + kChunk - 1) / kChunk;
}

template <typename T>
dim3 sum_blocks(const Rows& rows) {
  const int64_t chunks = chunks_of(rows.channels), needed = (rows.rows + SumLane<T>::kRows - 1) / SumLane<T>::kRows;
  return dim3(static_cast<unsigned>(std::max<int64_t>(1, std::min(kSumBlocks / chunks, needed))),
              static_cast<unsigned>(chunks));
}

// Adds two numbers per channel over all rows: in a warp by shuffles, in the block through shared memory, over blocks in a
// fixed order by the block that ends last, which returns true with the chunk's totals in `totals` as [2][kChunk].
template <typename T>
__device__ bool reduce_pairs(float (&a)[Vector<T>::kSize], float (&b)[Vector<T>::kSize], float* scratch,
                             unsigned* counters, float (&totals)[kNumbers]) {
  constexpr int kSize = Vector<T>::kSize, kVectors = SumLane<T>::kVectors, kWarps = kRowThreads / 32;
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

template <typename T>
__global__ void __launch_bounds__(kRowThreads) statistics_kernel(NormArguments norm, const T* __restrict__ x,
                                                                 float* scratch, unsigned* counters) {
  __shared__ float totals[kNumbers];
  constexpr int kSize = Vector<T>::kSize;
  const int channels = static_cast<int>(norm.rows.channels);
  const SumLane<T> lane(channels);
  float sum[kSize] = {}, squares[kSize] = {};
  if (lane.active) {
    // Around the first row's values, so that a large mean does not swallow the variance.
    const Vector<T> around = Vector<T>::load(x + lane.channel);
#pragma unroll 4
    for (int64_t row = lane.row; row < norm.rows.rows; row += lane.step) {
      const Vector<T> pixels = Vector<T>::load(x + row * channels + lane.channel);
#pragma unroll
      for (int i = 0; i < kSize; ++i) {
        const float off = pixels.v[i] - around.v[i];
        sum[i] += off;
        squares[i] += off * off;
      }
    }
  }
  if (!reduce_pairs<T>(sum, squares, scratch, counters, totals)) return;
  const float count = static_cast<float>(norm.rows.rows);
  const int c = blockIdx.y * kChunk + threadIdx.x;
  if (threadIdx.x < kChunk && c < channels) {
    const float off = totals[threadIdx.x] / count;
    const float variance = fmaxf(totals[kChunk + threadIdx.x] / count - off * off, 0.0f);
    const float mean = off + to_float(x[c]);
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

template <typename T, bool kResidual>
__global__ void __launch_bounds__(kRowThreads) apply_kernel(NormArguments norm, const T* __restrict__ x, const T* __restrict__ residual,
                             T* __restrict__ y) {
  constexpr int kSize = Vector<T>::kSize;
  const int channels = static_cast<int>(norm.rows.channels);
  const Lane<T> lane(channels);
  if (!lane.active) return;
  float scale[kSize], shift[kSize];
  load_channels(norm.scale + lane.channel, scale);
  load_channels(norm.shift + lane.channel, shift);
#pragma unroll 4
  for (int64_t row = lane.row; row < norm.rows.rows; row += lane.step) {
    const int64_t at = row * channels + lane.channel;
    Vector<T> out = Vector<T>::load(x + at);
    Vector<T> other{};
    if (kResidual) other = Vector<T>::load(residual + at);
#pragma unroll
    for (int i = 0; i < kSize; ++i) {
      out.v[i] = fmaf(out.v[i], scale[i], shift[i]);
      if (kResidual) out.v[i] += other.v[i];
      if (norm.relu) out.v[i] = fmaxf(out.v[i], 0.0f);
    }
    out.store(y + at);
  }
}

// dy through the ReLU, for one vector.
template <typename T, bool kSecond, bool kByOutput>
__device__ Vector<T> through_relu(const NormBackwardArguments& a, int64_t at, const Vector<T>& x,
                                  const float (&scale)[Vector<T>::kSize], const float (&shift)[Vector<T>::kSize]) {
  Vector<T> dz = Vector<T>::load(static_cast<const T*>(a.dy[0]) + at);
  if (kSecond) {
    const Vector<T> more = Vector<T>::load(static_cast<const T*>(a.dy[1]) + at);
#pragma unroll
    for (int i = 0; i < Vector<T>::kSize; ++i) dz.v[i] += more.v[i];
  }
  if (a.norm.relu) {
    Vector<T> y{};
    if (kByOutput) y = Vector<T>::load(static_cast<const T*>(a.y) + at);
#pragma unroll
    for (int i = 0; i < Vector<T>::kSize; ++i) {
      const float out = kByOutput ? y.v[i] : fmaf(x.v[i], scale[i], shift[i]);
      if (!(out > 0.0f)) dz.v[i] = 0.0f;
    }
  }
  return dz;
}

template <typename T, bool kSecond, bool kResidual>
__global__ void __launch_bounds__(kRowThreads) backward_reduce_kernel(NormBackwardArguments a, float* scratch,
                                                                      unsigned* counters) {
  __shared__ float totals[kNumbers];
  constexpr int kSize = Vector<T>::kSize;
  const int channels = static_cast<int>(a.norm.rows.channels);
  const SumLane<T> lane(channels);
  float sum[kSize] = {}, product[kSize] = {};
  if (lane.active) {
    float scale[kSize], shift[kSize], mean[kSize];
    load_channels(a.norm.scale + lane.channel, scale);
    load_channels(a.norm.shift + lane.channel, shift);
    load_channels(a.norm.mean + lane.channel, mean);
#pragma unroll 2
    for (int64_t row = lane.row; row < a.norm.rows.rows; row += lane.step) {
      const int64_t at = row * channels + lane.channel;
      const Vector<T> x = Vector<T>::load(static_cast<const T*>(a.x) + at);
      const Vector<T> dz = through_relu<T, kSecond, kResidual>(a, at, x, scale, shift);
      if (kResidual) dz.store(static_cast<T*>(a.dz) + at);
#pragma unroll
      for (int i = 0; i < kSize; ++i) {
        sum[i] += dz.v[i];
        product[i] += dz.v[i] * (x.v[i] - mean[i]);
      }
    }
  }
  if (!reduce_pairs<T>(sum, product, scratch, counters, totals)) return;
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
    a.coefficients[c] = slope;
    a.coefficients[channels + c] = tilt;
    a.coefficients[2 * channels + c] = -slope * total / count - tilt * a.norm.mean[c];
  }
}

template <typename T, bool kSecond, bool kResidual>
__global__ void __launch_bounds__(kRowThreads) backward_apply_kernel(NormBackwardArguments a) {
  constexpr int kSize = Vector<T>::kSize;
  const int channels = static_cast<int>(a.norm.rows.channels);
  const Lane<T> lane(channels);
  if (!lane.active) return;
  float scale[kSize] = {}, shift[kSize] = {}, slope[kSize], tilt[kSize], level[kSize];
  if (!kResidual) {
    load_channels(a.norm.scale + lane.channel, scale);
    load_channels(a.norm.shift + lane.channel, shift);
  }
  load_channels(a.coefficients + lane.channel, slope);
  load_channels(a.coefficients + channels + lane.channel, tilt);
  load_channels(a.coefficients + 2 * channels + lane.channel, level);
#pragma unroll 2
  for (int64_t row = lane.row; row < a.norm.rows.rows; row += lane.step) {
    const int64_t at = row * channels + lane.channel;
    const Vector<T> x = Vector<T>::load(static_cast<const T*>(a.x) + at);
    Vector<T> dx;
    if (kResidual) {
      dx = Vector<T>::load(static_cast<const T*>(a.dz) + at);
    } else {
      dx = through_relu<T, kSecond, false>(a, at, x, scale, shift);
    }
#pragma unroll
    for (int i = 0; i < kSize; ++i) dx.v[i] = fmaf(dx.v[i], slope[i], fmaf(x.v[i], tilt[i], level[i]));
    dx.store(static_cast<T*>(a.dx) + at);
  }
}

template <typename T, bool kSecond, bool kResidual>
void run_norm_backward(const NormBackwardArguments& a, float* scratch, unsigned* counters, cudaStream_t stream) {
  const Rows& rows = a.norm.rows;
  backward_reduce_kernel<T, kSecond, kResidual>
      <<<sum_blocks<T>(rows), kRowThreads, 0, stream>>>(a, scratch, counters);
  backward_apply_kernel<T, kSecond, kResidual><<<pass_blocks<T>(rows), kRowThreads, 0, stream>>>(a);
}

template <typename T>
void choose_norm_backward(const NormBackwardArguments& a, float* scratch, unsigned* counters, cudaStream_t stream) {
  const bool second = a.dy[1] != nullptr, residual = a.dz != nullptr;
  if (second && residual) return run_norm_backward<T, true, true>(a, scratch, counters, stream);
  if (second) return run_norm_backward<T, true, false>(a, scratch, counters, stream);
  if (residual) return run_norm_backward<T, false, true>(a, scratch, counters, stream);
  run_norm_backward<T, false, false>(a, scratch, counters, stream);
}

// --- pool, loss, data ---------------------------------------------------------------------------------------------

// A block has 64 channels of an image, and every pixel by one of four threads.
constexpr int kPoolChannels = 64, kPoolPieces = 4;

template <typename T>
__global__ void pool_kernel(const T* __restrict__ x, int pixels, int channels, int real, float* __restrict__ y) {
  __shared__ float sums[kPoolPieces][kPoolChannels];
  const int c = blockIdx.y * kPoolChannels + threadIdx.x;
  const T* image = x + static_cast<int64_t>(blockIdx.x) * pixels * channels;
  float sum = 0;
  if (c < real) {
#pragma unroll 8
    for (int p = threadIdx.y; p < pixels; p += kPoolPieces) {
      sum += to_float(image[static_cast<int64_t>(p) * channels + c]);
    }
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || c >= real) return;
  for (int piece = 1; piece < kPoolPieces; ++piece) sum += sums[piece][threadIdx.x];
  y[static_cast<int64_t>(blockIdx.x) * real + c] = sum / static_cast<float>(pixels);
}

// One warp for each column.
__global__ void column_sums_kernel(const float* __restrict__ x, int rows, int columns, float* __restrict__ sums) {
  const int c = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  if (c >= columns) return;
  float sum = 0;
#pragma unroll 4
  for (int r = threadIdx.x % 32; r < rows; r += 32) sum += x[static_cast<int64_t>(r) * columns + c];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, step);
  if (threadIdx.x % 32 == 0) sums[c] = sum;
}

template <typename T>
__global__ void pool_backward_kernel(const float* __restrict__ dy, int pixels, int channels, int real,
                                     T* __restrict__ dx) {
  T* image = dx + static_cast<int64_t>(blockIdx.x) * pixels * channels;
  for (int c = threadIdx.x; c < channels; c += blockDim.x) {
    const float each =
        c < real ? dy[static_cast<int64_t>(blockIdx.x) * real + c] / static_cast<float>(pixels) : 0.0f;
    for (int p = 0; p < pixels; ++p) put(each, image + static_cast<int64_t>(p) * channels + c);
  }
}

constexpr int kLossThreads = 1024;

__device__ float warp_sum(float x) {
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(0xFFFFFFFFu, x, step);
  return x;
}

// One block: a warp for every image in turn. Sums in a fixed order.
__global__ void cross_entropy_kernel(const float* __restrict__ logits, const int64_t* __restrict__ labels, int images,
                                     int classes, float smoothing, float* __restrict__ dlogits, double* sums) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  double loss = 0, right = 0;
  for (int n = warp; n < images; n += warps) {
    const float* row = logits + static_cast<int64_t>(n) * classes;
    const int label = static_cast<int>(labels[n]);
    float best = -INFINITY;
    int best_at = classes;
    for (int c = lane; c < classes; c += 32) {
      if (row[c] > best || best_at == classes) {
        best = row[c];
        best_at = c;
      }
    }
    for (int step = 16; step > 0; step /= 2) {
      const float other = __shfl_xor_sync(0xFFFFFFFFu, best, step);
      const int other_at = __shfl_xor_sync(0xFFFFFFFFu, best_at, step);
      if (other > best || (other == best && other_at < best_at)) {
        best = other;
        best_at = other_at;
      }
    }
    float total = 0, all = 0;
    for (int c = lane; c < classes; c += 32) {
      total += expf(row[c] - best);
      all += row[c];
    }
    total = warp_sum(total);
    all = warp_sum(all);
    const float log_total = logf(total) + best;
    const float even = smoothing / static_cast<float>(classes);
    for (int c = lane; c < classes; c += 32) {
      const float target = even + (c == label ? 1.0f - smoothing : 0.0f);
      dlogits[static_cast<int64_t>(n) * classes + c] =
          (expf(row[c] - log_total) - target) / static_cast<float>(images);
    }
    if (lane == 0) {
      loss += (1.0f - smoothing) * (log_total - row[label]) +
              even * (static_cast<float>(classes) * log_total - all);
      right += best_at == label;
    }
  }
  __shared__ double losses[kLossThreads / 32], rights[kLossThreads / 32];
  if (lane == 0) {
    losses[warp] = loss;
    rights[warp] = right;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < warps; ++w) {
      losses[0] += losses[w];
      rights[0] += rights[w];
    }
    sums[0] += losses[0];
    sums[1] += rights[0];
  }
}

// A block for each image.
template <typename T>
__global__ void sample_kernel(SampleArguments a) {
  const int n = blockIdx.x;
  const int index = a.order[a.clock[0] * a.batch + n];
  int top = 0, left = 0;
  bool flip = false;
  if (a.augment) {
    Random random(a.seed, Purpose::kAugment, static_cast<uint32_t>(a.clock[1]), static_cast<uint32_t>(index));
    top = static_cast<int>(random.below(2 * a.pad + 1)) - a.pad;
    left = static_cast<int>(random.below(2 * a.pad + 1)) - a.pad;
    flip = random.coin() && a.flip;
  }
  const int height = static_cast<int>(a.height), width = static_cast<int>(a.width);
  const uint8_t* image = a.images + static_cast<int64_t>(index) * 3 * height * width;
  T* out = static_cast<T*>(a.out) + static_cast<int64_t>(n) * height * width * a.channels;
  for (int p = threadIdx.x; p < height * width; p += blockDim.x) {
    const int y = p / width + top, x = left + (flip ? width - 1 - p % width : p % width);
    const bool inside = y >= 0 && y < height && x >= 0 && x < width;
    T* pixel = out + static_cast<int64_t>(p) * a.channels;
    for (int c = 0; c < a.channels; ++c) {
      float value = 0;
      if (c < 3) {
        const float byte = inside ? static_cast<float>(image[(c * height + y) * width + x]) : 0.0f;
        value = __fadd_rn(__fmul_rn(byte, a.multiply[c]), a.add[c]);
      }
      put(value, pixel + c);
    }
  }
  if (threadIdx.x == 0) a.out_labels[n] = a.labels[index];
}

__global__ void advance_kernel(int64_t* clock, int64_t* counter, const float* tables, int64_t steps, float* rates) {
  const int64_t next = ++*counter;
  ++clock[0];
  rates[0] = tables[next];
  rates[1] = tables[steps + next];
}

// --- weights ------------------------------------------------------------------------------------------------------
// A thread has one slice: the S positions between an input and a group of outputs. A block has neighbouring ones, which
// come and go through shared memory, so that memory is read in order.

constexpr int kSlices = 96;  // four arrays of as many 5x5 slices fit a block's shared memory
constexpr float kLeastVariance = 1e-12f;
constexpr float kDeepest = -60.0f;
constexpr int kEntries = 32;  // convolutions for one launch: they travel as its arguments

struct ConvTable {
  ConvEntry entries[kEntries];
  int first_block[kEntries + 1];
  int count;
};

int64_t slices_of(const ConvEntry& conv) {
  return static_cast<int64_t>((conv.outputs + conv.share - 1) / conv.share) * conv.inputs;
}

// The slices of a block, and this thread's.
struct Place {
  int conv;
  int count;                // of the block
  int64_t first;            // in the layer
  int group, input;         // this thread's
  bool active;

  __device__ explicit Place(const ConvTable& table) {
    conv = 0;
    while (static_cast<int>(blockIdx.x) >= table.first_block[conv + 1]) ++conv;
    const ConvEntry& entry = table.entries[conv];
    const int groups = (entry.outputs + entry.share - 1) / entry.share;
    first = static_cast<int64_t>(static_cast<int>(blockIdx.x) - table.first_block[conv]) * kSlices;
    count = static_cast<int>(min(static_cast<int64_t>(kSlices), static_cast<int64_t>(groups) * entry.inputs - first));
    active = static_cast<int>(threadIdx.x) < count;
    const int mine = static_cast<int>(first) + (active ? static_cast<int>(threadIdx.x) : 0);
    group = mine / entry.inputs;
    input = mine % entry.inputs;
  }
};

// Where the block's slices of output j of each group begin in the layer's weights; -1 for a group without such an output.
__device__ void locate(const ConvEntry& conv, const Place& place, int j, int S, int* starts) {
  __syncthreads();
  const int output = place.group * conv.share + j;
  if (place.active) starts[threadIdx.x] = output < conv.outputs ? (output * conv.inputs + place.input) * S : -1;
  __syncthreads();
}

template <int S>
__device__ void fetch(const float* from, const int* starts, int count, float* to) {
  for (int i = threadIdx.x; i < count * S; i += blockDim.x) {
    const int start = starts[i / S];
    if (start >= 0) to[i] = from[start + i % S];
  }
}

template <int S>
__device__ void put_back(const float* from, const int* starts, int count, float* to) {
  for (int i = threadIdx.x; i < count * S; i += blockDim.x) {
    const int start = starts[i / S];
    if (start >= 0) to[start + i % S] = from[i];
  }
}

// What lies together in memory.
template <int S>
__device__ void copy(const float* from, int count, float* to) {
  for (int i = threadIdx.x; i < count * S; i += blockDim.x) to[i] = from[i];
}

template <int S>
struct Attention {
  static constexpr float kDegrees = S > 1 ? S - 1 : 1;  // of freedom
  float p[S];
  float inverse_sd, mean, best;
  bool flat;

  __device__ Attention(const float* a, float temperature) {
    float sum = 0;
    best = -INFINITY;
#pragma unroll
    for (int s = 0; s < S; ++s) {
      sum += a[s];
      best = fmaxf(best, a[s]);
    }
    mean = sum / S;
    float squares = 0;
#pragma unroll
    for (int s = 0; s < S; ++s) squares += (a[s] - mean) * (a[s] - mean);
    const float variance = squares / kDegrees;
    flat = variance < kLeastVariance;
    inverse_sd = flat ? 1.0f : rsqrtf(variance);
    const float factor = inverse_sd / temperature;
    float total = 0;
#pragma unroll
    for (int s = 0; s < S; ++s) total += p[s] = __expf(fmaxf((a[s] - best) * factor, kDeepest));
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
      const bool cut = (a[s] - best) * inverse_sd / temperature < kDeepest;
      da[s] = cut ? 0.0f : p[s] * (dp[s] - mixed) / temperature;
      along += da[s] * a[s];
    }
    const float bend = flat ? 0.0f : along * inverse_sd * inverse_sd * inverse_sd / kDegrees;
#pragma unroll
    for (int s = 0; s < S; ++s) da[s] = da[s] * inverse_sd - bend * (a[s] - mean);
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
  if (conv.attention != nullptr) copy<S>(conv.attention + place.first * S, place.count, logits);
  for (int j = 0; j < conv.share; ++j) {
    locate(conv, place, j, S, starts);
    fetch<S>(conv.weight, starts, place.count, weights);
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
  if (attends) {
    copy<S>(conv.attention + place.first * S, place.count, logits);
    copy<S>(conv.attention_momentum + place.first * S, place.count, logit_velocities);
  }
  for (int j = 0; j < conv.share; ++j) {
    locate(conv, place, j, S, starts);
    fetch<S>(conv.weight, starts, place.count, weights);
    fetch<S>(conv.weight_momentum, starts, place.count, velocities);
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
    put_back<S>(weights, starts, place.count, conv.weight);
    put_back<S>(velocities, starts, place.count, conv.weight_momentum);
  }
  if (!attends) return;
  if (place.active) {
    float* mine = logits + threadIdx.x * S;
    const Attention<S> attention(mine, temperature);
    float da[S];
    attention.backward(mine, dp, temperature, da);
#pragma unroll
    for (int s = 0; s < S; ++s) {
      mine[s] = descend(mine[s], da[s], rate, update, logit_velocities + threadIdx.x * S + s);
    }
  }
  __syncthreads();
  copy<S>(logits, place.count, conv.attention + place.first * S);
  copy<S>(logit_velocities, place.count, conv.attention_momentum + place.first * S);
}

template <typename T, int S>
__global__ void __launch_bounds__(kSlices) pack_kernel(const __grid_constant__ ConvTable table, const float* rates) {
  __shared__ float shared[2 * kSlices * S];
  __shared__ int starts[kSlices];
  const Place place(table);
  pack_block<T, S>(table.entries[place.conv], place, rates[1], shared, starts);
}

template <typename T, int S>
__global__ void __launch_bounds__(kSlices) update_kernel(const __grid_constant__ ConvTable table, const float* rates,
                                                         Update update) {
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

// Calls run(type, area) for the activations' type and every area that kernels are compiled for.
template <typename T>
struct TypeTag {
  using Type = T;
};
template <typename Run>
void over_kinds(bool wide, Run&& run) {
  const auto areas = [&](auto type) {
    run(type, std::integral_constant<int, 1>());
    run(type, std::integral_constant<int, 9>());
    run(type, std::integral_constant<int, 25>());
  };
  if (wide) {
    areas(TypeTag<float>());
  } else {
    areas(TypeTag<Half>());
  }
}

struct PlainTable {
  static constexpr int kMost = 64;
  PlainEntry entries[kMost];
};

__global__ void plain_kernel(const __grid_constant__ PlainTable table, const float* rates, Update update) {
  const PlainEntry& entry = table.entries[blockIdx.y];
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= entry.count) return;
  entry.parameter[i] = descend(entry.parameter[i], entry.grad[i], rates[0], update, entry.momentum + i);
}

}  // namespace

int64_t norm_scratch_floats(int64_t channels) {
  // At most kSumBlocks blocks, or one for each chunk.
  return std::max<int64_t>(kSumBlocks, chunks_of(channels)) * kNumbers;
}

int64_t norm_counters(int64_t channels) {
  return chunks_of(channels);
}

void norm_statistics(const NormArguments& norm, const void* x, float* scratch, unsigned* counters,
                     cudaStream_t stream) {
  const auto run = [&](auto zero) {
    using T = decltype(zero);
    statistics_kernel<T><<<sum_blocks<T>(norm.rows), kRowThreads, 0, stream>>>(
        norm, static_cast<const T*>(x), scratch, counters);
  };
  norm.rows.wide ? run(float{}) : run(Half{});
}

void norm_from_running(const NormArguments& norm, cudaStream_t stream) {
  const int threads = 256;
  running_kernel<<<static_cast<int>((norm.rows.channels + threads - 1) / threads), threads, 0, stream>>>(norm);
}

void norm_apply(const NormArguments& norm, const void* x, const void* residual, void* y, cudaStream_t stream) {
  const auto run = [&](auto zero) {
    using T = decltype(zero);
    const int blocks = pass_blocks<T>(norm.rows);
    const T* from = static_cast<const T*>(x);
    T* to = static_cast<T*>(y);
    if (residual != nullptr) {
      apply_kernel<T, true><<<blocks, kRowThreads, 0, stream>>>(norm, from, static_cast<const T*>(residual), to);
    } else {
      apply_kernel<T, false><<<blocks, kRowThreads, 0, stream>>>(norm, from, nullptr, to);
    }
  };
  norm.rows.wide ? run(float{}) : run(Half{});
}

void norm_backward(const NormBackwardArguments& arguments, float* scratch, unsigned* counters, cudaStream_t stream) {
  if (arguments.norm.rows.wide) {
    choose_norm_backward<float>(arguments, scratch, counters, stream);
  } else {
    choose_norm_backward<Half>(arguments, scratch, counters, stream);
  }
}

void global_pool(const Rows& rows, const void* x, int64_t images, int64_t real, float* y, cudaStream_t stream) {
  const int pixels = static_cast<int>(rows.rows / images), channels = static_cast<int>(rows.channels);
  const auto run = [&](auto zero) {
    using T = decltype(zero);
    const dim3 blocks(static_cast<unsigned>(images), static_cast<unsigned>((real + kPoolChannels - 1) / kPoolChannels));
    pool_kernel<T><<<blocks, dim3(kPoolChannels, kPoolPieces), 0, stream>>>(static_cast<const T*>(x), pixels, channels,
                                                                           static_cast<int>(real), y);
  };
  rows.wide ? run(float{}) : run(Half{});
}

void global_pool_backward(const Rows& rows, const float* dy, int64_t images, int64_t real, void* dx,
                          cudaStream_t stream) {
  const int pixels = static_cast<int>(rows.rows / images), channels = static_cast<int>(rows.channels);
  const auto run = [&](auto zero) {
    using T = decltype(zero);
    pool_backward_kernel<T><<<static_cast<int>(images), 256, 0, stream>>>(dy, pixels, channels, static_cast<int>(real),
                                                                         static_cast<T*>(dx));
  };
  rows.wide ? run(float{}) : run(Half{});
}

void column_sums(const float* x, int64_t rows, int64_t columns, float* sums, cudaStream_t stream) {
  constexpr int kColumns = 8;
  column_sums_kernel<<<static_cast<int>((columns + kColumns - 1) / kColumns), 32 * kColumns, 0, stream>>>(
      x, static_cast<int>(rows), static_cast<int>(columns), sums);
}

void cross_entropy(const float* logits, const int64_t* labels, int64_t images, int64_t classes, float smoothing,
                   float* dlogits, double* sums, cudaStream_t stream) {
  cross_entropy_kernel<<<1, kLossThreads, 0, stream>>>(logits, labels, static_cast<int>(images),
                                                       static_cast<int>(classes), smoothing, dlogits, sums);
}

void sample(const SampleArguments& arguments, cudaStream_t stream) {
  const auto blocks = static_cast<int>(arguments.count);
  if (arguments.wide) {
    sample_kernel<float><<<blocks, 256, 0, stream>>>(arguments);
  } else {
    sample_kernel<Half><<<blocks, 256, 0, stream>>>(arguments);
  }
}

void advance(int64_t* clock, int64_t* counter, const float* tables, int64_t steps, float* rates, cudaStream_t stream) {
  advance_kernel<<<1, 1, 0, stream>>>(clock, counter, tables, steps, rates);
}

void pack_weights(const ConvEntry* convs, int count, bool wide, const float* rates, cudaStream_t stream) {
  over_kinds(wide, [&](auto type, auto area) {
    over_convs(convs, count, area(), [&](const ConvTable& table, int blocks) {
      pack_kernel<typename decltype(type)::Type, decltype(area)::value><<<blocks, kSlices, 0, stream>>>(table, rates);
    });
  });
}

void update_convs(const ConvEntry* convs, int count, bool wide, const float* rates, const Update& update,
                  cudaStream_t stream) {
  over_kinds(wide, [&](auto type, auto area) {
    over_convs(convs, count, area(), [&](const ConvTable& table, int blocks) {
      update_kernel<typename decltype(type)::Type, decltype(area)::value>
          <<<blocks, kSlices, 0, stream>>>(table, rates, update);
    });
  });
}

void update_plain(const PlainEntry* entries, int count, const float* rates, const Update& update,
                  cudaStream_t stream) {
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
