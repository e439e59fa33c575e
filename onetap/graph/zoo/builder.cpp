#include "onetap/graph/zoo/builder.h"

#include "onetap/graph/op.h"

#include <algorithm>

namespace onetap {

std::string Builder::simple(Op op, const std::string& name, std::vector<std::string> inputs) {
  Node node = default_node(op);
  node.name = name;
  node.inputs = std::move(inputs);
  return graph_.add(std::move(node));
}

std::string Builder::input(const Shape& image) {
  Node node = default_node(Op::kInput);
  node.name = "input";
  node.shape = image;
  return graph_.add(std::move(node));
}

namespace {

Node conv_node(const std::string& name, const std::string& from, int64_t out, int64_t kernel, int64_t stride) {
  Node node = default_node(Op::kConv);
  node.name = name;
  node.inputs = {from};
  node.out = out;
  node.kernel = {kernel, kernel};
  node.stride = {stride, stride};
  node.padding = {kernel / 2, kernel / 2};
  return node;
}

}  // namespace

std::string Builder::conv(const std::string& name, const std::string& from, int64_t out, int64_t kernel,
                          int64_t stride) {
  return graph_.add(conv_node(name, from, out, kernel, stride));
}

std::string Builder::biased_conv(const std::string& name, const std::string& from, int64_t out, int64_t kernel,
                                 int64_t stride) {
  Node node = conv_node(name, from, out, kernel, stride);
  node.bias = true;
  return graph_.add(std::move(node));
}

std::string Builder::depthwise(const std::string& name, const std::string& from, int64_t kernel, int64_t stride) {
  Node node = conv_node(name, from, channels(from), kernel, stride);
  node.groups = node.out;
  return graph_.add(std::move(node));
}

std::string Builder::bn(const std::string& name, const std::string& from) {
  return simple(Op::kBatchNorm, name, {from});
}

std::string Builder::relu(const std::string& name, const std::string& from) {
  return simple(Op::kRelu, name, {from});
}

std::string Builder::add(const std::string& name, const std::string& a, const std::string& b) {
  return simple(Op::kAdd, name, {a, b});
}

std::string Builder::concat(const std::string& name, const std::vector<std::string>& from) {
  return simple(Op::kConcat, name, from);
}

std::string Builder::subsample(const std::string& name, const std::string& from, int64_t out, int64_t stride) {
  Node node = default_node(Op::kSubsample);
  node.name = name;
  node.inputs = {from};
  node.out = out;
  node.stride = {stride, stride};
  return graph_.add(std::move(node));
}

std::string Builder::shift(const std::string& name, const std::string& from, int64_t kernel) {
  Node node = default_node(Op::kShift);
  node.name = name;
  node.inputs = {from};
  node.kernel = {kernel, kernel};
  return graph_.add(std::move(node));
}

std::string Builder::active_shift(const std::string& name, const std::string& from, int64_t stride) {
  Node node = default_node(Op::kActiveShift);
  node.name = name;
  node.inputs = {from};
  node.stride = {stride, stride};
  return graph_.add(std::move(node));
}

std::string Builder::pool(Op op, const std::string& name, const std::string& from, int64_t kernel, int64_t stride,
                          int64_t padding) {
  Node node = default_node(op);
  node.name = name;
  node.inputs = {from};
  node.kernel = {kernel, kernel};
  node.stride = {stride, stride};
  node.padding = {padding, padding};
  return graph_.add(std::move(node));
}

std::string Builder::avg_pool(const std::string& name, const std::string& from, int64_t kernel, int64_t stride,
                              int64_t padding) {
  return pool(Op::kAvgPool, name, from, kernel, stride, padding);
}

std::string Builder::max_pool(const std::string& name, const std::string& from, int64_t kernel, int64_t stride,
                              int64_t padding) {
  return pool(Op::kMaxPool, name, from, kernel, stride, padding);
}

std::string Builder::global_avg_pool(const std::string& name, const std::string& from) {
  return simple(Op::kGlobalAvgPool, name, {from});
}

std::string Builder::head(const std::string& from, int64_t classes) {
  Node fc = default_node(Op::kLinear);
  fc.name = "fc";
  fc.inputs = {global_avg_pool("avgpool", from)};
  fc.out = classes;
  return graph_.add(std::move(fc));
}

int64_t scaled_channels(int64_t channels, int64_t width, int64_t usual) {
  return std::max<int64_t>(1, (channels * width + usual / 2) / usual);
}

}  // namespace onetap
