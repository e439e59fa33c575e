#include "onetap/runtime/session.h"

#include "onetap/runtime/int8_steps.h"
#include "onetap/runtime/steps.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace onetap {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

Session::Session(std::shared_ptr<const Model> model, const SessionOptions& options)
    : model_(std::move(model)), pool_(options.threads), arenas_(options.batch > 1 ? pool_.size() : 1) {
  model_->check_memory(arenas_, pool_.size());
  // A line more apart than they need be, so that two threads never write to one line.
  constexpr auto kLine = static_cast<int64_t>(kLineBytes);
  arena_stride_ = round_up(model_->arena_bytes(), kLine) + kLine;
  scratch_stride_ = round_up(model_->scratch_bytes(), kLine) + kLine;
  // What lies between planes is read by the vector, though never used: it should be numbers.
  memory_ = aligned_array<std::byte>(memory_bytes());
  std::memset(memory_.get(), 0, static_cast<size_t>(memory_bytes()));
}

int64_t Session::memory_bytes() const {
  return arenas_ * arena_stride_ + pool_.size() * scratch_stride_;
}

template <typename ImageAt>
void Session::run_all(ImageAt&& image_at, int64_t count, float* outputs) {
  const int64_t out = model_->output_floats();
  // Whole rounds of one image per thread.
  const int64_t apart = arenas_ > 1 ? count / arenas_ * arenas_ : 0;
  pool_.run(apart, [&](int64_t i, int64_t worker) {
    run_image(arena(worker), image_at(i), outputs + i * out, worker, false, nullptr);
  });
  for (int64_t i = apart; i < count; ++i) run_image(arena(0), image_at(i), outputs + i * out, 0, true, nullptr);
}

void Session::run(const float* images, int64_t count, float* outputs) {
  const int64_t in = model_->input_floats();
  run_all([&](int64_t i) { return Image{images + i * in, nullptr}; }, count, outputs);
}

void Session::run_pixels(const uint8_t* images, int64_t count, float* outputs) {
  const int64_t in = model_->input_floats(), out = model_->output_floats();
  if (model_->is_int8() && !model_->int8()->pixel_bytes.empty()) {
    run_all([&](int64_t i) { return Image{nullptr, images + i * in}; }, count, outputs);
    return;
  }
  scaled_.resize(static_cast<size_t>(arenas_ * in));
  const int64_t plane = in / model_->input_shape()[0];
  for (int64_t first = 0; first < count; first += arenas_) {
    const int64_t some = std::min(arenas_, count - first);
    for (int64_t i = 0; i < some * in; ++i) {
      scaled_[static_cast<size_t>(i)] = scaled_pixel(model_->pixels(), i % in / plane, images[first * in + i]);
    }
    run(scaled_.data(), some, outputs + first * out);
  }
}

void Session::run_timed(const float* image, float* outputs, std::vector<double>& seconds) {
  seconds.resize(model_->plan().steps.size(), 0.0);
  run_image(arena(0), {image, nullptr}, outputs, 0, true, seconds.data());
}

void Session::run_image(std::byte* arena, const Image& image, float* output, int64_t worker, bool split,
                        double* seconds) {
  const ExecutionPlan& plan = model_->plan();
  StepContext context{
      *model_, 0,         arena,          reinterpret_cast<const std::byte*>(image.floats), output, pool_, split,
      worker,  scratch(), scratch_stride_};
  if (image.pixels != nullptr) {
    quantize_image(context, image.pixels);
  } else if (model_->is_int8() && model_->int8()->value(plan.input).dtype != DType::kF32) {
    quantize_image(context, image.floats);
  }
  for (; context.index < plan.steps.size(); ++context.index) {
    const auto start = seconds != nullptr ? Clock::now() : Clock::time_point();
    context.layer().kind->run(context);
    if (seconds != nullptr) seconds[context.index] += std::chrono::duration<double>(Clock::now() - start).count();
  }
  if (model_->is_int8()) {
    if (model_->int8()->value(plan.output).dtype != DType::kF32) dequantize_output(context, output);
    return;
  }
  const auto result = context.input<float>(plan.output);
  for (int64_t c = 0; c < result.value->channels; ++c) {
    std::copy_n(result.plane(c), result.value->pixels, output + c * result.value->pixels);
  }
}

}  // namespace onetap
