#include "onetap/data/score.h"

#include "onetap/base/fail.h"
#include "onetap/data/read_view.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <future>
#include <limits>
#include <system_error>
#include <thread>

namespace onetap {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool all_finite(const float* values, int64_t count) {
  return std::all_of(values, values + count, [](float value) { return std::isfinite(value); });
}

}  // namespace

void Predictions::check_finite(const char* module, const std::string& of) const {
  if (!is_finite()) fail("[{}] expected finite outputs, got nan or inf ({})", module, of);
}

bool Predictions::is_finite() const {
  return all_finite(outputs.data(), static_cast<int64_t>(outputs.size()));
}

double Predictions::accuracy(int64_t best) const {
  int64_t right = 0;
  for (int64_t i = 0; i < images(); ++i) {
    const float* first = outputs.data() + i * classes;
    if (!all_finite(first, classes)) continue;  // nan is never larger: every label would be the first
    const int64_t label = labels[static_cast<size_t>(i)];
    int64_t before = 0;
    for (int64_t c = 0; c < classes; ++c) {
      if (first[c] > first[label] || (first[c] == first[label] && c < label)) ++before;
    }
    right += before < best ? 1 : 0;
  }
  return static_cast<double>(right) / static_cast<double>(std::max<int64_t>(1, images()));
}

std::vector<int64_t> Predictions::confusion() const {
  std::vector<int64_t> counts(static_cast<size_t>(classes * classes), 0);
  for (int64_t i = 0; i < images(); ++i) {
    const auto first = outputs.begin() + i * classes;
    const int64_t answer = std::max_element(first, first + classes) - first;
    ++counts[static_cast<size_t>(labels[static_cast<size_t>(i)] * classes + answer)];
  }
  return counts;
}

double Predictions::loss() const {
  double sum = 0;
  for (int64_t i = 0; i < images(); ++i) {
    const auto first = outputs.begin() + i * classes;
    const double most = *std::max_element(first, first + classes);
    double total = 0;
    for (auto at = first; at != first + classes; ++at) total += std::exp(*at - most);
    sum += std::log(total) + most - static_cast<double>(first[labels[static_cast<size_t>(i)]]);
  }
  return sum / static_cast<double>(std::max<int64_t>(1, images()));
}

// A value that is no number on one side is as different as can be.
OutputDifference compare_outputs(const Predictions& a, const Predictions& b) {
  if (a.outputs.size() != b.outputs.size()) {
    fail("[score] expected as many outputs to compare, got {} and {}", a.outputs.size(), b.outputs.size());
  }
  OutputDifference difference;
  for (size_t i = 0; i < a.outputs.size(); ++i) {
    const double gap = std::abs(static_cast<double>(a.outputs[i]) - b.outputs[i]);
    difference.largest = std::max(difference.largest, std::isnan(gap) ? kInfinity : gap);
    difference.scale = std::max(difference.scale, std::abs(static_cast<double>(a.outputs[i])));
  }
  return difference;
}

Predictions score_classifier(const Dataset& test, const ScoreOptions& options,
                             const std::function<std::vector<float>(const float*)>& classify) {
  const int64_t images = test.first(options.images);
  Predictions predictions;
  predictions.labels.resize(static_cast<size_t>(images));
  std::vector<std::vector<float>> outputs(static_cast<size_t>(images));

  std::atomic<int64_t> next{0}, done{0};
  const auto work = [&] {
    Image image;
    std::vector<float> view(static_cast<size_t>(options.view.floats()));
    try {
      for (int64_t i = next++; i < images; i = next++) {
        read_test_view(test, i, options.view, image, view.data());
        predictions.labels[static_cast<size_t>(i)] = test.label(i);
        outputs[static_cast<size_t>(i)] = classify(view.data());
        ++done;
      }
    } catch (...) {
      next = images;
      done = images;
      throw;
    }
  };
  std::vector<std::future<void>> threads;
  const int64_t wanted = std::max<int64_t>(1, options.threads);
  try {
    for (int64_t t = 0; t < wanted; ++t) threads.push_back(std::async(std::launch::async, work));
  } catch (const std::system_error& problem) {
    next = images;  // those that did start end after the present image
    const size_t started = threads.size();
    threads.clear();
    fail("[score] expected {} threads, got {}: {}", wanted, started, problem.code().message());
  }
  while (options.progress && done < images) {
    options.progress(done);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  for (auto& thread : threads) thread.get();

  predictions.classes = images > 0 ? static_cast<int64_t>(outputs.front().size()) : 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const int64_t label = predictions.labels[i];
    if (label < 0 || label >= predictions.classes) {
      fail_usage("[score] expected labels below {} (the network's outputs), got {} ({})", predictions.classes, label,
                 test.describe(static_cast<int64_t>(i)));
    }
    predictions.outputs.insert(predictions.outputs.end(), outputs[i].begin(), outputs[i].end());
  }
  return predictions;
}

}  // namespace onetap
