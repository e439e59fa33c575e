// Shorthand for writing architectures: each call adds a node and returns its name.
#pragma once

#include "onetap/graph/graph.h"

#include <string>

namespace onetap {

class Builder {
 public:
  explicit Builder(std::string name) : graph_(std::move(name)) {}

  std::string input(const Shape& image);
  // A square convolution with the usual same padding (kernel / 2), no bias.
  std::string conv(const std::string& name, const std::string& from, int64_t out, int64_t kernel, int64_t stride = 1);
  std::string bn(const std::string& name, const std::string& from);
  std::string relu(const std::string& name, const std::string& from);
  std::string add(const std::string& name, const std::string& a, const std::string& b);
  std::string subsample(const std::string& name, const std::string& from, int64_t out, int64_t stride);
  // Global average pool and a linear layer, the end of every classifier here.
  std::string head(const std::string& from, int64_t classes);

  int64_t channels(const std::string& name) const { return graph_.node(name).shape[0]; }
  Graph take() { return std::move(graph_); }

 private:
  std::string simple(Op op, const std::string& name, std::vector<std::string> inputs);

  Graph graph_;
};

}  // namespace onetap
