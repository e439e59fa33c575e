// The networks of a frontier: found among runs and files, opened, tested and timed.
#pragma once

#include "onetap/journal/run_files.h"
#include "onetap/tap/tap_net.h"
#include "tools/onetap/calibration_images.h"
#include "tools/onetap/opened_data.h"
#include "tools/onetap/time_in_turns.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace onetap::tool {

struct FrontierOptions {
  std::vector<std::string> arguments;  // runs, .tap files and directories of either
  std::vector<std::string> data;       // specs
  std::string out = "frontier";        // directory
  std::string page;                    // the page, where it is not index.html of the directory
  std::string csv;                     // another copy of the points, as CSV
  std::string program;                 // that freezes, instead of this one
  int64_t threads = 1;                 // of the timing
  double seconds = 1;                  // of timing, for each
  int64_t memory_limit = 0;
  std::vector<std::string> against;
  int64_t images = kCalibrationImages;  // that onnxruntime calibrates an int8 network with
  bool no_eval = false;                 // accuracies are those that the runs recorded
  bool mean_seeds = false;              // runs alike but for their seed are one point
  bool json = false;

  std::filesystem::path page_place() const {
    return page.empty() ? std::filesystem::path(out) / "index.html" : std::filesystem::path(page);
  }
};

// One point: a network, run by somebody.
struct FrontierPoint {
  std::string name;     // unique
  std::string network;  // architecture and width
  std::string kind;     // method and sharing, as `count` and `eval` print them
  std::string type;     // of its weights: "f32", "f16", "int8"
  std::string run_by = "onetap";
  std::string calibrated_on;  // "512 images of CIFAR-10": of an int8 network that another runtime quantized
  std::string data;           // what it was tested on: points of one data set are compared
  std::string setting;  // the recipe but for its seed, and the name of a file beside model.tap; of other files: nothing
  std::filesystem::path file;

  double accuracy = 0;                // in percent
  std::optional<double> accuracy_sd;  // over seeds, where there are several
  size_t seeds = 1;
  // "file": tested here; "quantize": tested by that verb, which made the file; "run": the last hard accuracy on record.
  std::string accuracy_of;

  Quantiles milliseconds;
  // Nothing of a network that another runtime runs: that keeps it in a form of its own.
  std::optional<double> bytes;    // of the file
  std::optional<double> macs;     // for one image: kept taps alone
  std::optional<double> weights;  // that are kept
  std::optional<double> memory;   // bytes that the runtime takes: packed weights, activations, scratch

  bool is_dense() const;
  bool is_int8() const;
  // Points of one name have one front: "dense", "dense int8 by ONNX Runtime 1.31.1".
  std::string kind_name() const;
};

// Run directories and .tap files among the arguments and, where an argument is another directory (of a sweep, of a
// reproduction, of models), below it. A run's int8 file comes behind the run. Sorted within an argument; what comes
// twice is there once. What cannot be found is a warning if there is something else, and an error (kData) if not.
std::vector<std::filesystem::path> find_networks(const FrontierOptions& options);

// Opened, tested and timed, all in turns within one run. What cannot be used is a warning. kData if nothing is left. A
// signal that came while a run was being frozen ends it all: `interrupted_by` is its number.
std::vector<FrontierPoint> measure_points(const FrontierOptions& options, int& interrupted_by);

// One point for all runs that differ in their seed alone: mean accuracy and its deviation, mean costs.
std::vector<FrontierPoint> mean_over_seeds(const std::vector<FrontierPoint>& points);

}  // namespace onetap::tool
