// A module in evaluation mode for a while.
#pragma once

#include "onetap/nn/graph_module.h"

namespace onetap::nn {

// Evaluation mode while it lives; training mode and soft attention afterwards.
class EvaluationScope {
 public:
  explicit EvaluationScope(GraphModule& module) : module_(module) { module_->eval(); }
  EvaluationScope(const EvaluationScope&) = delete;
  EvaluationScope& operator=(const EvaluationScope&) = delete;
  ~EvaluationScope() {
    module_->train();
    module_->set_mode(AttentionMode::kSoft);
  }

 private:
  GraphModule module_;
};

}  // namespace onetap::nn
