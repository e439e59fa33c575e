// Runs a model. A session belongs to one caller at a time; several sessions may run at once and share their model.
#pragma once

#include "onetap/kernels/aligned.h"
#include "onetap/runtime/model.h"
#include "onetap/runtime/thread_pool.h"

#include <memory>
#include <vector>

namespace onetap {

struct SessionOptions {
  int64_t threads = 1;
  // Images that one call usually has: memory for one image per thread is set aside if this is more than 1.
  int64_t batch = 1;
};

class Session {
 public:
  // kUsage if the session would pass the model's memory limit.
  explicit Session(std::shared_ptr<const Model> model, const SessionOptions& options = {});

  const Model& model() const { return *model_; }
  int64_t threads() const { return pool_.size(); }

  // `images`: count x input_floats(), planes of floats as the graph's input has them, without gaps; `outputs`: count x
  // output_floats(). One image per thread; what is left over, image by image, with all threads on each. Allocates
  // nothing. The result does not depend on threads or count.
  void run(const float* images, int64_t count, float* outputs);

  // The same from pixels as they are, bytes in place of floats: (value / 255 - mean) / sd by the model's pixels(), in
  // doubles. An int8 network takes them without going through floats. The first call on a network that computes in
  // floats allocates memory for them.
  void run_pixels(const uint8_t* images, int64_t count, float* outputs);

  // One image; adds to seconds[step] what every step of the model's plan took.
  void run_timed(const float* image, float* outputs, std::vector<double>& seconds);

  // Activations and scratch: all that is held beside the model.
  int64_t memory_bytes() const;

 private:
  // An image of floats or of pixels.
  struct Image {
    const float* floats = nullptr;
    const uint8_t* pixels = nullptr;
  };
  template <typename ImageAt>
  void run_all(ImageAt&& image_at, int64_t count, float* outputs);
  void run_image(std::byte* arena, const Image& image, float* output, int64_t worker, bool split, double* seconds);
  std::byte* arena(int64_t worker) { return memory_.get() + worker * arena_stride_; }
  std::byte* scratch() { return memory_.get() + arenas_ * arena_stride_; }

  std::shared_ptr<const Model> model_;
  ThreadPool pool_;
  int64_t arenas_ = 1;
  int64_t arena_stride_ = 0, scratch_stride_ = 0;  // bytes
  AlignedArray<std::byte> memory_;                 // arenas, then scratch
  std::vector<float> scaled_;                      // pixels, for a network of floats
};

}  // namespace onetap
