#include "onetap/runtime/calibrate.h"

#include "onetap/quant/int8_graph.h"
#include "onetap/runtime/reference.h"

namespace onetap {

Calibrator::Calibrator(const TapNet& net, int64_t memory_limit)
    : net_(net), memory_limit_(memory_limit), graph_(int8_form(net).graph), plan_(plan_execution(graph_)) {
  check_reference(net, memory_limit);
  counted_.values.resize(plan_.values.size());
  for (size_t i = 0; i < plan_.values.size(); ++i) value_of_[plan_.values[i].node->name] = i;
}

std::vector<float> Calibrator::run(const float* image) {
  std::vector<ValueHistogram> seen(plan_.values.size());
  auto outputs = run_reference(
      net_, image,
      [&](const Node& node, const std::vector<float>& values) {
        const auto found = value_of_.find(node.name);
        if (found == value_of_.end()) return;  // fused into a step
        seen[found->second].add(values.data(), static_cast<int64_t>(values.size()), node.name.c_str());
      },
      memory_limit_);
  const std::lock_guard<std::mutex> lock(mutex_);
  for (size_t i = 0; i < seen.size(); ++i) counted_.values[i].add(seen[i]);
  ++counted_.images;
  return outputs;
}

Calibration Calibrator::calibration() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return counted_;
}

}  // namespace onetap
