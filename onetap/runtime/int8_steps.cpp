#include "onetap/runtime/int8_steps.h"

#include "onetap/graph/shift.h"
#include "onetap/kernels/int8_io.h"
#include "onetap/runtime/int8_kept.h"
#include "onetap/runtime/layer.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace onetap {
namespace int8_steps {
namespace {

const Int8Step& int8_step(const LayerSource& source) {
  return source.int8->steps[source.index];
}

Int8Epilogue epilogue_of(const Int8Step& step) {
  return {step.bias.data(), step.left_shift, step.residual_factor.empty() ? nullptr : step.residual_factor.data(),
          step.requantize.data(), step.dequantize.data()};
}

ConvShape int8_conv_shape(const LayerSource& source) {
  const Node& node = source.node;
  if (node.op != Op::kAffine) return conv_shape(source.net.graph, node);
  ConvShape shape;
  shape.in = shape.out = shape.groups = node.shape[0];
  if (node.shape.size() == 3) {
    shape.in_h = node.shape[1];
    shape.in_w = node.shape[2];
  }
  return shape;
}

int64_t conv_bytes(const LayerSource& source) {
  if (int8_step(source).is_kept) return kept_bytes(source);
  return int8_conv_plan_bytes(int8_conv_shape(source), source.options.dense, source.kernels);
}

void prepare_conv(const LayerSource& source, Model::Layer& layer) {
  const Int8Step& numbers = int8_step(source);
  if (numbers.is_kept) return prepare_kept(source, layer);
  const PlannedStep& step = source.step();
  const LayerTensors& tensors = source.net.tensors(source.node);
  Int8ConvLayouts layouts;
  layouts.x = source.int8->layout(step.inputs[0]);
  layouts.y = source.int8->layout(step.output);
  layouts.x_type = source.int8->value(step.inputs[0]).dtype;
  layouts.y_type = source.int8->value(step.output).dtype;
  if (step.residual >= 0) layouts.residual_type = source.int8->value(step.residual).dtype;
  layer.int8->conv = std::make_unique<Int8ConvPlan>(
      int8_conv_shape(source),
      Int8ConvWeights{tensors.weight.data<int8_t>(), tensors.positions.empty() ? nullptr : tensors.positions.data()},
      epilogue_of(numbers), layouts, source.options.dense, source.kernels);
  layer.int8->scratch_bytes = layer.int8->conv->scratch_bytes();
}

int64_t linear_row_bytes(const LayerSource& source) {
  return round_up(source.int8->layout(source.step().inputs[0]).channels, static_cast<int64_t>(kLineBytes));
}

int64_t linear_bytes(const LayerSource& source) {
  if (int8_step(source).is_kept) return kept_bytes(source);
  return source.node.out * (linear_row_bytes(source) + 4);
}

void prepare_linear(const LayerSource& source, Model::Layer& layer) {
  const Int8Step& numbers = int8_step(source);
  if (numbers.is_kept) return prepare_kept(source, layer);
  Int8Layer& made = *layer.int8;
  const int64_t in = source.int8->layout(source.step().inputs[0]).channels, out = source.node.out;
  const auto* weight = source.net.tensors(source.node).weight.data<int8_t>();
  const int32_t zero = source.kernels.int8->input_offset - source.int8->zero(source.step().inputs[0]);
  made.row_bytes = linear_row_bytes(source);
  made.linear.resize(static_cast<size_t>(out * made.row_bytes));
  for (int64_t d = 0; d < out; ++d) {
    std::copy_n(weight + d * in, in, made.linear.data() + d * made.row_bytes);
    auto start = static_cast<uint32_t>(numbers.bias[static_cast<size_t>(d)]);
    for (int64_t c = 0; c < in; ++c) start += static_cast<uint32_t>(zero * weight[d * in + c]);
    made.linear_start.push_back(static_cast<int32_t>(start));
  }
  made.scratch_bytes = out * 4;  // sums
}

void prepare_pool(const LayerSource& source, Model::Layer& layer) {
  layer.pool = pool_shape(source.net.graph, source.node);
  layer.int8->scratch_bytes = source.int8->layout(source.step().inputs[0]).width * kQuad;  // a row
}

void prepare_shift(const LayerSource& source, Model::Layer& layer) {
  layer.int8->shift_codes = shift_codes(source.node, source.net.graph.source(source.node).shape[0]);
}

void prepare_add(const LayerSource& source, Model::Layer& layer) {
  layer.int8->scratch_bytes = static_cast<int64_t>(source.step().inputs.size() * sizeof(Int8Kernels::Addend));
}

// A value of the arena.
struct Quads {
  const QuadLayout& layout;
  uint8_t* data;
  uint8_t zero;

