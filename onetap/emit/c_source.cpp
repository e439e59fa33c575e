#include "onetap/emit/c_source.h"

#include "onetap/base/align.h"
#include "onetap/base/fail.h"
#include "onetap/emit/c_conv.h"
#include "onetap/emit/c_text.h"
#include "onetap/graph/shift.h"
#include "onetap/graph/tap_layout.h"

#include <algorithm>
#include <iterator>

namespace onetap {
namespace {

using F = CFragment;

// Sizes on a machine with addresses of 4 bytes.
constexpr int64_t kValueBytes = 16, kStepBytes = 20, kPointerBytes = 4;
constexpr int64_t kPixelInputBytes = 8;
constexpr int64_t kWordBytes = 16;     // of a list, with DSP instructions
constexpr int64_t kResultBytes = 256;  // of outputs that wait to be scaled
// Of the stack beside lists, places and rows of steps, as measured for a Cortex-M4.
constexpr int64_t kFloatStackBytes = 270, kInt8StackBytes = 358;
constexpr int64_t kUnlistedCodeBytes = 708;
constexpr int64_t kUnusualCodeBytes = 200;
constexpr int64_t kUnlistedStackBytes = 70;

}  // namespace

CSource::CSource(const TapNet& net, const CProgram& program, std::string name, Purpose purpose)
    : net_(net), program_(program), name_(std::move(name)), purpose_(purpose) {
  program.check_arena();
  fragments_.insert(F::kSteps);
  fragments_.insert(program.takes_pixels() ? F::kMemoryPixels : F::kMemoryFloats);
  for (const Node& node : net.graph.nodes()) {
    if (is_conv_step(node.op)) positions_ = std::max(positions_, node.kernel.area());
    const int64_t alphabet = node.op == Op::kTapConv ? tap_layout(net.graph, node).alphabet()
                             : node.op == Op::kShift ? node.kernel.area()
                                                     : 0;
    if (alphabet > 16) code_bits_ = 8;
    if (node.op == Op::kTapConv && tap_layout(net.graph, node).may_be_empty) has_empty_ = true;
  }
  // The last value is the caller's output and not in the arena.
  const auto is_signed = [&](size_t v) {
    return program.is_int8() && v + 1 < program.values.size() && program.int8->values[v].dtype == DType::kI8;
  };
  for (size_t v = 0; v < program.values.size(); ++v) {
    const CValue& value = program.values[v];
    const RowPlacement& place = program.rows.values[v];
    fmt::format_to(std::back_inserter(values_), "    {{{}, {}, {}, {}, {}, {}}}, /* {}: {} */\n",
                   program.zeros + place.offset / program.element_bytes(), value.height, value.width, value.stride,
                   place.rows, is_signed(v) ? 1 : 0, v,
                   v + 1 == program.values.size() ? "out" : identifier_part(value.name));
  }
  sizes_.other += static_cast<int64_t>(program.values.size()) * kValueBytes;
  for (int s = 0; s < static_cast<int>(program.steps.size()); ++s) add_step(s);
  sizes_.other += static_cast<int64_t>(program.rows.schedule.size()) * step_index_bytes();
  sizes_.code =
      fragment_code_bytes(fragments_) + (all_listed_ ? 0 : kUnlistedCodeBytes) + (all_usual_ ? 0 : kUnusualCodeBytes);
  sizes_.stack = stack_bytes();
  sizes_.arena = program.arena_bytes;
  sizes_.arena_layer = program.step(program.rows.peak).name;
}

int64_t CSource::step_index_bytes() const {
  return program_.steps.size() < 256 ? 1 : 2;
}

int64_t CSource::stack_bytes() const {
  const auto rows = round_up(static_cast<int64_t>(program_.steps.size() * sizeof(uint16_t)), kPointerBytes);
  const int64_t places = 2 * kPointerBytes * positions_;
  if (!program_.is_int8()) return kFloatStackBytes + rows + places;
  return kInt8StackBytes + rows + places + kResultBytes + kWordBytes * std::max({words_, gathered_, int64_t{1}}) +
         (all_listed_ ? 0 : kUnlistedStackBytes);
}

void CSource::count(Kind kind, int64_t bytes) {
  CLayerSize& layer = sizes_.layers.back();
  int64_t& of_layer = kind == Kind::kWeights ? layer.weights : kind == Kind::kPositions ? layer.positions : layer.other;
  int64_t& of_all = kind == Kind::kWeights     ? sizes_.weights
                    : kind == Kind::kPositions ? sizes_.positions
                                               : sizes_.other;
  of_layer += bytes;
  of_all += bytes;
}

std::string CSource::add_constant(const std::string& type, const std::string& initializer, int64_t bytes) {
  layers_ += fmt::format("static const {} {} = {};\n", type, current_, initializer);
  count(Kind::kOther, bytes);
  return "&" + current_;
}

void CSource::add_step(int index) {
  const CStep& step = program_.step(index);
  // The number keeps names apart that differ in other characters than letters and digits.
  current_ = fmt::format("s{}_{}", index, identifier_part(step.name));
  sizes_.layers.push_back({step.name});
  const auto [function, layer] = layer_of(step);
  std::string inputs = "NULL";
  if (!step.inputs.empty()) {
    inputs = current_ + "_inputs";
    layers_ += fmt::format("static const Value* const {}[] = {{", inputs);
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      layers_ += fmt::format("{}&values[{}]", i == 0 ? "" : ", ", step.inputs[i]);
    }
    layers_ += "};\n";
  }
  fmt::format_to(std::back_inserter(steps_), "    {{{}, {}, {}, {}, &values[{}]}}, /* {} */\n", function, layer, inputs,
                 step.inputs.size(), step.output, index);
  count(Kind::kOther, kStepBytes + kPointerBytes * static_cast<int64_t>(step.inputs.size()));
}

