// The CUDA kernels of a fused step, by plain pointers: what nvcc compiles knows no LibTorch.
//
// Activations are rows of `channels` values (a multiple of 8), one row per pixel; `wide` says 32-bit floats, else
// bfloat16.
#pragma once

#include <cstdint>
#include <cuda_runtime.h>

namespace onetap::fused::cuda {

struct Rows {
  int64_t rows = 0;
  int64_t channels = 0;
  bool wide = false;
};

// One batch norm. Vectors have `rows.channels` floats; those beyond `real` belong to padding.
struct NormArguments {
  Rows rows;
  int64_t real = 0;
  const float* gamma = nullptr;
  const float* beta = nullptr;
  float* running_mean = nullptr;
  float* running_var = nullptr;
  int64_t* batches = nullptr;
  float* mean = nullptr;
  float* inverse_sd = nullptr;
  float* scale = nullptr;
  float* shift = nullptr;
  bool relu = false;
};

// Floats of scratch that the two reductions need, and counters (zero before and after) that they share.
int64_t norm_scratch_floats(int64_t channels);
int64_t norm_counters(int64_t channels);

// mean, inverse_sd, scale and shift of the batch; running statistics move.
void norm_statistics(const NormArguments& norm, const void* x, float* scratch, unsigned* counters, cudaStream_t stream);
// scale and shift by the running statistics.
void norm_from_running(const NormArguments& norm, cudaStream_t stream);
void norm_apply(const NormArguments& norm, const void* x, const void* residual, void* y, cudaStream_t stream);

struct NormBackwardArguments {
  NormArguments norm;
  const void* dy[2] = {nullptr, nullptr};  // the second may be null
  const void* x = nullptr;
  const void* y = nullptr;  // needed with a residual and ReLU
  void* dz = nullptr;       // written where there was a residual: dy through the ReLU
  void* dx = nullptr;
  float* gamma_grad = nullptr;
  float* beta_grad = nullptr;
  float* coefficients = nullptr;  // [2, channels]
};
void norm_backward(const NormBackwardArguments& arguments, float* scratch, unsigned* counters, cudaStream_t stream);

void global_pool(const Rows& rows, const void* x, int64_t images, int64_t real, float* y, cudaStream_t stream);
void global_pool_backward(const Rows& rows, const float* dy, int64_t images, int64_t real, void* dx,
                          cudaStream_t stream);

// sums[columns] of a matrix.
void column_sums(const float* x, int64_t rows, int64_t columns, float* sums, cudaStream_t stream);

// Cross-entropy: sums[0] += loss, sums[1] += right answers; gradients of the loss over `step_images`.
struct LossArguments {
  const float* logits = nullptr;
  const int64_t* labels = nullptr;
  int images = 0, classes = 0;
  float smoothing = 0, step_images = 1;
  float* dlogits = nullptr;
  double* sums = nullptr;
};
void cross_entropy(const LossArguments& arguments, cudaStream_t stream);

struct SampleArguments {
  const uint8_t* images = nullptr;
  const int64_t* labels = nullptr;
  const int32_t* order = nullptr;
  const int64_t* clock = nullptr;
  uint64_t seed = 0;
  int64_t batch = 0, first = 0, count = 0, height = 0, width = 0, channels = 0;
  int pad = 0, cutout = 0;
  bool flip = false, augment = false, wide = false;
  float multiply[3] = {}, add[3] = {};
  void* out = nullptr;
  int64_t* out_labels = nullptr;
};
void sample(const SampleArguments& arguments, cudaStream_t stream);

void advance(int64_t* clock, int64_t* counter, const float* tables, int64_t steps, float* rates, cudaStream_t stream);

// One convolution for the kernels that go over all of them. Packed tensors lie as [D][S][padded C].
struct ConvEntry {
  float* weight = nullptr;
  float* weight_momentum = nullptr;
  float* attention = nullptr;
  float* attention_momentum = nullptr;
  void* packed = nullptr;
  const void* grad = nullptr;
  int outputs = 0, inputs = 0, padded_inputs = 0, area = 0;
  // Outputs and inputs that have a set of positions in common, and how many such blocks there are.
  int share_outputs = 1, share_inputs = 1, output_blocks = 0, input_blocks = 0;
  bool straight_through = false;  // packed by the hard max, gradients of the logits by P
  float* partial = nullptr;       // partial_floats() of its own, for update_convs
};
struct Update {
  float momentum = 0, weight_decay = 0;
  bool nesterov = false;
};
// Of memory that update_convs needs for a convolution; 0 for most.
int64_t partial_floats(const ConvEntry& conv);
void pack_weights(const ConvEntry* convs, int count, bool wide, const float* rates, cudaStream_t stream);
void update_convs(const ConvEntry* convs, int count, bool wide, const float* rates, const Update& update,
                  cudaStream_t stream);

struct PlainEntry {
  float* parameter = nullptr;
  float* momentum = nullptr;
  const float* grad = nullptr;
  int64_t count = 0;
  float rate = 1, decay = 1;  // of what Update and the step's rate say
};
void update_plain(const PlainEntry* entries, int count, const float* rates, const Update& update, cudaStream_t stream);

}  // namespace onetap::fused::cuda