  uint8_t* quad(int64_t index) const { return data + index * layout.quad_bytes(); }
  uint8_t* pixel(int64_t channel, int64_t row, int64_t column) const {
    return quad(channel / kQuad) + layout.pixel(row, column) + channel % kQuad;
  }
  int64_t used_bytes() const { return layout.quads() * layout.quad_bytes(); }
  void clear_border() const { clear_borders(layout, zero, 0, layout.quads(), data); }
};

Quads quads_of(const StepContext& context, int value) {
  const Int8Model& int8 = *context.model.int8();
  return {int8.layout(value), reinterpret_cast<uint8_t*>(context.arena) + context.model.plan().value(value).offset,
          int8.zero(value)};
}

Quads input_of(const StepContext& context, size_t index = 0) {
  return quads_of(context, context.step().inputs[index]);
}

Quads output_of(const StepContext& context) {
  return quads_of(context, context.step().output);
}

bool gives_floats(const StepContext& context) {
  return context.model.int8()->value(context.step().output).dtype == DType::kF32;
}

const Int8Step& numbers_of(const StepContext& context) {
  return context.model.int8()->steps[context.index];
}

const Int8Kernels& kernels_of(const StepContext& context) {
  return *context.model.kernels().int8;
}

uint8_t stored_byte(int32_t value, uint8_t zero) {
  const int32_t least = zero != 0 ? -127 : 0, most = zero != 0 ? 127 : 255;
  return static_cast<uint8_t>(std::clamp(value, least, most) + zero);
}

int32_t total_of(int32_t sum, const Int8Step& numbers) {
  return sum * (int32_t{1} << numbers.left_shift);
}

void run_conv(const StepContext& context) {
  if (numbers_of(context).is_kept) return run_kept(context);
  const PlannedStep& step = context.step();
  const Int8ConvPlan& plan = *context.layer().int8->conv;
  Int8ConvMemory memory;
  memory.x = input_of(context).data;
  memory.scratch = context.scratch_of<uint8_t>(context.worker);
  if (gives_floats(context)) {
    memory.floats = context.outputs;
  } else {
    const Quads y = output_of(context);
    y.clear_border();
    memory.y = y.data;
    if (step.residual >= 0) memory.residual = quads_of(context, step.residual).data;
  }
  const int64_t threads = context.split ? context.pool.size() : 1;
  if (threads == 1) return plan.run(memory);
  const int64_t scratch_parts = plan.scratch_parts(threads), parts = plan.parts(threads);
  context.pool.run(scratch_parts, [&](int64_t part, int64_t) { plan.make_ready(memory, part, scratch_parts); });
  context.pool.run(parts, [&](int64_t part, int64_t) { plan.run(memory, part, parts); });
}

void run_linear(const StepContext& context) {
  const Int8Step& numbers = numbers_of(context);
  if (numbers.is_kept) return run_kept(context);
  const Int8Layer& layer = *context.layer().int8;
  auto* sums = context.scratch_of<int32_t>(context.worker);
  const auto out = static_cast<int64_t>(layer.linear_start.size());
  kernels_of(context).linear(layer.row_bytes, out, layer.linear.data(), input_of(context).data, sums);
  for (int64_t d = 0; d < out; ++d) {
    const auto i = static_cast<size_t>(d);
    const auto sum =
        static_cast<int32_t>(static_cast<uint32_t>(sums[d]) + static_cast<uint32_t>(layer.linear_start[i]));
    if (gives_floats(context)) {
      context.outputs[d] = static_cast<float>(sum) * numbers.dequantize[i];
    } else {
      const Quads y = output_of(context);
      *y.pixel(d, 0, 0) = stored_byte(requantized(total_of(sum, numbers), numbers.requantize[i]), y.zero);
    }
  }
  if (gives_floats(context)) return;
  const Quads y = output_of(context);
  for (int64_t d = out; d < y.layout.quads() * kQuad; ++d) *y.pixel(d, 0, 0) = y.zero;
}

// Where sums go that are means of planes or windows: requantized, or as floats.
class MeanOutput {
 public:
  explicit MeanOutput(const StepContext& context)
      : numbers_(numbers_of(context)),
        layout_(context.model.int8()->layout(context.step().output)),
        floats_(gives_floats(context) ? context.outputs : nullptr) {
    if (floats_ != nullptr) return;
    y_.emplace(output_of(context));
    y_->clear_border();
  }

