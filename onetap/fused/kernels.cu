#include "onetap/base/random.h"
#include "onetap/fused/kernels.h"

#include <cuda_bf16.h>

#include <algorithm>

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
// A block's threads form rows of vectors: thread t works on channels [first, first + kSize) of rows first_row + k * step.

constexpr int kRowThreads = 512;
constexpr int kReduceBlocks = 264;  // two for each multiprocessor of the chip this was tuned on
constexpr int kApplyBlocks = 1056;

template <typename T>
struct Lane {
  int64_t row, step;
  int channel;
  int row_in_block, rows_in_block;
  bool active;

  __device__ explicit Lane(int channels) {
    const int vectors = channels / Vector<T>::kSize;
    rows_in_block = blockDim.x / vectors;
    row_in_block = threadIdx.x / vectors;
    active = row_in_block < rows_in_block;
    channel = threadIdx.x % vectors * Vector<T>::kSize;
    row = static_cast<int64_t>(blockIdx.x) * rows_in_block + row_in_block;
    step = static_cast<int64_t>(gridDim.x) * rows_in_block;
  }
};

int blocks_for(const Rows& rows, int vector, int most) {
  const int64_t rows_in_block = kRowThreads / (rows.channels / vector);
  return static_cast<int>(std::min<int64_t>(most, (rows.rows + rows_in_block - 1) / rows_in_block));
}

// Adds two numbers per channel over all rows: in the block through shared memory, over blocks in a fixed order by the
// block that ends last, which returns true with the totals in `shared` as [2][channels].
template <typename T>
__device__ bool reduce_pairs(const Lane<T>& lane, int channels, const float (&a)[Vector<T>::kSize],
                             const float (&b)[Vector<T>::kSize], float* shared, float* scratch, unsigned* counter) {
  constexpr int kSize = Vector<T>::kSize;
  float* rows_a = shared;
  float* rows_b = shared + lane.rows_in_block * channels;
  if (lane.active) {
#pragma unroll
    for (int i = 0; i < kSize; ++i) {
      rows_a[lane.row_in_block * channels + lane.channel + i] = a[i];
      rows_b[lane.row_in_block * channels + lane.channel + i] = b[i];
    }
  }
  __syncthreads();
  for (int c = threadIdx.x; c < 2 * channels; c += blockDim.x) {
    const float* from = c < channels ? rows_a + c : rows_b + c - channels;
    float sum = 0;
    for (int r = 0; r < lane.rows_in_block; ++r) sum += from[r * channels];
    scratch[static_cast<int64_t>(blockIdx.x) * 2 * channels + c] = sum;
  }
  __shared__ bool is_last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) is_last = atomicAdd(counter, 1u) == gridDim.x - 1;
  __syncthreads();
  if (!is_last) return false;
  __threadfence();
  // Several threads for each number, so that many loads are under way.
  const int numbers = 2 * channels, split = max(1, static_cast<int>(blockDim.x) / numbers);
  for (int base = 0; base < numbers; base += blockDim.x / split) {
    const int c = base + threadIdx.x % (blockDim.x / split), piece = threadIdx.x / (blockDim.x / split);
    float sum = 0;
    if (c < numbers && piece < split) {
#pragma unroll 8
      for (int block = piece; block < gridDim.x; block += split) {
        sum += __ldcg(scratch + static_cast<int64_t>(block) * numbers + c);
      }
    }
    __syncthreads();
    shared[numbers + threadIdx.x] = sum;
    __syncthreads();
    if (c < numbers && piece == 0) {
      for (int p = 1; p < split; ++p) sum += shared[numbers + p * (blockDim.x / split) + threadIdx.x];
      shared[c] = sum;
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) *counter = 0;
  return true;
}

int64_t reduce_shared_bytes(int64_t channels) {
  // Two numbers for every vector lane of the block, or the totals and a number per thread.
  const int64_t in_block = 2 * static_cast<int64_t>(kRowThreads) * 8;
  return std::max(in_block, 2 * channels + kRowThreads) * 4;
}

