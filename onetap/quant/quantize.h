// A frozen network of floats in, one of bytes out. docs/quantization.md has the definition.
#pragma once

#include "onetap/quant/int8_plan.h"
#include "onetap/quant/value_histogram.h"
#include "onetap/tap/tap_net.h"

#include <set>
#include <string>
#include <vector>

namespace onetap {

// What the values of a network's plan were on some images. runtime/calibrate.h fills it.
struct Calibration {
  std::vector<ValueHistogram> values;  // as the values of plan_execution(int8_form(net).graph)
  int64_t images = 0;
  bool recorded = false;  // not of images: recorded_calibration()
};

// The ranges that training for int8 has left in the network (TapNet::value_ranges); quantize_net() takes them as they
// are, whatever its method. kData if there are none, or not of every value.
Calibration recorded_calibration(const TapNet& net);

struct QuantizeOptions {
  CalibrationMethod method = CalibrationMethod::kMinMax;
  double percentile = 99.99;   // of kPercentile
  std::set<std::string> kept;  // layers that stay as they are
};

// kData if the network is int8 already, has an op without an int8 form or numbers that are not finite; kUsage if a
// layer to keep is none that has weights, or without images.
TapNet quantize_net(const TapNet& net, const Calibration& calibration, const QuantizeOptions& options = {});

// Before there are images: what quantize_net() would refuse whatever they are.
void check_quantizable(const TapNet& net, const QuantizeOptions& options = {});

}  // namespace onetap
