// An ONNX model as it lies in its file, and the numbers of its tensors. Nothing of it is trusted.
#pragma once

#include "onetap/onnx/schema.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace onetap {

constexpr int64_t kMaxOnnxWeights = int64_t{1} << 30;  // of a network, and so of a tensor: 4 GiB
constexpr size_t kMaxOnnxExtents = 64;                 // of a constant

// Integers that a DequantizeLinear has made floats of: [outputs, ...], the zero being 0.
struct OnnxBytes {
  std::vector<int32_t> values;
  std::vector<float> scales;  // one, or one per output
  std::string problem;        // what keeps them from being the weights of an int8 layer; empty if nothing does
};

using OnnxNumbers = std::variant<std::vector<float>, std::vector<int64_t>>;

// A constant of the model: floats, or whole numbers such as shapes and axes. No dimensions: one number.
struct OnnxConstant {
  std::vector<int64_t> dims;
  int32_t type = onnx::Tensor::UNDEFINED;     // as in the file, where it is from there
  std::shared_ptr<const OnnxBytes> bytes;     // of floats that come from them
  std::shared_ptr<const OnnxNumbers> values;  // of all constants that differ from this one in their extents alone

  template <typename Number>
  void set(std::vector<Number> numbers) {
    values = std::make_shared<const OnnxNumbers>(std::move(numbers));
  }
  bool is_float() const { return values->index() == 0; }
  const std::vector<float>& floats() const { return std::get<0>(*values); }
  const std::vector<int64_t>& integers() const { return std::get<1>(*values); }
  size_t count() const { return is_float() ? floats().size() : integers().size(); }
};

class ModelSource {
 public:
  // kData if it is no ONNX model. Tensors in files of their own are looked for in the model's folder, and nowhere else.
  static ModelSource read(const std::filesystem::path& path);
  // Without such files.
  static ModelSource parse(const std::string& bytes, std::string_view label);

  const onnx::Model& model() const { return model_; }
  const std::string& label() const { return label_; }

  // kData if the tensor's numbers are not all there, or of a type that networks do not use. Its size is known to be
  // right before memory is taken.
  OnnxConstant constant(const onnx::Tensor& tensor) const;

 private:
  std::string external_bytes(const onnx::Tensor& tensor, uint64_t expected) const;

  onnx::Model model_;
  std::string label_;
  std::filesystem::path folder_;
};

}  // namespace onetap
