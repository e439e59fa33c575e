// A frozen network made ready to run on this machine. Several sessions may share one.
#pragma once

#include "onetap/kernels/conv_plan.h"
#include "onetap/kernels/kernel_set.h"
#include "onetap/runtime/plan.h"
#include "onetap/tap/tap_net.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace onetap {

struct ModelOptions {
  std::string target;  // kernels to use, as kernel_sets() names them; empty: ONETAP_TARGET, or the best
  bool tune = false;   // time alternatives for every layer; results are remembered in the user's cache folder
  bool dense = false;  // visit every kernel position, zeros included: what the network would cost unpruned
};

class Model {
 public:
  explicit Model(const TapNet& net, const ModelOptions& options = {});
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  static std::shared_ptr<const Model> open(const std::filesystem::path& path, const ModelOptions& options = {});

  const Graph& graph() const { return graph_; }
  const Shape& input_shape() const { return graph_.input().shape; }
  const Shape& output_shape() const { return graph_.node(graph_.output()).shape; }
  int64_t input_floats() const { return input_floats_; }
  int64_t output_floats() const { return output_floats_; }
  const std::vector<std::string>& classes() const { return classes_; }
  const PixelScale& pixels() const { return pixels_; }
  const KernelSet& kernels() const { return *kernels_; }

  // Multiply-adds that one image takes: kept taps alone, or every position where a layer runs dense.
  int64_t macs() const;
  // And with every position visited, pruned or not.
  int64_t dense_macs() const;
  int64_t weight_bytes() const;
  int64_t arena_bytes() const { return plan_.arena_floats * 4; }
  int64_t scratch_bytes() const { return scratch_floats_ * 4; }

  // One step of the plan with its weights.
  struct Layer {
    std::unique_ptr<ConvPlan> conv;
    std::vector<float> weight, bias;  // linear, affine
    PoolShape pool;
  };
  const ExecutionPlan& plan() const { return plan_; }
  const Layer& layer(size_t step) const { return layers_[step]; }
  int64_t scratch_floats() const { return scratch_floats_; }
  int64_t step_macs(size_t step) const;

 private:
  Graph graph_;
  std::vector<std::string> classes_;
  PixelScale pixels_;
  const KernelSet* kernels_;
  ExecutionPlan plan_;
  std::vector<Layer> layers_;
  AlignedArray<std::byte> streams_;  // of all convolutions
  int64_t scratch_floats_ = 0;
  int64_t input_floats_ = 0, output_floats_ = 0;
};

}  // namespace onetap