  void put(int64_t channel, int64_t row, int64_t column, int32_t sum) const {
    if (floats_ == nullptr) {
      *y_->pixel(channel, row, column) =
          stored_byte(requantized(total_of(sum, numbers_), numbers_.requantize[0]), y_->zero);
    } else if (channel < layout_.channels) {
      floats_[(channel * layout_.height + row) * layout_.width + column] =
          static_cast<float>(sum) * numbers_.dequantize[0];
    }
  }

 private:
  const Int8Step& numbers_;
  const QuadLayout& layout_;
  float* floats_;
  std::optional<Quads> y_;  // of bytes
};

void run_global_mean(const StepContext& context) {
  const Quads x = input_of(context);
  const auto pixels = static_cast<int32_t>(x.layout.height * x.layout.width);
  const MeanOutput y(context);
  for (int64_t quad = 0; quad < x.layout.quads(); ++quad) {
    int32_t sums[kQuad];
    kernels_of(context).quad_sums(x.layout, x.quad(quad), sums);
    for (int64_t c = 0; c < kQuad; ++c) y.put(quad * kQuad + c, 0, 0, sums[c] - x.zero * pixels);
  }
}

// Rows, or columns, of a window that are there.
struct Span {
  int64_t first, last;
};
Span window_at(int64_t place, int64_t stride, int64_t padding, int64_t kernel, int64_t size) {
  const int64_t first = place * stride - padding;
  return {std::max<int64_t>(0, first), std::min(size, first + kernel)};
}

// The larger of the rows first, then of the columns.
void run_max_pool(const StepContext& context) {
  const PoolShape& shape = context.layer().pool;
  const Quads x = input_of(context), y = output_of(context);
  auto* row = context.scratch_of<uint8_t>(context.worker);
  const int64_t bytes = x.layout.width * kQuad;
  const uint8_t least = x.zero != 0 ? 1 : 0;
  y.clear_border();
  for (int64_t quad = 0; quad < y.layout.quads(); ++quad) {
    for (int64_t i = 0; i < shape.out_h; ++i) {
      const Span rows = window_at(i, shape.stride_h, shape.padding_h, shape.kernel_h, shape.in_h);
      std::memset(row, least, static_cast<size_t>(bytes));
      for (int64_t r = rows.first; r < rows.last; ++r) {
        kernels_of(context).max(bytes, row, x.quad(quad) + x.layout.pixel(r, 0), row);
      }
      uint8_t* to = y.quad(quad) + y.layout.pixel(i, 0);
      for (int64_t j = 0; j < shape.out_w; ++j, to += kQuad) {
        const Span columns = window_at(j, shape.stride_w, shape.padding_w, shape.kernel_w, shape.in_w);
        uint8_t most[kQuad] = {least, least, least, least};
        for (int64_t k = columns.first; k < columns.last; ++k) {
          for (int64_t c = 0; c < kQuad; ++c) most[c] = std::max(most[c], row[k * kQuad + c]);
        }
        std::memcpy(to, most, kQuad);
      }
    }
  }
}

void run_avg_pool(const StepContext& context) {
  const PoolShape& shape = context.layer().pool;
  const Quads x = input_of(context);
  const MeanOutput y(context);
  for (int64_t quad = 0; quad < x.layout.quads(); ++quad) {
    for (int64_t i = 0; i < shape.out_h; ++i) {
      const Span rows = window_at(i, shape.stride_h, shape.padding_h, shape.kernel_h, shape.in_h);
      for (int64_t j = 0; j < shape.out_w; ++j) {
        const Span columns = window_at(j, shape.stride_w, shape.padding_w, shape.kernel_w, shape.in_w);
        int32_t sums[kQuad] = {};
        for (int64_t row = rows.first; row < rows.last; ++row) {
          const uint8_t* from = x.quad(quad) + x.layout.pixel(row, columns.first);
          for (int64_t k = columns.first; k < columns.last; ++k, from += kQuad) {
            for (int64_t c = 0; c < kQuad; ++c) sums[c] += from[c] - x.zero;
          }
        }
        for (int64_t c = 0; c < kQuad; ++c) y.put(quad * kQuad + c, i, j, sums[c]);
      }
    }
  }
}

// Sums, and what copies bytes from one type to the other. Values of one size lie alike, and the zeros between them
// add up to zeros.
constexpr int32_t kOne = 1 << 16;

void run_add(const StepContext& context) {
  const PlannedStep& step = context.step();
  const Quads y = output_of(context);
  auto* addends = context.scratch_of<Int8Kernels::Addend>(context.worker);
  for (size_t k = 0; k < step.inputs.size(); ++k) {
    const Quads x = input_of(context, k);
    addends[k] = {x.data, x.zero, numbers_of(context).factors[k]};
  }
  kernels_of(context).add(y.used_bytes(), addends, static_cast<int64_t>(step.inputs.size()), y.zero, y.data);
}

void convert(const StepContext& context, const uint8_t* from, uint8_t from_zero, int64_t bytes, uint8_t* to,
             uint8_t to_zero) {
  if (from_zero == to_zero) {
    std::memcpy(to, from, static_cast<size_t>(bytes));
    return;
  }
  const Int8Kernels::Addend addend{from, from_zero, kOne};
  kernels_of(context).add(bytes, &addend, 1, to_zero, to);
}

void run_relu(const StepContext& context) {
  const Quads x = input_of(context), y = output_of(context);
  convert(context, x.data, x.zero, y.used_bytes(), y.data, y.zero);
}

void run_concat(const StepContext& context) {
  const Quads y = output_of(context);
  int64_t channel = 0;
  // What the last quad has too much.
  std::memset(y.quad(y.layout.quads() - 1), y.zero, static_cast<size_t>(y.layout.quad_bytes()));
  bool is_clear = false;
  for (size_t k = 0; k < context.step().inputs.size(); ++k) {
    const Quads x = input_of(context, k);
    if (channel % kQuad == 0 && x.layout.is_like(y.layout)) {
      convert(context, x.data, x.zero, x.used_bytes(), y.quad(channel / kQuad), y.zero);
    } else {
      if (!is_clear) y.clear_border();
      is_clear = true;
      for (int64_t c = 0; c < x.layout.channels; ++c) {
        for (int64_t row = 0; row < y.layout.height; ++row) {
          const uint8_t* from = x.pixel(c, row, 0);
          uint8_t* to = y.pixel(channel + c, row, 0);
          for (int64_t column = 0; column < y.layout.width; ++column, from += kQuad, to += kQuad) {
            *to = stored_byte(*from - x.zero, y.zero);
          }
        }
      }
    }
    channel += x.layout.channels;
  }
}

void run_flatten(const StepContext& context) {
  const Quads x = input_of(context), y = output_of(context);
  uint8_t* to = y.data;
  for (int64_t c = 0; c < x.layout.channels; ++c) {
    for (int64_t row = 0; row < x.layout.height; ++row) {
      const uint8_t* from = x.pixel(c, row, 0);
      for (int64_t column = 0; column < x.layout.width; ++column, from += kQuad) {
        *to++ = stored_byte(*from - x.zero, y.zero);
      }
    }
  }
  std::fill(to, y.data + y.used_bytes(), y.zero);
}

// Every stride-th pixel, the channels behind (out - in) / 2 channels of zeros.
void run_subsample(const StepContext& context) {
  const Node& node = *context.step().node;
  const Quads x = input_of(context), y = output_of(context);
  const int64_t front = (y.layout.channels - x.layout.channels) / 2, width = y.layout.width;
  std::memset(y.data, y.zero, static_cast<size_t>(y.used_bytes()));
  const bool in_quads = front % kQuad == 0;
  for (int64_t c = 0; c < x.layout.channels; c += in_quads ? kQuad : 1) {
    for (int64_t row = 0; row < y.layout.height; ++row) {
      const uint8_t* from = x.pixel(c, row * node.stride.h, 0);
      uint8_t* to = y.pixel(front + c, row, 0);
      if (in_quads && node.stride.w == 2) {
        kernels_of(context).every_second(width, from, to);
        continue;
      }
      const auto bytes = static_cast<size_t>(in_quads ? kQuad : 1);
      for (int64_t j = 0; j < width; ++j, from += node.stride.w * kQuad, to += kQuad) std::memcpy(to, from, bytes);
    }
  }
}

// Channel by channel, where the kernel reaches beyond the border.
void shift_far(const Quads& x, const Quads& y, int64_t channel, int64_t down, int64_t right) {
  for (int64_t row = 0; row < y.layout.height; ++row) {
    for (int64_t column = 0; column < y.layout.width; ++column) {
      const int64_t r = row + down, c = column + right;
      const bool is_inside = r >= 0 && r < x.layout.height && c >= 0 && c < x.layout.width;
      *y.pixel(channel, row, column) = is_inside ? *x.pixel(channel, r, c) : x.zero;
    }
  }
}

// A quad's channels that move the same way at once, over the plane with its gaps.
void run_shift(const StepContext& context) {
  const Node& node = *context.step().node;
  const Quads x = input_of(context), y = output_of(context);
  const std::vector<uint16_t>& codes = context.layer().int8->shift_codes;
  const QuadLayout& layout = y.layout;
  const auto code_of = [&](int64_t c) { return codes[static_cast<size_t>(std::min(c, layout.channels - 1))]; };
  const bool is_near =
      node.kernel.h / 2 * node.dilation.h <= layout.border_h && node.kernel.w / 2 * node.dilation.w <= layout.border_w;
  const int64_t run = (layout.height - 1) * layout.pitch() + layout.width;
  for (int64_t quad = 0; quad < layout.quads(); ++quad) {
    uint8_t done = 0;
    for (int64_t c = 0; c < kQuad; ++c) {
      const uint16_t code = code_of(quad * kQuad + c);
      const int64_t down = (code / node.kernel.w - node.kernel.h / 2) * node.dilation.h;
      const int64_t right = (code % node.kernel.w - node.kernel.w / 2) * node.dilation.w;
      if (!is_near) {
        shift_far(x, y, quad * kQuad + c, down, right);
        continue;
      }
      if ((done >> c & 1) != 0) continue;
      uint8_t keep[kQuad] = {};
      for (int64_t other = c; other < kQuad; ++other) {
        if (code_of(quad * kQuad + other) != code) continue;
        keep[other] = 0xFF;
        done = static_cast<uint8_t>(done | 1 << other);
      }
      uint32_t mask = 0;
      std::memcpy(&mask, keep, sizeof mask);
      kernels_of(context).blend(run, mask, x.quad(quad) + layout.pixel(down, right), y.quad(quad) + layout.pixel(0, 0));
    }
  }
  y.clear_border();
}

}  // namespace
}  // namespace int8_steps

