#include "onetap/runtime/layer_errors.h"

#include "onetap/kernels/int8_reference.h"
#include "onetap/runtime/reference.h"

#include <cmath>
#include <cstring>
#include <unordered_map>

namespace onetap {
namespace {

using Bytes = Int8Reference::Bytes;

Bytes to_bytes(const std::vector<float>& values, const Int8Value& as) {
  Bytes bytes(values.size() * dtype_bytes(as.dtype));
  if (as.dtype == DType::kF32) {
    std::memcpy(bytes.data(), values.data(), bytes.size());
  } else {
    reference::quantize(static_cast<int64_t>(values.size()), as.scale, values.data(), {bytes.data(), as.dtype});
  }
  return bytes;
}

double squared_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::pow(static_cast<double>(a[i]) - b[i], 2);
  return sum;
}

}  // namespace

LayerErrors::LayerErrors(const TapNet& floats, const TapNet& bytes, int64_t memory_limit)
    : floats_(floats),
      memory_limit_(memory_limit),
      reference_(bytes, memory_limit),
      sums_(reference_.plan().plan.steps.size()) {}

void LayerErrors::add(const float* image) {
  const Int8Plan& plan = reference_.plan();
  std::unordered_map<std::string, size_t> value_of;
  for (size_t i = 0; i < plan.values.size(); ++i) value_of[plan.plan.values[i].node->name] = i;
  std::vector<std::vector<float>> expected(plan.values.size());
  run_reference(
      floats_, image,
      [&](const Node& node, const std::vector<float>& values) {
        if (const auto found = value_of.find(node.name); found != value_of.end()) expected[found->second] = values;
      },
      memory_limit_);
  std::vector<Bytes> given;
  for (size_t i = 0; i < expected.size(); ++i) given.push_back(to_bytes(expected[i], plan.values[i]));
  std::vector<Bytes> got(plan.values.size());
  reference_.run(image, [&](int value, const Bytes& bytes) { got[static_cast<size_t>(value)] = bytes; });
  std::vector<Sums> sums(sums_.size());
  for (size_t i = 0; i < sums.size(); ++i) {
    const int output = plan.plan.steps[i].output;
    const std::vector<float>& floats = expected[static_cast<size_t>(output)];
    sums[i].alone = squared_difference(reference_.floats(output, reference_.run_step(i, given)), floats);
    sums[i].so_far = squared_difference(reference_.floats(output, got[static_cast<size_t>(output)]), floats);
    for (const float value : floats) sums[i].size += std::pow(value, 2);
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  for (size_t i = 0; i < sums.size(); ++i) {
    sums_[i].alone += sums[i].alone;
    sums_[i].so_far += sums[i].so_far;
    sums_[i].size += sums[i].size;
  }
}

std::vector<LayerError> LayerErrors::errors() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<LayerError> list;
  for (size_t i = 0; i < sums_.size(); ++i) {
    const double size = sums_[i].size > 0 ? sums_[i].size : 1;
    list.push_back(
        {reference_.plan().plan.steps[i].node, std::sqrt(sums_[i].alone / size), std::sqrt(sums_[i].so_far / size)});
  }
  return list;
}

}  // namespace onetap
