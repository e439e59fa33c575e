#include "onetap/train/int8_places.h"

#include "onetap/base/fail.h"
#include "onetap/graph/op.h"
#include "onetap/plan/execution_plan.h"
#include "onetap/quant/int8_graph.h"
#include "onetap/quant/int8_plan.h"
#include "onetap/quant/scale_groups.h"
#include "onetap/tap/fold.h"

namespace onetap {
namespace {

bool is_layer(Op op) {
  return op == Op::kConv || op == Op::kTapConv || op == Op::kLinear;
}

void check_op(const Node& node) {
  const Op op = node.op;
  if (is_layer(op) || op == Op::kAffine || op == Op::kAdd || op == Op::kAvgPool || op == Op::kGlobalAvgPool) return;
  if (keeps_scale(op)) return;
  fail_usage("[train] expected ops that have an int8 form, got {} ('{}')", op_info(op).name, node.name);
}

}  // namespace

Int8Places int8_places(const Graph& trained) {
  const FrozenForm form = frozen_form(trained);
  const Graph graph = int8_graph(form.graph);
  const ExecutionPlan plan = plan_execution(graph);
  const std::vector<DType> types = int8_types(plan);
  Int8Places places;
  const ScaleGroups groups(plan, types);
  std::vector<bool> copied(plan.values.size(), false);
  for (const PlannedStep& step : plan.steps) {
    const Node& node = *step.node;
    check_op(node);
    if (is_layer(node.op)) {
      const auto norm = form.folded.find(node.name);
      places.layers[node.name] = norm == form.folded.end() ? "" : norm->second;
    }
    if (node.op == Op::kAffine) places.affine.push_back(node.name);
    if (keeps_scale(node.op)) copied[static_cast<size_t>(step.output)] = true;
  }
  std::map<int, std::vector<size_t>> members;  // places of a group
  std::vector<int> group_of;                   // by place
  for (size_t i = 0; i < plan.values.size(); ++i) {
    if (types[i] == DType::kF32 || copied[i]) continue;
    Int8Place place;
    place.value = plan.values[i].node->name;
    const auto norm = form.folded.find(place.value);
    place.node = norm == form.folded.end() ? place.value : norm->second;
    if (types[i] == DType::kU8) place.range = {0, 255};
    place.steps = groups.steps(static_cast<int>(i));
    group_of.push_back(groups.root(static_cast<int>(i)));
    members[group_of.back()].push_back(places.values.size());
    places.values.push_back(std::move(place));
  }
  for (size_t i = 0; i < places.values.size(); ++i) places.values[i].group = members[group_of[i]];
  return places;
}

}  // namespace onetap