template <typename T>
__global__ void statistics_kernel(NormArguments norm, const T* __restrict__ x, float* scratch, unsigned* counter) {
  extern __shared__ float shared[];
  constexpr int kSize = Vector<T>::kSize;
  const int channels = static_cast<int>(norm.rows.channels);
  const Lane<T> lane(channels);
  float sum[kSize] = {}, squares[kSize] = {};
  // Around the first row's values, so that a large mean does not swallow the variance.
  const Vector<T> around = Vector<T>::load(x + lane.channel);
  if (lane.active) {
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
  if (!reduce_pairs<T>(lane, channels, sum, squares, shared, scratch, counter)) return;
  const float count = static_cast<float>(norm.rows.rows);
  for (int c = threadIdx.x; c < channels; c += blockDim.x) {
    const float off = shared[c] / count;
    const float variance = fmaxf(shared[channels + c] / count - off * off, 0.0f);
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
  if (threadIdx.x == 0) *norm.batches += 1;
}

__global__ void running_kernel(NormArguments norm) {
  const int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= norm.rows.channels) return;
  const bool real = c < norm.real;
  norm.scale[c] = real ? norm.gamma[c] * rsqrtf(norm.running_var[c] + kEpsilon) : 0.0f;
  norm.shift[c] = real ? norm.beta[c] - norm.running_mean[c] * norm.scale[c] : 0.0f;
}

template <typename T, bool kResidual>
__global__ void apply_kernel(NormArguments norm, const T* __restrict__ x, const T* __restrict__ residual,
                             T* __restrict__ y) {
  constexpr int kSize = Vector<T>::kSize;
  const int channels = static_cast<int>(norm.rows.channels);
  const Lane<T> lane(channels);
  if (!lane.active) return;
  float scale[kSize], shift[kSize];
#pragma unroll
  for (int i = 0; i < kSize; ++i) {
    scale[i] = norm.scale[lane.channel + i];
    shift[i] = norm.shift[lane.channel + i];
  }
#pragma unroll 2
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
__global__ void backward_reduce_kernel(NormBackwardArguments a, float* scratch, unsigned* counter) {
  extern __shared__ float shared[];
  constexpr int kSize = Vector<T>::kSize;
  const int channels = static_cast<int>(a.norm.rows.channels);
  const Lane<T> lane(channels);
  float scale[kSize], shift[kSize], mean[kSize], inverse_sd[kSize], sum[kSize] = {}, product[kSize] = {};
#pragma unroll
  for (int i = 0; i < kSize; ++i) {
    scale[i] = a.norm.scale[lane.channel + i];
    shift[i] = a.norm.shift[lane.channel + i];
    mean[i] = a.norm.mean[lane.channel + i];
    inverse_sd[i] = a.norm.inverse_sd[lane.channel + i];
  }
  if (lane.active) {
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
#pragma unroll
  for (int i = 0; i < kSize; ++i) product[i] *= inverse_sd[i];
  if (!reduce_pairs<T>(lane, channels, sum, product, shared, scratch, counter)) return;
  const float count = static_cast<float>(a.norm.rows.rows);
  for (int c = threadIdx.x; c < channels; c += blockDim.x) {
    const bool real = c < a.norm.real;
    const float total = real ? shared[c] : 0.0f, with_x = real ? shared[channels + c] : 0.0f;
    a.beta_grad[c] = total;
    a.gamma_grad[c] = with_x;
    // dx = scale * (dz - total / n - (x - mean) * inverse_sd * with_x / n)
    const float slope = a.norm.scale[c], tilt = -slope * with_x / count * a.norm.inverse_sd[c];
    a.coefficients[c] = slope;
    a.coefficients[channels + c] = tilt;
    a.coefficients[2 * channels + c] = -slope * total / count - tilt * a.norm.mean[c];
  }
}

template <typename T, bool kSecond, bool kResidual>
__global__ void backward_apply_kernel(NormBackwardArguments a) {
  constexpr int kSize = Vector<T>::kSize;
  const int channels = static_cast<int>(a.norm.rows.channels);
  const Lane<T> lane(channels);
  if (!lane.active) return;
  float scale[kSize], shift[kSize], slope[kSize], tilt[kSize], level[kSize];
#pragma unroll
  for (int i = 0; i < kSize; ++i) {
    const int c = lane.channel + i;
    scale[i] = a.norm.scale[c];
    shift[i] = a.norm.shift[c];
    slope[i] = a.coefficients[c];
    tilt[i] = a.coefficients[channels + c];
    level[i] = a.coefficients[2 * channels + c];
  }
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
void run_norm_backward(const NormBackwardArguments& a, float* scratch, unsigned* counter, cudaStream_t stream) {
  const Rows& rows = a.norm.rows;
  constexpr int kSize = Vector<T>::kSize;
  backward_reduce_kernel<T, kSecond, kResidual>
      <<<blocks_for(rows, kSize, kReduceBlocks), kRowThreads, reduce_shared_bytes(rows.channels), stream>>>(a, scratch,
                                                                                                           counter);
  backward_apply_kernel<T, kSecond, kResidual><<<blocks_for(rows, kSize, kApplyBlocks), kRowThreads, 0, stream>>>(a);
}

template <typename T>
void choose_norm_backward(const NormBackwardArguments& a, float* scratch, unsigned* counter, cudaStream_t stream) {
  const bool second = a.dy[1] != nullptr, residual = a.dz != nullptr;
  if (second && residual) return run_norm_backward<T, true, true>(a, scratch, counter, stream);
  if (second) return run_norm_backward<T, true, false>(a, scratch, counter, stream);
  if (residual) return run_norm_backward<T, false, true>(a, scratch, counter, stream);
  run_norm_backward<T, false, false>(a, scratch, counter, stream);
}

// --- pool, loss, data ---------------------------------------------------------------------------------------------

template <typename T>
__global__ void pool_kernel(const T* __restrict__ x, int pixels, int channels, int real, float* __restrict__ y) {
  const T* image = x + static_cast<int64_t>(blockIdx.x) * pixels * channels;
  for (int c = threadIdx.x; c < real; c += blockDim.x) {
    float sum = 0;
    for (int p = 0; p < pixels; ++p) sum += to_float(image[static_cast<int64_t>(p) * channels + c]);
    y[static_cast<int64_t>(blockIdx.x) * real + c] = sum / static_cast<float>(pixels);
  }
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
// A block has some input channels of one group of outputs; a thread one slice of it. Slices lie together, S floats each:
// they come and go through shared memory, so that memory is read in order.

constexpr int kSlices = 128;
constexpr float kLeastVariance = 1e-12f;
constexpr float kDeepest = -60.0f;
constexpr int kEntries = 32;  // convolutions for one launch: they travel as its arguments

struct ConvTable {
  ConvEntry entries[kEntries];
  int first_block[kEntries + 1];
  int count;
};

int tiles(const ConvEntry& conv) {
  return (conv.inputs + kSlices - 1) / kSlices;
}
int groups(const ConvEntry& conv) {
  return (conv.outputs + conv.share - 1) / conv.share;
}

struct Place {
  int conv, group, first;
};
__device__ Place find_place(const ConvTable& table) {
  int conv = 0;
  while (static_cast<int>(blockIdx.x) >= table.first_block[conv + 1]) ++conv;
  const int across = (table.entries[conv].inputs + kSlices - 1) / kSlices;
  const int within = static_cast<int>(blockIdx.x) - table.first_block[conv];
  return {conv, within / across, within % across * kSlices};
}

__device__ void fetch(const float* from, int count, float* to) {
  for (int i = threadIdx.x; i < count; i += blockDim.x) to[i] = from[i];
}

template <int S>
struct Attention {
  static constexpr float kDegrees = S > 1 ? S - 1 : 1;  // of freedom
  float a[S], p[S];
  float inverse_sd, mean;
  bool flat;

  __device__ Attention(const float* logits, float temperature) {
    float sum = 0;
    for (int s = 0; s < S; ++s) sum += a[s] = logits[s];
    mean = sum / S;
    float squares = 0;
    for (int s = 0; s < S; ++s) squares += (a[s] - mean) * (a[s] - mean);
    const float variance = squares / kDegrees;
    flat = variance < kLeastVariance;
    inverse_sd = flat ? 1.0f : rsqrtf(variance);
    const float factor = inverse_sd / temperature;
    float best = -INFINITY;
    for (int s = 0; s < S; ++s) best = fmaxf(best, a[s]);
    float total = 0;
    for (int s = 0; s < S; ++s) total += p[s] = expf(fmaxf((a[s] - best) * factor, kDeepest));
    for (int s = 0; s < S; ++s) p[s] /= total;
  }

  // From the gradients of p to those of a.
  __device__ void backward(const float (&dp)[S], float temperature, float (&da)[S]) const {
    float mixed = 0, best = -INFINITY;
    for (int s = 0; s < S; ++s) {
      mixed += p[s] * dp[s];
      best = fmaxf(best, a[s]);
    }
    float along = 0;
    for (int s = 0; s < S; ++s) {
      const bool cut = (a[s] - best) * inverse_sd / temperature < kDeepest;
      da[s] = cut ? 0.0f : p[s] * (dp[s] - mixed) / temperature;
      along += da[s] * a[s];
    }
    const float bend = flat ? 0.0f : along * inverse_sd * inverse_sd * inverse_sd / kDegrees;
    for (int s = 0; s < S; ++s) da[s] = da[s] * inverse_sd - bend * (a[s] - mean);
  }
};

template <typename T, int S>
__device__ void pack_block(const ConvEntry& conv, const Place& place, float temperature, float* shared) {
  const int slices = min(kSlices, conv.inputs - place.first);
  const int t = threadIdx.x;
  float p[S];
  for (int s = 0; s < S; ++s) p[s] = 1.0f;
  if (conv.attention != nullptr) {
    fetch(conv.attention + (static_cast<int64_t>(place.group) * conv.inputs + place.first) * S, slices * S, shared);
    __syncthreads();
    if (t < slices) {
      const Attention<S> attention(shared + t * S, temperature);
      for (int s = 0; s < S; ++s) p[s] = attention.p[s];
    }
    __syncthreads();
  }
  const int last = min(conv.outputs, (place.group + 1) * conv.share);
  for (int d = place.group * conv.share; d < last; ++d) {
    fetch(conv.weight + (static_cast<int64_t>(d) * conv.inputs + place.first) * S, slices * S, shared);
    __syncthreads();
    if (t < slices) {
      T* to = static_cast<T*>(conv.packed) + static_cast<int64_t>(d) * S * conv.padded_inputs + place.first + t;
      for (int s = 0; s < S; ++s) put(shared[t * S + s] * p[s], to + static_cast<int64_t>(s) * conv.padded_inputs);
    }
    __syncthreads();
  }
}

// One step of SGD for one number; returns the new one.
__device__ float descend(float parameter, float grad, float rate, const Update& update, float* velocity) {
  const float change = fmaf(update.weight_decay, parameter, grad);
  *velocity = fmaf(update.momentum, *velocity, change);
  return parameter - rate * (update.nesterov ? fmaf(update.momentum, *velocity, change) : *velocity);
}

// Slices through shared memory: `work(parameters, velocities)` changes a thread's own S of each.
template <int S, typename Work>
__device__ void update_slices(float* parameters, float* momenta, int slices, float* shared, Work&& work) {
  float* velocities = shared + kSlices * S;
  fetch(parameters, slices * S, shared);
  fetch(momenta, slices * S, velocities);
  __syncthreads();
  if (threadIdx.x < slices) work(shared + threadIdx.x * S, velocities + threadIdx.x * S);
  __syncthreads();
  for (int i = threadIdx.x; i < slices * S; i += blockDim.x) {
    parameters[i] = shared[i];
    momenta[i] = velocities[i];
  }
  __syncthreads();
}

template <typename T, int S>
__device__ void update_block(const ConvEntry& conv, const Place& place, const float* rates, const Update& update,
                             float* shared) {
  const int slices = min(kSlices, conv.inputs - place.first);
  const int t = threadIdx.x;
  const float rate = rates[0], temperature = rates[1];
  const bool attends = conv.attention != nullptr;
  const int64_t attention_at = (static_cast<int64_t>(place.group) * conv.inputs + place.first) * S;
  float p[S], dp[S];
  for (int s = 0; s < S; ++s) {
    p[s] = 1.0f;
    dp[s] = 0.0f;
  }
  if (attends) {
    fetch(conv.attention + attention_at, slices * S, shared);
    __syncthreads();
    if (t < slices) {
      const Attention<S> attention(shared + t * S, temperature);
      for (int s = 0; s < S; ++s) p[s] = attention.p[s];
    }
    __syncthreads();
  }
  const int last = min(conv.outputs, (place.group + 1) * conv.share);
  for (int d = place.group * conv.share; d < last; ++d) {
    const int64_t at = (static_cast<int64_t>(d) * conv.inputs + place.first) * S;
    const T* grad = static_cast<const T*>(conv.grad) + static_cast<int64_t>(d) * S * conv.padded_inputs + place.first + t;
    update_slices<S>(conv.weight + at, conv.weight_momentum + at, slices, shared, [&](float* weight, float* velocity) {
      for (int s = 0; s < S; ++s) {
        const float g = to_float(grad[static_cast<int64_t>(s) * conv.padded_inputs]);
        dp[s] = fmaf(g, weight[s], dp[s]);
        weight[s] = descend(weight[s], g * p[s], rate, update, velocity + s);
      }
    });
  }
  if (!attends) return;
  update_slices<S>(conv.attention + attention_at, conv.attention_momentum + attention_at, slices, shared,
                   [&](float* logits, float* velocity) {
                     const Attention<S> attention(logits, temperature);
                     float da[S];
                     attention.backward(dp, temperature, da);
                     for (int s = 0; s < S; ++s) logits[s] = descend(logits[s], da[s], rate, update, velocity + s);
                   });
}

template <typename T>
__global__ void pack_kernel(const __grid_constant__ ConvTable table, const float* rates) {
  extern __shared__ float shared[];
  const Place place = find_place(table);
  const ConvEntry& conv = table.entries[place.conv];
  if (conv.area == 1) pack_block<T, 1>(conv, place, rates[1], shared);
  if (conv.area == 9) pack_block<T, 9>(conv, place, rates[1], shared);
  if (conv.area == 25) pack_block<T, 25>(conv, place, rates[1], shared);
}

template <typename T>
__global__ void update_kernel(const __grid_constant__ ConvTable table, const float* rates, Update update) {
  extern __shared__ float shared[];
  const Place place = find_place(table);
  const ConvEntry& conv = table.entries[place.conv];
  if (conv.area == 1) update_block<T, 1>(conv, place, rates, update, shared);
  if (conv.area == 9) update_block<T, 9>(conv, place, rates, update, shared);
  if (conv.area == 25) update_block<T, 25>(conv, place, rates, update, shared);
}

// Calls launch(table, blocks, bytes of slices) for as many convolutions at a time as fit.
template <typename Launch>
void over_convs(const ConvEntry* convs, int count, Launch&& launch) {
  for (int first = 0; first < count; first += kEntries) {
    ConvTable table{};
    table.count = std::min(kEntries, count - first);
    int blocks = 0, area = 1;
    for (int i = 0; i < table.count; ++i) {
      table.entries[i] = convs[first + i];
      table.first_block[i] = blocks;
      blocks += tiles(convs[first + i]) * groups(convs[first + i]);
      area = std::max(area, convs[first + i].area);
    }
    for (int i = table.count; i <= kEntries; ++i) table.first_block[i] = blocks;
    launch(table, blocks, static_cast<size_t>(kSlices) * area * sizeof(float));
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
  return static_cast<int64_t>(kReduceBlocks) * 2 * channels;
}

void norm_statistics(const NormArguments& norm, const void* x, float* scratch, unsigned* counter,
                     cudaStream_t stream) {
  const auto run = [&](auto zero) {
    using T = decltype(zero);
    statistics_kernel<T><<<blocks_for(norm.rows, Vector<T>::kSize, kReduceBlocks), kRowThreads,
                           reduce_shared_bytes(norm.rows.channels), stream>>>(norm, static_cast<const T*>(x), scratch,
                                                                              counter);
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
    const int blocks = blocks_for(norm.rows, Vector<T>::kSize, kApplyBlocks);
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

void norm_backward(const NormBackwardArguments& arguments, float* scratch, unsigned* counter, cudaStream_t stream) {
  if (arguments.norm.rows.wide) {
    choose_norm_backward<float>(arguments, scratch, counter, stream);
  } else {
    choose_norm_backward<Half>(arguments, scratch, counter, stream);
  }
}

void global_pool(const Rows& rows, const void* x, int64_t images, int64_t real, float* y, cudaStream_t stream) {
  const int pixels = static_cast<int>(rows.rows / images), channels = static_cast<int>(rows.channels);
  const auto run = [&](auto zero) {
    using T = decltype(zero);
    pool_kernel<T><<<static_cast<int>(images), 256, 0, stream>>>(static_cast<const T*>(x), pixels, channels,
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
  over_convs(convs, count, [&](const ConvTable& table, int blocks, size_t bytes) {
    if (wide) {
      pack_kernel<float><<<blocks, kSlices, bytes, stream>>>(table, rates);
    } else {
      pack_kernel<Half><<<blocks, kSlices, bytes, stream>>>(table, rates);
    }
  });
}

void update_convs(const ConvEntry* convs, int count, bool wide, const float* rates, const Update& update,
                  cudaStream_t stream) {
  over_convs(convs, count, [&](const ConvTable& table, int blocks, size_t bytes) {
    if (wide) {
      update_kernel<float><<<blocks, kSlices, 2 * bytes, stream>>>(table, rates, update);
    } else {
      update_kernel<Half><<<blocks, kSlices, 2 * bytes, stream>>>(table, rates, update);
    }
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
