#include "onetap/graph/zoo/builder.h"

#include "onetap/graph/op.h"

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

std::string Builder::conv(const std::string& name, const std::string& from, int64_t out, int64_t kernel,
                          int64_t stride) {
  Node node = default_node(Op::kConv);
  node.name = name;
  node.inputs = {from};
  node.out = out;
  node.kernel = {kernel, kernel};
  node.stride = {stride, stride};
  node.padding = {kernel / 2, kernel / 2};
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

std::string Builder::subsample(const std::string& name, const std::string& from, int64_t out, int64_t stride) {
  Node node = default_node(Op::kSubsample);
  node.name = name;
  node.inputs = {from};
  node.out = out;
  node.stride = {stride, stride};
  return graph_.add(std::move(node));
}

std::string Builder::head(const std::string& from, int64_t classes) {
  Node fc = default_node(Op::kLinear);
  fc.name = "fc";
  fc.inputs = {simple(Op::kGlobalAvgPool, "avgpool", {from})};
  fc.out = classes;
  return graph_.add(std::move(fc));
}

}  // namespace onetap