std::string CSource::window_text(const Node& node) const {
  return fmt::format("{{{}, {}, {}, {}, {}, {}, {}, {}}}", node.kernel.h, node.kernel.w, node.stride.h, node.stride.w,
                     node.padding.h, node.padding.w, node.dilation.h, node.dilation.w);
}

std::string CSource::add_value_scale(const char* type, int value) {
  if (!program_.is_int8()) return "NULL";
  std::string scale;
  append_number(scale, program_.int8->value(value).scale);
  return add_constant(type, fmt::format("{{{}, {}}}", scale, program_.value(value).channels), 8);
}

std::string CSource::add_input(const CStep& step) {
  if (program_.takes_pixels()) return add_pixel_input(step);
  fragments_.insert(program_.is_int8() ? F::kInputInt8 : F::kInputFloat);
  return add_value_scale("Input", step.output);
}

std::string CSource::add_pixel_input(const CStep& step) {
  if (!program_.is_int8()) {
    fragments_.insert(F::kInputPixelsFloat);
    const CPixelFactors factors = c_pixel_factors(net_.pixels);
    return add_constant("Input",
                        fmt::format("{{{{{}}}, {{{}}}}}", number_row(factors.factor), number_row(factors.offset)),
                        static_cast<int64_t>(sizeof(float) * (factors.factor.size() + factors.offset.size())));
  }
  fragments_.insert(F::kInputPixelsInt8);
  const int64_t channels = program_.value(step.output).channels;
  const std::vector<uint8_t> tables = c_pixel_tables(net_.pixels, program_.int8->value(step.output), channels);
  const std::string array = add_array(Kind::kOther, "uint8_t", "pixels", tables);
  return add_constant("Input", fmt::format("{{{}, {}, {}}}", array, channels, tables.size() / 256 - 1),
                      kPixelInputBytes);
}

std::string CSource::add_output(const CStep& step) {
  fragments_.insert(program_.is_int8() ? F::kOutputInt8 : F::kOutputFloat);
  return add_value_scale("Output", step.inputs[0]);
}

