#include "onetap/quant/quantize_layer.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace onetap {
namespace {

constexpr double kMostWeight = 127, kMostBias = 32767;
constexpr int kMaxBiasShift = 15, kMaxStep = 255;
// Where sums end: 8 times below 32 bits, so that there is room for a residual and for finer units.
constexpr double kRoom = 268435456.0;

// What decides the scale of one output.
struct OutputNeed {
  double least = 0;  // scale at which weights and sums fit
  double bias = 0;   // magnitude
  double kept = 0;   // weights that are not 0

  // And at which the bias fits too, stored in steps of 2^shift.
  double scale(int shift, const LayerSurroundings& around) const {
    return std::max(least, bias / (static_cast<double>(around.input.scale) * kMostBias * std::ldexp(1.0, shift)));
  }
};

OutputNeed need_of(const float* weight, int64_t count, float bias, const LayerSurroundings& around) {
  OutputNeed need;
  double largest = 0, magnitudes = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double magnitude = std::fabs(static_cast<double>(weight[i]));
    largest = std::max(largest, magnitude);
    magnitudes += magnitude;
    need.kept += magnitude > 0 ? 1 : 0;
  }
  need.bias = std::fabs(static_cast<double>(bias));
  const double reach = magnitudes * around.input.most + need.bias / around.input.scale;
  need.least = std::max({largest / kMostWeight, reach / kRoom,
                         around.residual.largest() / (static_cast<double>(around.input.scale) * kRoom)});
  return need;
}

// Squared error, in units of the input's scale squared over 12, that rounding gives where inputs are a quarter of their
// largest: of the bias, which has steps of 2^shift, and of the weights.
double error_of(const std::vector<OutputNeed>& needs, int shift, const LayerSurroundings& around) {
  double error = 0;
  for (const OutputNeed& need : needs) {
    const double of_bias = need.bias > 0 ? std::ldexp(1.0, 2 * shift) : 0;
    error += std::pow(need.scale(shift, around), 2) * (of_bias + need.kept * std::pow(around.input.most / 4.0, 2));
  }
  return error;
}

// The least float that is not below.
float float_above(double value) {
  const auto nearest = static_cast<float>(value);
  return nearest < value ? std::nextafter(nearest, std::numeric_limits<float>::infinity()) : nearest;
}

// The finest scale of the grid that is not below `least`, as a number of steps.
uint8_t step_of(const WeightScale& scale, double least) {
  if (!(least > 0)) return 0;
  WeightScale one = scale;
  int step = std::min(kMaxStep, static_cast<int>(WeightScale::kStepsPerOctave * std::log2(scale.base / least)) + 1);
  const auto is_below = [&] {
    one.steps = {static_cast<uint8_t>(step)};
    return one.of(0) < least;
  };
  while (step > 0 && is_below()) --step;
  return static_cast<uint8_t>(std::max(step, 0));
}

}  // namespace

WeightScale choose_weight_scale(const Tensor& weight, const Tensor& bias, const LayerSurroundings& around) {
  const int64_t outputs = weight.shape()[0], per_output = static_cast<int64_t>(weight.count()) / outputs;
  const auto* weights = weight.data<float>();
  const auto* biases = bias.data<float>();
  std::vector<OutputNeed> needs;
  for (int64_t d = 0; d < outputs; ++d) {
    needs.push_back(need_of(weights + d * per_output, per_output, biases != nullptr ? biases[d] : 0.0f, around));
  }
  WeightScale scale;
  double least_error = std::numeric_limits<double>::infinity();
  for (int shift = 0; shift <= kMaxBiasShift; ++shift) {
    const double error = error_of(needs, shift, around);
    if (error >= least_error) continue;
    least_error = error;
    scale.bias_shift = shift;
  }
  double largest = 0;
  for (const OutputNeed& need : needs) largest = std::max(largest, need.scale(scale.bias_shift, around));
  scale.base = largest > 0 ? std::max(float_above(largest), std::numeric_limits<float>::min()) : 1.0f;
  for (const OutputNeed& need : needs) scale.steps.push_back(step_of(scale, need.scale(scale.bias_shift, around)));
  return scale;
}

LayerTensors quantize_layer(const LayerTensors& layer, const LayerSurroundings& around) {
  LayerTensors made;
  made.scale = choose_weight_scale(layer.weight, layer.bias, around);
  made.positions = layer.positions;
  made.weight = Tensor(DType::kI8, layer.weight.shape());
  const auto outputs = static_cast<int64_t>(made.scale.steps.size());
  const int64_t per_output = static_cast<int64_t>(layer.weight.count()) / outputs;
  const auto* from = layer.weight.data<float>();
  auto* to = made.weight.data<int8_t>();
  const auto whole = [](double value, double most) { return std::nearbyint(std::clamp(value, -most, most)); };
  for (int64_t i = 0; i < outputs * per_output; ++i) {
    to[i] = static_cast<int8_t>(whole(from[i] / made.scale.of(i / per_output), kMostWeight));
  }
  if (layer.bias.empty()) return made;
  made.bias = Tensor(DType::kI16, layer.bias.shape());
  for (int64_t d = 0; d < outputs; ++d) {
    const double unit = std::ldexp(around.input.scale * made.scale.of(d), made.scale.bias_shift);
    made.bias.data<int16_t>()[d] = static_cast<int16_t>(whole(layer.bias.data<float>()[d] / unit, kMostBias));
  }
  return made;
}

}  // namespace onetap
