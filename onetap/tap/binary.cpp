#include "onetap/tap/binary.h"

#include "onetap/base/fail.h"
#include "onetap/graph/method_table.h"
#include "onetap/tap/codes.h"

#include <cmath>

namespace onetap {
namespace {

size_t weights_of_output(const Tensor& weight) {
  return weight.count() / static_cast<size_t>(weight.shape()[0]);
}

}  // namespace

bool is_binary(const Node& node) {
  return &node.method.info() == find_frozen_method("binary");
}

void check_binary(const Tensor& weight, std::string_view layer) {
  if (weight.dtype() != DType::kF32) {
    fail_data("[tap] expected binary weights of type F32, got {} ({})", dtype_name(weight.dtype()), layer);
  }
  const auto* values = weight.data<float>();
  const size_t of_output = weights_of_output(weight);
  for (size_t i = 0; i < weight.count(); ++i) {
    const float scale = std::abs(values[i / of_output * of_output]);
    if (std::abs(values[i]) != scale) {
      fail_data("[tap] expected binary weights of one magnitude in output {}, got {} and {} ({})", i / of_output, scale,
                std::abs(values[i]), layer);
    }
  }
}

BinaryWeights pack_binary(const Tensor& weight) {
  const auto* values = weight.data<float>();
  const size_t of_output = weights_of_output(weight);
  BinaryWeights packed;
  std::vector<uint16_t> bits(weight.count());
  for (size_t i = 0; i < weight.count(); ++i) {
    bits[i] = std::signbit(values[i]) ? 1 : 0;
    if (i % of_output == 0) packed.scales.push_back(std::abs(values[i]));
  }
  packed.signs = pack_codes(bits, 1);
  return packed;
}

Tensor unpack_binary(std::string_view signs, const Tensor& scales, const std::vector<int64_t>& shape,
                     std::string_view label) {
  Tensor weight(DType::kF32, shape);
  const auto bit = [&](size_t at) { return (static_cast<uint8_t>(signs[at / 8]) >> (at % 8)) & 1u; };
  for (size_t at = weight.count(); at < signs.size() * 8; ++at) {
    if (bit(at) != 0) fail_data("[tap] expected zero bits after the last sign ({})", label);
  }
  const size_t of_output = weights_of_output(weight);
  const auto* scale = scales.data<float>();
  auto* values = weight.data<float>();
  for (size_t i = 0; i < weight.count(); ++i) {
    const float magnitude = scale[i / of_output];
    if (!(magnitude >= 0)) fail_data("[tap] expected scales of at least 0, got {} ({})", magnitude, label);
    values[i] = bit(i) != 0 ? -magnitude : magnitude;
  }
  return weight;
}

}  // namespace onetap