std::pair<std::string, std::string> CSource::layer_of(const CStep& step) {
  const bool int8 = program_.is_int8();
  const auto use = [&](F floats, F bytes) { fragments_.insert(int8 ? bytes : floats); };
  if (step.planned == nullptr) {
    if (step.inputs.empty()) return {"read_input", add_input(step)};
    return {"write_output", add_output(step)};
  }
  const Node& node = *step.planned->node;
  std::string layer = "NULL", function;
  if (is_conv_step(node.op)) {
    function = add_conv(step, layer);
    return {function, layer};
  }
  switch (node.op) {
    case Op::kAdd:
      use(F::kAddFloat, F::kAddInt8);
      if (int8) return {"add", add_list("int32_t", int8_step(step).factors)};
      return {"add", add_constant("uint8_t", step.planned->relu ? "1" : "0", 1)};
    case Op::kRelu:
      use(F::kReluFloat, F::kReluInt8);
      return {"relu", "NULL"};
    case Op::kRelu6:
      fragments_.insert(F::kRelu6Float);
      return {"relu6", "NULL"};
    case Op::kAvgPool:
    case Op::kMaxPool:
      use(F::kPoolFloat, F::kPoolInt8);
      if (int8) return {"pool", add_constant("Pool", int8_pool_text(step), 24)};
      return {"pool",
              add_constant("Pool", fmt::format("{{{}, {}}}", window_text(node), node.op == Op::kMaxPool ? 1 : 0), 9)};
    case Op::kGlobalAvgPool:
      use(F::kMeanFloat, F::kMeanInt8);
      return {"mean", int8 ? add_constant("Mean", int8_pool_text(step), 16) : "NULL"};
    case Op::kConcat: {
      use(F::kConcatFloat, F::kConcatInt8);
      std::vector<uint16_t> channels;
      for (const int input : step.inputs) channels.push_back(static_cast<uint16_t>(program_.value(input).channels));
      return {"concat", add_list("uint16_t", channels)};
    }
    case Op::kSubsample: {
      fragments_.insert(F::kSubsample);
      const int64_t inputs = program_.value(step.inputs[0]).channels;
      return {"subsample",
              add_constant(
                  "Subsample",
                  fmt::format("{{{}, {}, {}, {}}}", node.stride.h, node.stride.w, (node.out - inputs) / 2, inputs), 6)};
    }
    case Op::kShift: {
      fragments_.insert(F::kShift);
      const int64_t channels = node.shape[0];
      const std::string codes =
          add_array(Kind::kPositions, "uint8_t", "positions",
                    packed_codes(shift_codes(node, channels), code_bits_, static_cast<size_t>(channels)));
      Node window = node;
      window.padding = {node.kernel.h / 2 * node.dilation.h, node.kernel.w / 2 * node.dilation.w};
      return {"shift", add_constant("Shift", fmt::format("{{{}, {}, {}}}", window_text(window), codes, channels), 16)};
    }
    case Op::kFlatten:
      fragments_.insert(F::kFlatten);
      return {"flatten", add_constant("uint16_t", std::to_string(program_.value(step.inputs[0]).channels), 2)};
    default:
      fail("[emit] expected an op that can be written as C ('{}')", node.name);
  }
}

std::string CSource::add_conv(const CStep& step, std::string& layer) {
  std::string function;
  if (program_.is_int8()) {
    add_int8_conv(step, layer, function);
  } else {
    add_float_conv(step, layer, function);
  }
  return function;
}

const Int8Step& CSource::int8_step(const CStep& step) const {
  return program_.int8->steps[static_cast<size_t>(step.planned_index)];
}

// Of a mean: its factor, or that of the caller's floats.
std::string CSource::int8_pool_text(const CStep& step) const {
  const Node& node = *step.planned->node;
  const Int8Step& of = int8_step(step);
  const Requantize by = of.requantize.empty() ? Requantize{} : of.requantize[0];
  std::string dequantize;
  append_number(dequantize, of.dequantize.empty() ? 0.0f : of.dequantize[0]);
  const int gives_floats = of.dequantize.empty() ? 0 : 1;
  const int64_t channels = program_.value(step.output).channels;
  if (node.op == Op::kGlobalAvgPool) {
    return fmt::format("{{{}, {}, {}, {}, {}, {}}}", by.multiplier, of.left_shift, by.shift - 32, gives_floats,
                       dequantize, channels);
  }
  return fmt::format("{{{}, {}, {}, {}, {}, {}, {}, {}}}", window_text(node), node.op == Op::kMaxPool ? 1 : 0,
                     of.left_shift, by.shift - 32, gives_floats, by.multiplier, dequantize, channels);
}

