// What a batch needs beside its layers: images, pools, the loss, the clock.
#include "onetap/data/transform.h"
#include "onetap/fused/kernels.h"
#include "onetap/fused/vector.cuh"

namespace onetap::fused::cuda {
namespace {

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
    const float each = c < real ? dy[static_cast<int64_t>(blockIdx.x) * real + c] / static_cast<float>(pixels) : 0.0f;
    for (int p = 0; p < pixels; ++p) put(each, image + static_cast<int64_t>(p) * channels + c);
  }
}

constexpr int kLossThreads = 1024;

__device__ float warp_sum(float x) {
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(0xFFFFFFFFu, x, step);
  return x;
}

// As argmax orders them: NaN before every number, and of equals the lower class.
__device__ bool comes_first(float a, int a_at, float b, int b_at) {
  const bool a_nan = isnan(a), b_nan = isnan(b);
  if (a_nan != b_nan) return a_nan;
  return a > b || ((a_nan || a == b) && a_at < b_at);
}

// Logits divided by a temperature, of a warp: log(sum(exp)) of them.
__device__ float log_total_at(const float* row, int classes, float best, float temperature) {
  float total = 0;
  for (int c = threadIdx.x % 32; c < classes; c += 32) total += expf((row[c] - best) / temperature);
  return logf(warp_sum(total)) + best / temperature;
}

__device__ float warp_max(const float* row, int classes) {
  float best = -INFINITY;
  for (int c = threadIdx.x % 32; c < classes; c += 32) best = fmaxf(best, row[c]);
  for (int step = 16; step > 0; step /= 2) best = fmaxf(best, __shfl_xor_sync(0xFFFFFFFFu, best, step));
  return best;
}

