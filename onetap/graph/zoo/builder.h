// Shorthand for writing architectures: each call adds a node and returns its name.
#pragma once

#include "onetap/graph/graph.h"

#include <string>
#include <vector>

namespace onetap {

class Builder {
 public:
  explicit Builder(std::string name) : graph_(std::move(name)) {}

  std::string input(const Shape& image);
  // A square convolution with the usual same padding (kernel / 2), no bias.
  std::string conv(const std::string& name, const std::string& from, int64_t out, int64_t kernel, int64_t stride = 1);
  std::string biased_conv(const std::string& name, const std::string& from, int64_t out, int64_t kernel,
                          int64_t stride = 1);
  // One filter for every channel.
  std::string depthwise(const std::string& name, const std::string& from, int64_t kernel, int64_t stride = 1);
  std::string bn(const std::string& name, const std::string& from);
  std::string relu(const std::string& name, const std::string& from);
  std::string add(const std::string& name, const std::string& a, const std::string& b);
  std::string concat(const std::string& name, const std::vector<std::string>& from);
  std::string subsample(const std::string& name, const std::string& from, int64_t out, int64_t stride);
  std::string shift(const std::string& name, const std::string& from, int64_t kernel);
  std::string active_shift(const std::string& name, const std::string& from, int64_t stride = 1);
  std::string avg_pool(const std::string& name, const std::string& from, int64_t kernel, int64_t stride,
                       int64_t padding = 0);
  std::string max_pool(const std::string& name, const std::string& from, int64_t kernel, int64_t stride,
                       int64_t padding = 0);
  std::string global_avg_pool(const std::string& name, const std::string& from);
  // Global average pool and a linear layer, the end of most classifiers here.
  std::string head(const std::string& from, int64_t classes);

  int64_t channels(const std::string& name) const { return graph_.node(name).shape[0]; }
  Graph take() { return std::move(graph_); }

 private:
  std::string simple(Op op, const std::string& name, std::vector<std::string> inputs);
  std::string pool(Op op, const std::string& name, const std::string& from, int64_t kernel, int64_t stride,
                   int64_t padding);

  Graph graph_;
};

// `channels` of an architecture whose first layer has `usual`, where it has `width`: rounded, and at least 1.
int64_t scaled_channels(int64_t channels, int64_t width, int64_t usual);

}  // namespace onetap