const std::vector<StepKind>& int8_step_table() {
  using namespace int8_steps;
  constexpr DType kI8 = DType::kI8;
  static const std::vector<StepKind> table = {
      {Op::kConv, kI8, conv_bytes, prepare_conv, run_conv},
      {Op::kTapConv, kI8, conv_bytes, prepare_conv, run_conv},
      {Op::kAffine, kI8, conv_bytes, prepare_conv, run_conv},
      {Op::kLinear, kI8, linear_bytes, prepare_linear, run_linear},
      {Op::kShift, kI8, nullptr, prepare_shift, run_shift},
      {Op::kRelu, kI8, nullptr, nullptr, run_relu},
      {Op::kAdd, kI8, nullptr, prepare_add, run_add},
      {Op::kAvgPool, kI8, nullptr, prepare_pool, run_avg_pool},
      {Op::kMaxPool, kI8, nullptr, prepare_pool, run_max_pool},
      {Op::kGlobalAvgPool, kI8, nullptr, nullptr, run_global_mean},
      {Op::kSubsample, kI8, nullptr, nullptr, run_subsample},
      {Op::kConcat, kI8, nullptr, nullptr, run_concat},
      {Op::kFlatten, kI8, nullptr, nullptr, run_flatten},
  };
  return table;
}

void quantize_image(const StepContext& context, const float* image) {
  const int value = context.model.plan().input;
  quantize_planes(context, value, image,
                  context.model.int8()->layout(value).height * context.model.int8()->layout(value).width);
}

void quantize_image(const StepContext& context, const uint8_t* pixels) {
  const Int8Model& int8 = *context.model.int8();
  const int8_steps::Quads x = int8_steps::quads_of(context, context.model.plan().input);
  x.clear_border();
  for (int64_t c = 0; c < x.layout.quads() * kQuad; ++c) {
    const auto table = std::min(static_cast<size_t>(c), int8.pixel_bytes.size() - 1);
    for (int64_t row = 0; row < x.layout.height; ++row) {
      uint8_t* to = x.pixel(c, row, 0);
      for (int64_t column = 0; column < x.layout.width; ++column, to += kQuad) {
        *to = c < x.layout.channels ? int8.pixel_bytes[table][*pixels++] : x.zero;
      }
    }
  }
}

void dequantize_output(const StepContext& context, float* to) {
  dequantize_planes(context, context.model.plan().output, to,
                    context.model.plan().value(context.model.plan().output).pixels);
}

}  // namespace onetap
