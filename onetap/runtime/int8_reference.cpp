#include "onetap/runtime/int8_reference.h"

#include "onetap/graph/shift.h"
#include "onetap/kernels/int8_reference.h"
#include "onetap/kernels/reference.h"
#include "onetap/runtime/layer.h"
#include "onetap/runtime/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <unordered_map>

namespace onetap {
namespace {

using Bytes = Int8Reference::Bytes;

std::vector<float> floats_of_value(const Int8Plan& plan, int value, const Bytes& bytes) {
  const Int8Value& as = plan.value(value);
  std::vector<float> list(bytes.size() / dtype_bytes(as.dtype));
  if (as.dtype == DType::kF32) {
    std::memcpy(list.data(), bytes.data(), bytes.size());
  } else {
    reference::dequantize(static_cast<int64_t>(list.size()), as.scale, {bytes.data(), as.dtype}, list.data());
  }
  return list;
}

// A step, the values of all steps before it, and bytes for its result.
struct StepRun {
  const TapNet& net;
  const Int8Plan& plan;
  size_t index;
  const std::vector<Bytes>& values;
  Bytes& result;

  const PlannedStep& step() const { return plan.plan.steps[index]; }
  const Node& node() const { return *step().node; }
  const Shape& in_shape() const { return step().source->shape; }
  const LayerTensors& tensors() const { return net.tensors(node()); }
  int64_t count_of(int value) const { return plan.plan.value(value).elements(); }
  int64_t count() const { return count_of(step().output); }

  ByteInput value(int at) const { return {values[static_cast<size_t>(at)].data(), plan.value(at).dtype}; }
  ByteInput x() const { return value(step().inputs[0]); }
  ByteOutput y() const { return {result.data(), plan.value(step().output).dtype}; }
  Int8ConvIo io() const { return {x(), step().residual >= 0 ? value(step().residual) : ByteInput{}, y()}; }
  Int8Epilogue epilogue() const {
    const Int8Step& of = plan.steps[index];
    return {of.bias.data(), of.left_shift, of.residual_factor.data(), of.requantize.data(), of.dequantize.data()};
  }

