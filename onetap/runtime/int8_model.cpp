#include "onetap/runtime/int8_model.h"

#include <algorithm>
#include <map>
#include <utility>

namespace onetap {
namespace {

// A shift reads as far as its kernel reaches, and gives as many pixels as there are.
std::pair<int64_t, int64_t> border_of(const Node& node) {
  if (node.op == Op::kShift) {
    return {node.kernel.h / 2 * node.dilation.h, node.kernel.w / 2 * node.dilation.w};
  }
  const bool is_direct = (node.op == Op::kConv || node.op == Op::kTapConv) && node.stride.h == 1 && node.stride.w == 1;
  if (!is_direct) return {0, 0};
  return {node.padding.h, node.padding.w};
}

// Values of one size have one border, as wide as any of their readers wants it: then a row of one is a row of all.
std::vector<QuadLayout> lay_out(const ExecutionPlan& plan, const std::vector<Int8Step>& steps) {
  std::map<std::pair<int64_t, int64_t>, std::pair<int64_t, int64_t>> borders;  // by rows and columns
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const PlannedStep& step = plan.steps[i];
    if (steps[i].is_kept || step.source->shape.size() != 3) continue;
    const auto [rows, columns] = border_of(*step.node);
    if (rows > kMaxBorder || columns > kMaxBorder) continue;
    auto& border = borders[{step.source->shape[1], step.source->shape[2]}];
    border.first = std::max(border.first, rows);
    border.second = std::max(border.second, columns);
  }
  std::vector<QuadLayout> layouts;
  for (const PlannedValue& value : plan.values) {
    const Shape& shape = value.node->shape;
    QuadLayout layout{shape[0], 1, 1, 0, 0};
    if (shape.size() == 3) {
      const auto found = borders.find({shape[1], shape[2]});
      const auto border = found == borders.end() ? std::pair<int64_t, int64_t>() : found->second;
      layout = {shape[0], shape[1], shape[2], border.first, border.second};
    }
    layouts.push_back(layout);
  }
  return layouts;
}

}  // namespace

PlannedInt8 plan_int8_quads(const TapNet& net, const Graph& graph) {
  Int8Plan planned = plan_int8(net);
  const auto copied = [&](const Node*& node) {
    node = &graph.nodes()[static_cast<size_t>(node - net.graph.nodes().data())];
  };
  for (PlannedValue& value : planned.plan.values) copied(value.node);
  for (PlannedStep& step : planned.plan.steps) {
    copied(step.node);
    copied(step.source);
  }
  copied(planned.plan.peak);
  PlannedInt8 result;
  result.plan = std::move(planned.plan);
  result.model = std::make_unique<Int8Model>();
  Int8Model& model = *result.model;
  model.values = std::move(planned.values);
  model.steps = std::move(planned.steps);
  model.layouts = lay_out(result.plan, model.steps);
  std::vector<int64_t> bytes;
  for (size_t i = 0; i < model.values.size(); ++i) {
    result.plan.values[i].dtype = model.values[i].dtype;
    bytes.push_back(model.values[i].dtype == DType::kF32 ? 0 : model.layouts[i].bytes());
  }
  place_in_arena(result.plan, bytes, kLineBytes);
  const Int8Value& input = model.value(result.plan.input);
  if (input.dtype != DType::kF32) model.pixel_bytes = pixel_bytes(net.pixels, input);
  for (PixelBytes& table : model.pixel_bytes) {
    for (uint8_t& byte : table) byte = static_cast<uint8_t>(byte + zero_byte(input.dtype));
  }
  return result;
}

}  // namespace onetap
