#include "onetap/runtime/session.h"

#include "onetap/kernels/conv.h"
#include "onetap/runtime/layer.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace onetap {
namespace {

using Clock = std::chrono::steady_clock;

// A value in memory.
template <typename T>
struct View {
  const PlannedValue* value;
  T* data;

  T* plane(int64_t channel) const { return data + channel * value->plane; }
};

void copy_floats(const float* from, int64_t count, float* to) {
  std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
}

// Calls work(floats, offset of a, offset of b, offset of y) over planes, or over all at once where they lie alike.
template <typename Work>
void over_planes(const PlannedValue& a, const PlannedValue& b, const PlannedValue& y, Work&& work) {
  if (a.plane == y.plane && b.plane == y.plane) {
    work(y.floats(), 0, 0, 0);
    return;
  }
  for (int64_t c = 0; c < y.channels; ++c) work(y.pixels, c * a.plane, c * b.plane, c * y.plane);
}

void run_conv_step(const KernelSet& kernels, const ConvPlan& plan, const View<const float>& x, const View<float>& y,
                   const View<const float>& residual, bool relu, float* scratch, const ConvCut& cut = {},
                   int64_t part = 0) {
  ConvIo io;
  io.x = x.data;
  io.x_plane = x.value->plane;
  io.y = y.data;
  io.y_plane = y.value->plane;
  if (residual.value != nullptr) {
    io.residual = residual.data;
    io.residual_plane = residual.value->plane;
  }
  io.relu = relu;
  run_conv(kernels, plan, io, scratch, cut, part);
}

}  // namespace

Session::Session(std::shared_ptr<const Model> model, const SessionOptions& options)
    : model_(std::move(model)), team_(options.threads), arenas_(options.batch > 1 ? team_.size() : 1) {
  // A line more apart than they need be, so that two threads never write to one line.
  arena_stride_ = round_up(model_->plan().arena_floats, kLineFloats) + kLineFloats;
  scratch_stride_ = round_up(model_->scratch_floats(), kLineFloats) + kLineFloats;
  // What lies between planes is read by the vector, though never used: it should be numbers.
  memory_ = aligned_array<float>(memory_bytes() / 4);
  std::fill_n(memory_.get(), memory_bytes() / 4, 0.0f);
}

int64_t Session::memory_bytes() const {
  return (arenas_ * arena_stride_ + team_.size() * scratch_stride_) * 4;
}

void Session::run(const float* images, int64_t count, float* outputs) {
  const int64_t in = model_->input_floats(), out = model_->output_floats();
  // Whole rounds of one image per thread.
  const int64_t apart = arenas_ > 1 ? count / arenas_ * arenas_ : 0;
  team_.run(apart, [&](int64_t i, int64_t worker) {
    run_image(arena(worker), images + i * in, outputs + i * out, worker, false, nullptr);
  });
  for (int64_t i = apart; i < count; ++i) {
    run_image(arena(0), images + i * in, outputs + i * out, 0, true, nullptr);
  }
}

void Session::run_timed(const float* image, float* outputs, std::vector<double>& seconds) {
  seconds.resize(model_->plan().steps.size(), 0.0);
  run_image(arena(0), image, outputs, 0, true, seconds.data());
}

void Session::run_image(float* arena, const float* image, float* output, int64_t worker, bool split, double* seconds) {
  const ExecutionPlan& plan = model_->plan();
  for (size_t step = 0; step < plan.steps.size(); ++step) {
    const auto start = seconds != nullptr ? Clock::now() : Clock::time_point();
    run_step(step, arena, image, worker, split);
    if (seconds != nullptr) seconds[step] += std::chrono::duration<double>(Clock::now() - start).count();
  }
  const PlannedValue& value = plan.values[static_cast<size_t>(plan.output)];
  const float* from = plan.output == plan.input ? image : arena + value.offset;
  for (int64_t c = 0; c < value.channels; ++c)
    copy_floats(from + c * value.plane, value.pixels, output + c * value.pixels);
}

void Session::run_step(size_t index, float* arena, const float* image, int64_t worker, bool split) {
  const ExecutionPlan& plan = model_->plan();
  const PlannedStep& step = plan.steps[index];
  const Model::Layer& layer = model_->layer(index);
  const KernelSet& kernels = model_->kernels();
  const auto input = [&](int value) -> View<const float> {
    const PlannedValue& planned = plan.values[static_cast<size_t>(value)];
    return {&planned, value == plan.input ? image : arena + planned.offset};
  };
  const View<const float> x = input(step.inputs[0]);
  const PlannedValue& out = plan.values[static_cast<size_t>(step.output)];
  const View<float> y{&out, arena + out.offset};
  switch (step.node->op) {
    case Op::kConv:
    case Op::kTapConv: {
      const View<const float> residual =
          step.residual >= 0 ? input(step.residual) : View<const float>{nullptr, nullptr};
      const ConvCut cut = split ? cut_conv(*layer.conv, team_.size()) : ConvCut();
      if (cut.parts == 1) {
        run_conv_step(kernels, *layer.conv, x, y, residual, step.relu, scratch(worker));
      } else {
        team_.run(cut.parts, [&](int64_t part, int64_t member) {
          run_conv_step(kernels, *layer.conv, x, y, residual, step.relu, scratch(member), cut, part);
        });
      }
      break;
    }
    case Op::kLinear:
      kernels.linear(x.value->channels, out.channels, layer.weight.data(),
                     layer.bias.empty() ? nullptr : layer.bias.data(), x.data, y.data, step.relu);
      break;
    case Op::kAffine:
      for (int64_t c = 0; c < out.channels; ++c) {
        kernels.affine({1, out.pixels, out.plane}, &layer.weight[static_cast<size_t>(c)],
                       &layer.bias[static_cast<size_t>(c)], x.plane(c), y.plane(c), step.relu);
      }
      break;
    case Op::kRelu:
      over_planes(*x.value, *x.value, out, [&](int64_t count, int64_t from, int64_t, int64_t to) {
        kernels.relu(count, x.data + from, y.data + to);
      });
      break;
    case Op::kAdd: {
      const size_t last = step.inputs.size() - 1;
      View<const float> sum = x;
      for (size_t k = 1; k <= last; ++k) {
        const View<const float> other = input(step.inputs[k]);
        over_planes(*sum.value, *other.value, out, [&](int64_t count, int64_t a, int64_t b, int64_t to) {
          kernels.add(count, sum.data + a, other.data + b, y.data + to, step.relu && k == last);
        });
        sum = {&out, y.data};
      }
      break;
    }
    case Op::kAvgPool:
    case Op::kMaxPool:
      kernels.pool(layer.pool, x.data, x.value->plane, y.data, out.plane);
      break;
    case Op::kGlobalAvgPool:
      kernels.global_mean({x.value->channels, x.value->pixels, x.value->plane}, x.data, y.data);
      break;
    case Op::kSubsample:
      subsample(*step.node, step.source->shape, x.data, x.value->plane, y.data, out.plane);
      break;
    case Op::kConcat:
    case Op::kFlatten: {
      // A vector's parts follow each other without gaps, planes keep theirs.
      float* to = y.data;
      for (const int value : step.inputs) {
        const View<const float> from = input(value);
        for (int64_t c = 0; c < from.value->channels; ++c) {
          copy_floats(from.plane(c), from.value->pixels, to);
          to += out.plane > 1 ? out.plane : from.value->pixels;
        }
      }
      break;
    }
    default:
      break;
  }
}

}  // namespace onetap
