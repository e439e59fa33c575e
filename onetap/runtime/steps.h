// What the steps of a plan do on the fast kernels: one row of a table per op and type of values. A Model looks its rows
// up when it is built, so that what cannot be run is refused before the first image.
#pragma once

#include "onetap/runtime/int8_model.h"
#include "onetap/runtime/model.h"
#include "onetap/runtime/thread_pool.h"
#include "onetap/runtime/tune_cache.h"

#include <vector>

namespace onetap {

// A value in memory.
template <typename T>
struct ValueView {
  const PlannedValue* value;
  T* data;

  T* plane(int64_t channel) const { return data + channel * value->plane_stride; }
};

// From what a layer is made.
struct LayerSource {
  const TapNet& net;
  const Node& node;
  const KernelSet& kernels;
  const ModelOptions& options;
  TuneCache& tuned;
  const ExecutionPlan& plan;
  size_t index;           // of the step
  const Int8Model* int8;  // null for floats
  const KernelSet& float_kernels;

  const PlannedStep& step() const { return plan.steps[index]; }
  // The same layer for the kernels of floats.
  LayerSource in_floats() const {
    return {net, node, float_kernels, options, tuned, plan, index, nullptr, float_kernels};
  }
};

// What a step works with while it runs.
struct StepContext {
  const Model& model;
  size_t index;  // of the step
  std::byte* arena;
  const std::byte* image;  // the network's input in floats
  float* outputs;          // the network's output; what steps of int8 networks write that give floats
  ThreadPool& pool;
  bool split;      // all threads work on this image; else `worker` alone does
  int64_t worker;  // the calling one of the pool
  std::byte* scratch;
  int64_t scratch_stride;  // bytes from one worker's to the next one's

  const PlannedStep& step() const { return model.plan().steps[index]; }
  const Model::Layer& layer() const { return model.layer(index); }
  template <typename T>
  ValueView<const T> input(int value) const {
    const ExecutionPlan& plan = model.plan();
    const std::byte* from = value == plan.input ? image : arena + plan.value(value).offset;
    return {&plan.value(value), reinterpret_cast<const T*>(from)};
  }
  template <typename T>
  ValueView<T> output() const {
    const PlannedValue& value = model.plan().value(step().output);
    return {&value, reinterpret_cast<T*>(arena + value.offset)};
  }
  template <typename T>
  T* scratch_of(int64_t member) const {
    return reinterpret_cast<T*>(scratch + member * scratch_stride);
  }
};

struct StepKind {
  Op op;
  DType dtype;  // of its values
  // The most that a layer of it keeps, asked before it is prepared, and the preparing; null: nothing.
  int64_t (*layer_bytes)(const LayerSource& source);
  void (*prepare)(const LayerSource& source, Model::Layer& layer);
  void (*run)(const StepContext& context);
};
const std::vector<StepKind>& step_table();

// kFailure with op, type and name if nothing runs such a node.
const StepKind& find_step(const Node& node, DType dtype);

}  // namespace onetap
