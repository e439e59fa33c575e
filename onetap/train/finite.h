// Whether a training still computes with numbers.
#pragma once

#include "onetap/base/error.h"
#include "onetap/nn/tensor_file.h"

#include <string>

namespace onetap {

// What was computed is not finite: a training that diverged, or a network that was kept of one.
class NotFinite : public Error {
 public:
  explicit NotFinite(const std::string& message) : Error(ErrorKind::kFailure, message) {}
};

// "nan" or "inf", whatever its sign.
std::string not_finite_text(double value);

// One pass over each tensor and one wait for the device.
bool all_finite(const nn::NamedTensors& tensors);

// The name of the first tensor with a value that is not finite; empty if there is none.
std::string first_not_finite(const nn::NamedTensors& tensors);

}  // namespace onetap