  std::vector<float> floats(int at) const { return floats_of_value(plan, at, values[static_cast<size_t>(at)]); }
};

void step_conv(const StepRun& run) {
  const LayerTensors& tensors = run.tensors();
  reference::int8_conv(conv_shape(run.net.graph, run.node()), {tensors.weight.data<int8_t>(), tensors.positions.data()},
                       run.epilogue(), run.io());
}

void step_linear(const StepRun& run) {
  reference::int8_linear(run.count_of(run.step().inputs[0]), run.node().out, run.tensors().weight.data<int8_t>(),
                         run.epilogue(), run.io());
}

void step_affine(const StepRun& run) {
  const int64_t channels = run.node().shape[0];
  reference::int8_affine(channels, run.count() / channels, run.tensors().weight.data<int8_t>(), run.epilogue(),
                         run.io());
}

void step_avg_pool(const StepRun& run) {
  reference::int8_avg_pool(pool_shape(run.net.graph, run.node()), run.epilogue(), run.x(), run.y());
}

void step_max_pool(const StepRun& run) {
  reference::int8_max_pool(pool_shape(run.net.graph, run.node()), run.x(), run.y());
}

void step_global_mean(const StepRun& run) {
  const int64_t channels = run.node().shape[0];
  reference::int8_global_mean(channels, run.count_of(run.step().inputs[0]) / channels, run.epilogue(), run.x(),
                              run.y());
}

const uint8_t* plain(const ByteInput& bytes) {
  return reinterpret_cast<const uint8_t*>(bytes.data);
}

uint8_t* plain(const ByteOutput& bytes) {
  return reinterpret_cast<uint8_t*>(bytes.data);
}

void step_subsample(const StepRun& run) {
  const Shape& in = run.in_shape();
  const Node& node = run.node();
  reference::subsample<uint8_t>({in[0], in[1], in[2], node.out, node.stride.h, node.stride.w}, plain(run.x()),
                                plain(run.y()));
}

void step_shift(const StepRun& run) {
  const Shape& in = run.in_shape();
  const Node& node = run.node();
  reference::shift<uint8_t>({in[0], in[1], in[2], node.kernel.h, node.kernel.w, node.dilation.h, node.dilation.w},
                            shift_codes(node, in[0]).data(), plain(run.x()), plain(run.y()));
}

void step_add(const StepRun& run) {
  std::vector<ByteInput> inputs;
  for (const int input : run.step().inputs) inputs.push_back(run.value(input));
  reference::int8_add(run.count(), inputs, run.plan.steps[run.index].factors.data(), run.y());
}

// Concatenations, flattened planes, ReLUs.
void step_copies(const StepRun& run) {
  ByteOutput to = run.y();
  for (const int input : run.step().inputs) {
    reference::int8_copy(run.count_of(input), run.value(input), to);
    to.data += run.count_of(input);
  }
}

using StepFunction = void (*)(const StepRun& run);

StepFunction find_step_function(Op op) {
  static const std::unordered_map<Op, StepFunction> table = {
      {Op::kConv, step_conv},           {Op::kTapConv, step_conv},
      {Op::kLinear, step_linear},       {Op::kAffine, step_affine},
      {Op::kAvgPool, step_avg_pool},    {Op::kMaxPool, step_max_pool},
      {Op::kSubsample, step_subsample}, {Op::kFlatten, step_copies},
      {Op::kRelu, step_copies},         {Op::kAdd, step_add},
      {Op::kConcat, step_copies},       {Op::kGlobalAvgPool, step_global_mean},
      {Op::kShift, step_shift},
  };
  return table.at(op);  // plan_int8() took the op
}

void step_kept(const StepRun& run) {
  const PlannedStep& step = run.step();
  const Node& node = run.node();
  const std::vector<float> x = run.floats(step.inputs[0]);
  std::vector<float> y(static_cast<size_t>(run.count()));
  const float* weight = floats_of(node, run.tensors().weight);
  const float* bias = floats_of(node, run.tensors().bias);
  if (node.op == Op::kLinear) {
    reference::linear(static_cast<int64_t>(x.size()), node.out, weight, bias, x.data(), y.data());
  } else if (node.op == Op::kAffine) {
    const int64_t channels = node.shape[0];
    reference::affine(channels, run.count() / channels, weight, bias, x.data(), y.data());
  } else {
    reference::conv(conv_shape(run.net.graph, node), conv_weights(run.net, node), x.data(), y.data());
  }
  if (step.residual >= 0) {
    const std::vector<float> residual = run.floats(step.residual);
    std::transform(y.begin(), y.end(), residual.begin(), y.begin(), std::plus<float>());
  }
  const ByteOutput to = run.y();
  if (to.dtype == DType::kF32) {
    std::memcpy(to.data, y.data(), y.size() * sizeof(float));
  } else {
    reference::quantize(run.count(), run.plan.value(step.output).scale, y.data(), to);  // clamps, as a ReLU does
  }
}

}  // namespace

Int8Reference::Int8Reference(const TapNet& net, int64_t memory_limit) : net_(net), plan_(plan_int8(net)) {
  MemoryNeed need(net.graph.name(), onetap::memory_limit(memory_limit));
  int64_t bytes = 0;
  for (size_t i = 0; i < plan_.values.size(); ++i) {
    bytes += plan_.plan.values[i].elements() * static_cast<int64_t>(dtype_bytes(plan_.values[i].dtype));
  }
  need.add(bytes, "values of all layers");
  need.check();
}

std::vector<float> Int8Reference::run(const float* image) const {
  return run(image, [](int, const Bytes&) {});
}

std::vector<float> Int8Reference::run(const float* image, const Visit& visit) const {
  const ExecutionPlan& steps = plan_.plan;
  std::vector<Bytes> values(plan_.values.size());
  Bytes& input = values[static_cast<size_t>(steps.input)];
  const Int8Value& first = plan_.value(steps.input);
  const int64_t count = steps.value(steps.input).elements();
  input.resize(static_cast<size_t>(count) * dtype_bytes(first.dtype));
  if (first.dtype == DType::kF32) {
    std::memcpy(input.data(), image, input.size());
  } else {
    reference::quantize(count, first.scale, image, {input.data(), first.dtype});
  }
  visit(steps.input, input);
  for (size_t i = 0; i < steps.steps.size(); ++i) {
    const int output = steps.steps[i].output;
    values[static_cast<size_t>(output)] = run_step(i, values);
    visit(output, values[static_cast<size_t>(output)]);
  }
  return floats(steps.output, values[static_cast<size_t>(steps.output)]);
}

Bytes Int8Reference::run_step(size_t step, const std::vector<Bytes>& values) const {
  const int output = plan_.plan.steps[step].output;
  Bytes result(static_cast<size_t>(plan_.plan.value(output).elements()) * dtype_bytes(plan_.value(output).dtype));
  const StepRun run{net_, plan_, step, values, result};
  plan_.steps[step].is_kept ? step_kept(run) : find_step_function(run.node().op)(run);
  return result;
}

std::vector<float> Int8Reference::floats(int value, const Bytes& bytes) const {
  return floats_of_value(plan_, value, bytes);
}

}  // namespace onetap