// One block: a warp for every image in turn. Sums in a fixed order.
__global__ void objective_kernel(LossArguments a) {
  const int classes = a.classes;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  const float share = a.others == nullptr ? 1.0f : *a.share;
  const bool taught = a.teacher != nullptr;
  const float by_label = taught ? 1.0f - a.teacher_weight : 1.0f, t = a.teacher_temperature;
  double loss = 0, right = 0;
  for (int n = warp; n < a.images; n += warps) {
    const float* row = a.logits + static_cast<int64_t>(n) * classes;
    const int label = static_cast<int>(a.labels[n]);
    const int other = a.others == nullptr ? label : static_cast<int>(a.others[n]);
    float best = -INFINITY;
    int best_at = classes;
    for (int c = lane; c < classes; c += 32) {
      if (comes_first(row[c], c, best, best_at)) {
        best = row[c];
        best_at = c;
      }
    }
    for (int step = 16; step > 0; step /= 2) {
      const float other = __shfl_xor_sync(0xFFFFFFFFu, best, step);
      const int other_at = __shfl_xor_sync(0xFFFFFFFFu, best_at, step);
      if (comes_first(other, other_at, best, best_at)) {
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
    const float even = a.smoothing / static_cast<float>(classes);
    const float* wanted = taught ? a.teacher + static_cast<int64_t>(n) * classes : row;
    const float given_total = taught ? log_total_at(row, classes, best, t) : 0.0f;
    const float wanted_total = taught ? log_total_at(wanted, classes, warp_max(wanted, classes), t) : 0.0f;
    float distance = 0;
    for (int c = lane; c < classes; c += 32) {
      const float own = (c == label ? share : 0.0f) + (c == other ? 1.0f - share : 0.0f);
      const float target = even + (1.0f - a.smoothing) * own;
      float grad = by_label * (expf(row[c] - log_total) - target);
      if (taught) {
        const float log_given = row[c] / t - given_total, log_wanted = wanted[c] / t - wanted_total;
        grad += a.teacher_weight * t * (expf(log_given) - expf(log_wanted));
        distance += expf(log_wanted) * (log_wanted - log_given);
      }
      a.dlogits[static_cast<int64_t>(n) * classes + c] = grad / a.step_images;
    }
    if (taught) distance = warp_sum(distance);
    if (lane == 0) {
      const float own = share == 1.0f ? row[label] : share * row[label] + (1.0f - share) * row[other];
      loss += by_label *
                  ((1.0f - a.smoothing) * (log_total - own) + even * (static_cast<float>(classes) * log_total - all)) +
              (taught ? a.teacher_weight * t * t * distance : 0.0f);
      right += best_at == (share >= 0.5f ? label : other);
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
    a.sums[0] += losses[0];
    a.sums[1] += rights[0];
  }
}

// A block for each image.
template <typename T>
__global__ void sample_kernel(SampleArguments a) {
  const int n = blockIdx.x;
  const int index = a.order[a.clock[0] * a.batch + a.first + n];
  int top = 0, left = 0;
  bool flip = false;
  Random random(a.seed, Purpose::kAugment, static_cast<uint32_t>(a.clock[1]), static_cast<uint32_t>(index));
  if (a.augment) {
    top = static_cast<int>(random.below(2 * a.pad + 1)) - a.pad;
    left = static_cast<int>(random.below(2 * a.pad + 1)) - a.pad;
    flip = random.coin() && a.flip;
  }
  const int height = static_cast<int>(a.height), width = static_cast<int>(a.width);
  Cutout square;
  if (a.cutout > 0) square = Cutout::draw(height, a.cutout, random);
  Jitter jitter;
  if (a.jitter > 0) jitter = Jitter::draw(a.jitter, random);
  const uint8_t* image = a.images + static_cast<int64_t>(index) * 3 * height * width;
  T* out = static_cast<T*>(a.out) + static_cast<int64_t>(n) * height * width * a.channels;
  for (int p = threadIdx.x; p < height * width; p += blockDim.x) {
    const int y = p / width + top, x = left + (flip ? width - 1 - p % width : p % width);
    const bool inside = y >= 0 && y < height && x >= 0 && x < width;
    const bool cut = square.covers(p / width, p % width);
    T* pixel = out + static_cast<int64_t>(p) * a.channels;
    float values[3];
    for (int c = 0; c < 3; ++c) {
      const float byte = inside ? static_cast<float>(image[(c * height + y) * width + x]) : 0.0f;
      values[c] = __fadd_rn(__fmul_rn(byte, a.multiply[c]), a.add[c]);
    }
    if (jitter.changes()) jitter.apply(values[0], values[1], values[2]);
    for (int c = 0; c < a.channels; ++c) put(c < 3 && !cut ? values[c] : 0.0f, pixel + c);
  }
  if (threadIdx.x == 0) a.out_labels[n] = a.labels[index];
}

__global__ void advance_kernel(int64_t* clock, int64_t* counter, const float* tables, int64_t rows, int64_t steps,
                               float* rates) {
  const int64_t next = ++*counter;
  ++clock[0];
  for (int64_t row = 0; row < rows; ++row) rates[row] = tables[row * steps + next];
}

}  // namespace

void global_pool(const Rows& rows, const void* x, int64_t images, int64_t real, float* y, cudaStream_t stream) {
  const int pixels = static_cast<int>(rows.rows / images), channels = static_cast<int>(rows.channels);
  of_type(rows.wide, [&](auto zero) {
    using T = decltype(zero);
    const dim3 blocks(static_cast<unsigned>(images), static_cast<unsigned>((real + kPoolChannels - 1) / kPoolChannels));
    pool_kernel<T><<<blocks, dim3(kPoolChannels, kPoolPieces), 0, stream>>>(static_cast<const T*>(x), pixels, channels,
                                                                            static_cast<int>(real), y);
  });
}

void global_pool_backward(const Rows& rows, const float* dy, int64_t images, int64_t real, void* dx,
                          cudaStream_t stream) {
  const int pixels = static_cast<int>(rows.rows / images), channels = static_cast<int>(rows.channels);
  of_type(rows.wide, [&](auto zero) {
    using T = decltype(zero);
    pool_backward_kernel<T><<<static_cast<int>(images), 256, 0, stream>>>(dy, pixels, channels, static_cast<int>(real),
                                                                          static_cast<T*>(dx));
  });
}

void column_sums(const float* x, int64_t rows, int64_t columns, float* sums, cudaStream_t stream) {
  constexpr int kColumns = 8;
  column_sums_kernel<<<static_cast<int>((columns + kColumns - 1) / kColumns), 32 * kColumns, 0, stream>>>(
      x, static_cast<int>(rows), static_cast<int>(columns), sums);
}

void objective_loss(const LossArguments& arguments, cudaStream_t stream) {
  objective_kernel<<<1, kLossThreads, 0, stream>>>(arguments);
}

void sample(const SampleArguments& arguments, cudaStream_t stream) {
  const auto blocks = static_cast<int>(arguments.count);
  of_type(arguments.wide, [&](auto zero) { sample_kernel<decltype(zero)><<<blocks, 256, 0, stream>>>(arguments); });
}

void advance(int64_t* clock, int64_t* counter, const float* tables, int64_t rows, int64_t steps, float* rates,
             cudaStream_t stream) {
  advance_kernel<<<1, 1, 0, stream>>>(clock, counter, tables, rows, steps, rates);
}

}  // namespace onetap::fused::cuda
