#include "onetap/runtime/int8_kept.h"

#include "onetap/kernels/conv.h"
#include "onetap/kernels/planes.h"
#include "onetap/runtime/layer.h"

#include <algorithm>

namespace onetap {
namespace {

// The floats of a layer, behind each other in scratch.
struct KeptFloats {
  int64_t x_plane, y_plane;
  int64_t x, residual, y, scratch;  // floats from the begin

  KeptFloats(const ExecutionPlan& plan, const PlannedStep& step) {
    const PlannedValue& in = plan.value(step.inputs[0]);
    const PlannedValue& out = plan.value(step.output);
    x_plane = in.pixels;
    // Kernels write planes by the vector.
    y_plane = plane_stride(out.pixels, plan_options());
    x = 0;
    residual = round_up(in.channels * x_plane, kLineFloats);
    y = residual + (step.residual >= 0 ? out.channels * y_plane : 0);
    scratch = y + out.channels * y_plane;
  }
};

}  // namespace

int64_t kept_bytes(const LayerSource& source) {
  const LayerSource floats = source.in_floats();
  return find_step(source.node, DType::kF32).layer_bytes(floats);
}

void prepare_kept(const LayerSource& source, Model::Layer& layer) {
  const LayerSource floats = source.in_floats();
  find_step(source.node, DType::kF32).prepare(floats, layer);
  int64_t scratch = layer.conv != nullptr ? layer.conv->scratch_floats() : 0;
  if (layer.planes != nullptr) scratch = layer.planes->scratch_floats();
  layer.int8->scratch_bytes =
      (KeptFloats(source.plan, source.step()).scratch + scratch) * static_cast<int64_t>(sizeof(float));
}

void run_kept(const StepContext& context) {
  const PlannedStep& step = context.step();
  const Model::Layer& layer = context.layer();
  const Int8Model& int8 = *context.model.int8();
  const ExecutionPlan& plan = context.model.plan();
  const KernelSet& kernels = context.model.float_kernels();
  const KeptFloats at(plan, step);
  auto* memory = context.scratch_of<float>(context.worker);
  const PlannedValue& in = plan.value(step.inputs[0]);
  const PlannedValue& out = plan.value(step.output);
  const float* x = reinterpret_cast<const float*>(context.image);
  if (int8.value(step.inputs[0]).dtype != DType::kF32) {
    dequantize_planes(context, step.inputs[0], memory + at.x, at.x_plane);
    x = memory + at.x;
  }
  float* y = memory + at.y;
  if (step.node->op == Op::kLinear) {
    kernels.linear(in.channels, out.channels, layer.weight.data(), layer.bias.empty() ? nullptr : layer.bias.data(), x,
                   y, step.relu);
  } else if (step.node->op == Op::kAffine) {
    for (int64_t c = 0; c < out.channels; ++c) {
      kernels.affine({1, out.pixels, at.y_plane}, layer.weight.data() + c, layer.bias.data() + c, x + c * at.x_plane,
                     y + c * at.y_plane, step.relu);
    }
  } else {
    ConvIo io;
    io.x = x;
    io.x_plane = at.x_plane;
    io.y = y;
    io.y_plane = at.y_plane;
    io.relu = step.relu;
    if (step.residual >= 0) {
      dequantize_planes(context, step.residual, memory + at.residual, at.y_plane);
      io.residual = memory + at.residual;
      io.residual_plane = at.y_plane;
    }
    if (layer.planes != nullptr) {
      run_planes(kernels, *layer.planes, io, memory + at.scratch);
    } else {
      run_conv(kernels, *layer.conv, io, memory + at.scratch);
    }
  }
  const int64_t plane = step.node->op == Op::kLinear ? 1 : at.y_plane;
  if (int8.value(step.output).dtype != DType::kF32) return quantize_planes(context, step.output, y, plane);
  for (int64_t c = 0; c < out.channels; ++c) std::copy_n(y + c * plane, out.pixels, context.outputs + c * out.pixels);
}

void quantize_planes(const StepContext& context, int value, const float* from, int64_t plane) {
  const Int8Model& int8 = *context.model.int8();
  const QuadLayout& layout = int8.layout(value);
  auto* to = reinterpret_cast<uint8_t*>(context.arena) + context.model.plan().value(value).offset;
  clear_borders(layout, int8.zero(value), 0, layout.quads(), to);
  for (int64_t quad = 0; quad < layout.quads(); ++quad) {
    const int64_t first = quad * kQuad;
    context.model.kernels().int8->quantize(layout, std::min(kQuad, layout.channels - first), int8.value(value).scale,
                                           from + first * plane, plane, int8.zero(value),
                                           to + quad * layout.quad_bytes());
  }
}

void dequantize_planes(const StepContext& context, int value, float* to, int64_t plane) {
  const Int8Model& int8 = *context.model.int8();
  const QuadLayout& layout = int8.layout(value);
  const auto* from = reinterpret_cast<const uint8_t*>(context.arena) + context.model.plan().value(value).offset;
  const int32_t zero = int8.zero(value);
  const float scale = int8.value(value).scale;
  for (int64_t c = 0; c < layout.channels; ++c) {
    const uint8_t* quad = from + c / kQuad * layout.quad_bytes() + c % kQuad;
    float* y = to + c * plane;
    for (int64_t row = 0; row < layout.height; ++row) {
      const uint8_t* x = quad + layout.pixel(row, 0);
      for (int64_t column = 0; column < layout.width; ++column, x += kQuad)
        *y++ = static_cast<float>(*x - zero) * scale;
    }
  }
}

}  // namespace onetap
