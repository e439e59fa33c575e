#include "onetap/emit/c_program.h"

#include "onetap/base/align.h"
#include "onetap/base/fail.h"
#include "onetap/graph/op.h"

#include <algorithm>
#include <limits>

namespace onetap {
namespace {

constexpr int64_t kMaxExtent = 65535;                               // the generated descriptors have 16 bits
constexpr int64_t kMaxWindow = 255;                                 // and 8 for what concerns a kernel
constexpr int64_t kMaxBytes = std::numeric_limits<int32_t>::max();  // offsets are computed in 32 bits
constexpr int64_t kMaxRows = int64_t{1} << 20;                      // of all steps: planning takes seconds

void check_node(const Node& node) {
  switch (node.op) {
    case Op::kConv:
    case Op::kTapConv:
    case Op::kLinear:
    case Op::kAffine:
    case Op::kRelu:
    case Op::kRelu6:
    case Op::kAdd:
    case Op::kConcat:
    case Op::kAvgPool:
    case Op::kMaxPool:
    case Op::kGlobalAvgPool:
    case Op::kSubsample:
    case Op::kFlatten:
    case Op::kShift:
      break;
    default:
      fail_usage("[emit] expected ops that can be written as C, got {} ('{}')", op_info(node.op).name, node.name);
  }
  // A shift reads as far around as a convolution with such padding.
  const bool is_shift = node.op == Op::kShift;
  const int64_t above = is_shift ? node.kernel.h / 2 * node.dilation.h : node.padding.h;
  const int64_t before = is_shift ? node.kernel.w / 2 * node.dilation.w : node.padding.w;
  for (const int64_t extent :
       {node.kernel.area(), node.stride.h, node.stride.w, above, before, node.dilation.h, node.dilation.w}) {
    if (extent <= kMaxWindow) continue;
    fail_usage(
        "[emit] expected kernels of at most {} positions, and strides, pads and dilations up to it, got {} ('{}')",
        kMaxWindow, extent, node.name);
  }
}

// Whether a convolution reads outside of the image.
bool reads_around(const Node& node) {
  return node.padding.h > 0 || node.padding.w > 0;
}

CValue make_value(const std::string& name, const Shape& shape, int64_t multiple) {
  for (const int64_t extent : shape) {
    if (round_up(extent, multiple) > kMaxExtent) {
      fail_usage("[emit] expected values of at most {} channels, rows and columns, got {} ('{}')", kMaxExtent,
                 shape_text(shape), name);
    }
  }
  CValue value;
  value.name = name;
  value.channels = shape[0];
  value.stride = round_up(shape[0], multiple);
  if (shape.size() == 3) {
    value.height = shape[1];
    value.width = shape[2];
  }
  return value;
}

}  // namespace

bool is_conv_step(Op op) {
  return op == Op::kConv || op == Op::kTapConv || op == Op::kLinear || op == Op::kAffine;
}

bool CProgram::gives_floats(const CStep& step) const {
  return is_int8() && step.planned != nullptr && onetap::gives_floats(plan(), *step.planned);
}

CProgram::CProgram(const TapNet& net, RowMode mode, CInput given) : takes(given) {
  for (const Node& node : net.graph.nodes()) {
    if (node.op != Op::kInput) check_node(node);
  }
  if (net.is_int8()) {
    int8 = plan_int8(net);
  } else {
    floats = plan_execution(net.graph);
  }
  add_values();
  add_steps();
  check_sizes();
  for (const CStep& step : steps) {
    if (step.planned == nullptr || !is_conv_step(step.planned->node->op) || !reads_around(*step.planned->node))
      continue;
    zeros = std::max(zeros, value(step.inputs[0]).stride);
  }
  rows = plan_rows(row_program(net.graph), mode);
  arena_bytes = zeros * element_bytes() + rows.arena_bytes;
}

void CProgram::check_arena() const {
  if (arena_bytes <= kMaxBytes) return;
  fail_usage("[emit] expected at most {} bytes of RAM, got {} (most is in use around layer '{}')", kMaxBytes,
             arena_bytes, step(rows.peak).name);
}

void CProgram::add_values() {
  const int64_t multiple = is_int8() ? 4 : 1;
  for (const PlannedValue& planned : plan().values) {
    values.push_back(make_value(planned.node->name, planned.node->shape, multiple));
  }
  values.push_back(value(plan().output));  // the caller's, outside of the arena
}

// Those whose result somebody needs, and one each for the caller's input and output.
void CProgram::add_steps() {
  const int caller = static_cast<int>(values.size()) - 1;
  // From the last to the first.
  std::vector<bool> needed(values.size(), false);
  needed[static_cast<size_t>(plan().output)] = true;
  for (int s = static_cast<int>(plan().steps.size()) - 1; s >= 0; --s) {
    const PlannedStep& planned = plan().steps[static_cast<size_t>(s)];
    if (!needed[static_cast<size_t>(planned.output)]) continue;
    CStep step;
    step.planned = &planned;
    step.planned_index = s;
    step.inputs = planned.inputs;
    if (planned.residual >= 0) step.inputs.push_back(planned.residual);
    step.output = planned.output;
    step.name = planned.node->name;
    for (const int input : step.inputs) needed[static_cast<size_t>(input)] = true;
    if (gives_floats(step)) step.output = caller;
    steps.push_back(std::move(step));
  }
  CStep reader;
  reader.output = plan().input;
  reader.name = "input";
  steps.push_back(reader);
  std::reverse(steps.begin(), steps.end());
  if (steps.back().output != caller) {
    CStep writer;
    writer.inputs = {plan().output};
    writer.output = caller;
    writer.name = "output";
    steps.push_back(writer);
  }
}

RowProgram CProgram::row_program(const Graph& graph) const {
  const int caller = static_cast<int>(values.size()) - 1;
  RowProgram program;
  for (int v = 0; v < static_cast<int>(values.size()); ++v) {
    const int64_t row_bytes = v == caller ? 0 : value(v).width * value(v).stride * element_bytes();
    program.values.push_back({value(v).height, row_bytes});
  }
  for (const CStep& step : steps) {
    RowStep made;
    made.output = step.output;
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      RowRead read;
      read.value = step.inputs[i];
      const CValue& from = value(read.value);
      const bool is_addend = step.planned != nullptr && i == step.planned->inputs.size();
      for (int64_t row = 0; row < rows_of(step); ++row) {
        read.spans.push_back(step.planned == nullptr || is_addend ? RowSpan{row, row}
                                                                  : rows_read(graph, *step.planned->node, row));
      }
      if (step.planned != nullptr) {
        const Op op = step.planned->node->op;
        read.same_place = is_addend || op == Op::kAdd || op == Op::kRelu || op == Op::kRelu6 || op == Op::kAffine ||
                          (op == Op::kFlatten && from.height * from.width == 1);
      }
      made.reads.push_back(std::move(read));
    }
    program.steps.push_back(std::move(made));
  }
  return program;
}

void CProgram::check_sizes() const {
  for (const bool is_input : {true, false}) {
    const CValue& callers = is_input ? value(plan().input) : values.back();
    const int64_t element = c_type_bytes(is_input ? takes : CInput::kFloats);
    const int64_t bytes = callers.channels * callers.height * callers.width * element;
    if (bytes <= kMaxBytes) continue;
    fail_usage("[emit] expected an input and an output of at most {} bytes, got {} ('{}')", kMaxBytes, bytes,
               callers.name);
  }
  int64_t count = 0;
  for (const CStep& step : steps) count += rows_of(step) * static_cast<int64_t>(1 + step.inputs.size());
  if (count > kMaxRows) {
    fail_usage("[emit] expected at most {} rows of all layers and what they read, got {}", kMaxRows, count);
  }
}

}  // namespace onetap
