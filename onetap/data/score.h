// Accuracy and loss of a classifier on a test set, whatever runs it.
#pragma once

#include "onetap/data/dataset.h"
#include "onetap/data/transform.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace onetap {

// A classifier's outputs for the first images of a test set.
struct Predictions {
  int64_t classes = 0;
  std::vector<int64_t> labels;  // one per image
  std::vector<float> outputs;   // [images, classes], before softmax

  // kFailure, "[module] ... (of)", where an output is nan or infinite: such outputs name no class.
  void check_finite(const char* module, const std::string& of) const;
  bool is_finite() const;
  int64_t images() const { return static_cast<int64_t>(labels.size()); }
  double accuracy() const { return accuracy(1); }  // share of images whose largest output is the label's
  // Is among the `best` largest; of equal ones the first is larger. With an output that is not finite it is not.
  double accuracy(int64_t best) const;
  // [label, answer]: how many images of a class have their largest output for which.
  std::vector<int64_t> confusion() const;
  double loss() const;  // mean cross-entropy
};

// Largest |a - b| over all outputs, and largest |a|: their ratio tells rounding from damage.
struct OutputDifference {
  double largest = 0;
  double scale = 0;

  double relative() const { return scale > 0 ? largest / scale : largest; }
};
OutputDifference compare_outputs(const Predictions& a, const Predictions& b);

struct ScoreOptions {
  View view;
  int64_t images = 0;  // the first so many; 0 means all
  int64_t threads = 1;
  // Called every 50 ms, from the calling thread, with the images done.
  std::function<void(int64_t)> progress;
};

// `classify` gets one image as the view has it and returns its outputs; it is called from several threads at once.
// What it throws is thrown here. kFailure if the system cannot start a thread.
Predictions score_classifier(const Dataset& test, const ScoreOptions& options,
                             const std::function<std::vector<float>(const float*)>& classify);

}  // namespace onetap
