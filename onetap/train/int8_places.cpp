#include "onetap/train/int8_places.h"

#include "onetap/base/fail.h"
#include "onetap/graph/op.h"
#include "onetap/plan/execution_plan.h"
#include "onetap/quant/int8_plan.h"
#include "onetap/tap/fold.h"

#include <algorithm>
#include <numeric>

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

// Values that have their scale in common: the least index of each one's group.
class Groups {
 public:
  explicit Groups(size_t count) : of_(count) { std::iota(of_.begin(), of_.end(), size_t{0}); }

  size_t of(int value) const { return of_[static_cast<size_t>(value)]; }

  void join(int a, int b) {
    const size_t from = std::max(of(a), of(b)), to = std::min(of(a), of(b));
    std::replace(of_.begin(), of_.end(), from, to);
  }

 private:
  std::vector<size_t> of_;
};

}  // namespace

Int8Places int8_places(const Graph& trained) {
  const FrozenForm form = frozen_form(trained);
  const ExecutionPlan plan = plan_execution(form.graph);
  const std::vector<DType> types = int8_types(plan);
  Int8Places places;
  Groups groups(plan.values.size());
  std::vector<bool> copied(plan.values.size(), false);
  for (const PlannedStep& step : plan.steps) {
    const Node& node = *step.node;
    check_op(node);
    if (is_layer(node.op)) {
      const auto norm = form.folded.find(node.name);
      places.layers[node.name] = norm == form.folded.end() ? "" : norm->second;
    }
    if (node.op == Op::kAffine) places.affine.push_back(node.name);
    if (!keeps_scale(node.op)) continue;
    copied[static_cast<size_t>(step.output)] = true;
    for (const int input : step.inputs) groups.join(input, step.output);
  }
  std::map<size_t, std::vector<size_t>> members;  // places of a group
  std::vector<size_t> group_of;                   // by place
  std::map<size_t, bool> is_signed;               // by group
  for (size_t i = 0; i < plan.values.size(); ++i) {
    const size_t group = groups.of(static_cast<int>(i));
    if (types[i] == DType::kI8) is_signed[group] = true;
    if (types[i] == DType::kF32 || copied[i]) continue;
    Int8Place place;
    place.value = plan.values[i].node->name;
    const auto norm = form.folded.find(place.value);
    place.node = norm == form.folded.end() ? place.value : norm->second;
    if (types[i] == DType::kU8) place.range = {0, 255};
    members[group].push_back(places.values.size());
    group_of.push_back(group);
    places.values.push_back(std::move(place));
  }
  for (size_t i = 0; i < places.values.size(); ++i) {
    places.values[i].group = members[group_of[i]];
    places.values[i].steps = is_signed[group_of[i]] ? 127 : 255;
  }
  return places;
}

}  // namespace onetap
