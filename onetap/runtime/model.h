// A frozen network made ready to run on this machine. Several sessions may share one.
#pragma once

#include "onetap/kernels/conv_plan.h"
#include "onetap/kernels/kernel_set.h"
#include "onetap/kernels/plane_plan.h"
#include "onetap/plan/execution_plan.h"
#include "onetap/runtime/memory.h"
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
  // Bytes that a session on this model may take, with the model and one image; a network that needs more is refused
  // when it is loaded. 0: those of ONETAP_MEMORY, or 1 GiB.
  int64_t memory_limit = 0;
};

struct StepKind;
struct Int8Model;
struct Int8Layer;

class Model {
 public:
  explicit Model(const TapNet& net, const ModelOptions& options = {});
  ~Model();
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
  // Of floats, or of bytes where the network is one of int8; that may have layers in floats.
  const KernelSet& kernels() const { return *kernels_; }
  const KernelSet& float_kernels() const { return *float_kernels_; }
  bool is_int8() const { return int8_ != nullptr; }
  const Int8Model* int8() const { return int8_.get(); }

  // Multiply-adds that one image takes: kept taps alone, or every position where a layer runs dense.
  int64_t macs() const;
  // And with every position visited, pruned or not.
  int64_t dense_macs() const;
  int64_t weight_bytes() const;
  int64_t arena_bytes() const { return plan_.arena_bytes; }
  int64_t scratch_bytes() const { return scratch_bytes_; }  // of one thread
  // kUsage if the model, one image and a session of so many arenas and threads need more than the memory limit.
  void check_memory(int64_t arenas, int64_t threads) const;

  // One step of the plan with its weights.
  struct Layer {
    const StepKind* kind = nullptr;  // what runs it
    std::unique_ptr<ConvPlan> conv;
    std::unique_ptr<PlanePlan> planes;  // a shift, or a convolution that runs so (runs_by_planes)
    std::vector<float> weight, bias;    // linear, affine
    PoolShape pool;
    std::unique_ptr<Int8Layer> int8;  // null for floats

    Layer();
    Layer(Layer&&) noexcept;
    ~Layer();
  };
  const ExecutionPlan& plan() const { return plan_; }
  const Layer& layer(size_t step) const { return layers_[step]; }
  int64_t step_macs(size_t step) const;

 private:
  void build_layers(const TapNet& net, const ModelOptions& options);
  void gather_streams();

  Graph graph_;
  std::vector<std::string> classes_;
  PixelScale pixels_;
  const KernelSet* kernels_;
  const KernelSet* float_kernels_;
  ExecutionPlan plan_;
  std::unique_ptr<Int8Model> int8_;
  std::vector<Layer> layers_;
  AlignedArray<std::byte> streams_;  // of all convolutions
  int64_t scratch_bytes_ = 0;
  const Node* most_scratch_ = nullptr;  // the node that decides it
  MemoryNeed memory_need_;
  int64_t input_floats_ = 0, output_floats_ = 0;
};

}  // namespace onetap