// The order in which steps compute their rows.
std::string CSource::order_text() const {
  return fmt::format("static const uint{}_t order[] = {{\n{}}};\n", 8 * step_index_bytes(),
                     number_list(program_.rows.schedule));
}

std::string CSource::run_text() const {
  const std::string element = program_.is_int8() ? "uint8_t" : "float";
  std::string text = fmt::format(
      "void {0}_run(const {1}* in, float* out, void* arena) {{\n"
      "  Memory memory;\n"
      "  uint16_t next[sizeof steps / sizeof steps[0]] = {{0}}; /* row of each step */\n"
      "  memory.in = in;\n"
      "  memory.out = out;\n"
      "  memory.arena = (element*)arena;\n",
      name_, c_type(program_.takes));
  if (program_.zeros > 0) {
    text += fmt::format("  for (int32_t i = 0; i < {}; ++i) memory.arena[i] = (element)0;\n", program_.zeros);
  }
  return text +
         "  for (size_t i = 0; i < sizeof order / sizeof order[0]; ++i) {\n"
         "    const Step* step = &steps[order[i]];\n"
         "    step->row(step, &memory, next[order[i]]++);\n"
         "  }\n"
         "}\n";
}

std::string CSource::model() const {
  std::string text = generated_note(net_, "the network's code");
  text += fmt::format("#include \"{}.h\"\n\n#include <stddef.h>\n#include <stdint.h>\n\n", name_);
  text += fmt::format("typedef {} element; /* of the arena */\n", program_.is_int8() ? "uint8_t" : "float");
  text += fmt::format(
      "#define POSITIONS {} /* of the largest kernel of a convolution */\n#define CODE_BITS {} /* of a position */\n"
      "#define HAS_EMPTY {} /* whether blocks of weights may be left out */\n",
      positions_, code_bits_, has_empty_ ? 1 : 0);
  if (program_.is_int8()) {
    text += fmt::format(
        "#define LIST {} /* inputs that are read one by one */\n"
        "#define WORDS {} /* of four inputs, that are listed for several outputs */\n"
        "#define ALL_LISTED {} /* whether every layer that reads words lists them */\n"
        "#define ALL_BIASED {} /* whether every convolution has a bias */\n"
        "#define GATHERED {} /* words of inputs that lie apart */\n"
        "#define ALL_USUAL {} /* whether every convolution that gives bytes is usual: see Conv */\n",
        places_, std::max<int64_t>(words_, 1), all_listed_ ? 1 : 0, all_biased_ ? 1 : 0,
        std::max<int64_t>(gathered_, 1), all_usual_ ? 1 : 0);
  }
  text += "\n";
  text += fragment_text(fragments_);
  text += "/* The constants in " + name_ + "_weights.c. */\n" + declarations_;
  text += "\n/* offset, height, width, channels, rows, is_signed */\nstatic const Value values[] = {\n" + values_ +
          "};\n\n";
  text += layers_;
  text +=
      "\n/* function, layer, inputs, number of inputs, output */\nstatic const Step steps[] = {\n" + steps_ + "};\n\n";
  text += "/* The step that computes its next row. */\n" + order_text() + "\n";
  return text + run_text();
}

std::string CSource::weights() const {
  std::string text = generated_note(net_, "weights") + "#include <stdint.h>\n";
  if (program_.is_int8())
    text += "\n" + fragment_text(words_ > 0 ? std::set<F>{F::kVectors, F::kPairs} : std::set<F>{F::kVectors});
  return text + arrays_;
}

}  // namespace onetap
