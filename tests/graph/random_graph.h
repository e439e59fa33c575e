// Networks drawn at random: for properties that must hold for every graph.
#pragma once

#include "onetap/base/random.h"
#include "onetap/graph/graph.h"
#include "onetap/graph/op.h"
#include "onetap/graph/sal.h"

#include <string>
#include <vector>

namespace onetap::testing {

inline Node input_node(const Shape& shape, const std::string& name = "x") {
  Node node = default_node(Op::kInput);
  node.name = name;
  node.shape = shape;
  return node;
}

inline Node conv_node(const std::string& name, const std::string& from, int64_t out, int64_t kernel) {
  Node node = default_node(Op::kConv);
  node.name = name;
  node.inputs = {from};
  node.out = out;
  node.kernel = {kernel, kernel};
  return node;
}

// A valid classifier of 10 classes with branches, every op, odd kernels, strides and methods.
inline Graph random_graph(uint64_t seed) {
  Random random(seed, Purpose::kTest);
  const auto pick = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random.below(static_cast<uint32_t>(high - low + 1)));
  };
  Graph graph("random" + std::to_string(seed));
  graph.add(input_node({3, pick(8, 20), pick(8, 20)}));
  std::vector<std::string> images = {"x"};
  // A value made before with as many rows and columns as `from`, and as many channels if `whole`: `from` too.
  const auto like = [&](const std::string& from, bool whole) {
    const Shape& shape = graph.node(from).shape;
    std::vector<std::string> alike;
    for (const std::string& image : images) {
      const Shape& other = graph.node(image).shape;
      if (other[1] == shape[1] && other[2] == shape[2] && (!whole || other[0] == shape[0])) alike.push_back(image);
    }
    return alike[random.below(static_cast<uint32_t>(alike.size()))];
  };
  const int64_t count = pick(3, 14);
  for (int64_t i = 0; i < count; ++i) {
    const std::string name = "block" + std::to_string(i / 3) + ".n" + std::to_string(i);
    const std::string from = images[random.below(static_cast<uint32_t>(images.size()))];
    const Shape shape = graph.node(from).shape;
    Node node = default_node(Op::kRelu);
    node.name = name;
    node.inputs = {from};
    switch (pick(0, 8)) {
      case 0:
        node.op = Op::kBatchNorm;
        break;
      case 1:
        break;
      case 2:
        node.op = Op::kAdd;
        node.inputs = {from, like(from, true)};
        if (random.coin()) {  // a residual block
          Node inner = conv_node(name + "-inner", from, shape[0], 3);
          inner.padding = {1, 1};
          node.inputs = {graph.add(std::move(inner)), node.inputs[1]};
        }
        break;
      case 3:
        node.op = Op::kConcat;
        node.inputs = {from, like(from, false)};
        if (random.coin()) {  // in int8 often of both types
          Node bent = default_node(Op::kRelu);
          bent.name = name + "-bent";
          bent.inputs = {from};
          node.inputs[1] = graph.add(std::move(bent));
        }
        break;
      case 4:
        node.op = random.coin() ? Op::kAvgPool : Op::kMaxPool;
        node.kernel = {2, 2};
        node.stride = {pick(1, 2), pick(1, 2)};
        if (shape[1] < 2 || shape[2] < 2) node.op = Op::kRelu, node.kernel = node.stride = {1, 1};
        break;
      case 5:
        node.op = Op::kSubsample;
        node.out = shape[0] + pick(0, 3);
        node.stride = {pick(1, 2), pick(1, 2)};
        break;
      default: {
        node = conv_node(name, from, pick(1, 9), 1);
        node.kernel = {pick(1, 7), pick(1, 7)};
        node.padding = {node.kernel.h / 2 + pick(0, 1), node.kernel.w / 2 + pick(0, 1)};
        node.stride = {pick(1, 2), pick(1, 2)};
        if (shape[1] > 10 && shape[2] > 10) node.dilation = {pick(1, 2), pick(1, 2)};
        if (random.coin() && shape[0] % 2 == 0) {
          node.groups = 2;
          node.out *= 2;
        }
        if (random.coin() && node.kernel.area() > 1) {
          const int64_t taps = pick(1, node.kernel.area());
          BlockShare share(pick(1, node.out));
          if (random.below(3) == 0) share.inputs = pick(1, shape[0] / node.groups);
          if (random.below(6) == 0) share.outputs = BlockShare::kAllOutputs;
          node.method = sal_method(taps, share, random.coin() ? TapInit::kCentre : TapInit::kUniform);
        } else {
          node.bias = random.coin();
        }
      }
    }
    const bool with_norm = node.op == Op::kConv && random.coin();
    images.push_back(graph.add(std::move(node)));
    if (with_norm) {
      Node norm = default_node(Op::kBatchNorm);
      norm.name = name + "-norm";
      norm.inputs = {images.back()};
      // The convolution's own value stays readable in some of them: there the norm cannot be folded.
      if (random.coin()) images.pop_back();
      images.push_back(graph.add(std::move(norm)));
    }
  }
  Node pool = default_node(random.coin() ? Op::kGlobalAvgPool : Op::kFlatten);
  pool.name = "pool";
  pool.inputs = {images.back()};
  Node fc = default_node(Op::kLinear);
  fc.name = "fc";
  fc.inputs = {graph.add(std::move(pool))};
  fc.out = 10;
  fc.bias = random.coin();
  graph.add(std::move(fc));
  return graph;
}

}  // namespace onetap::testing
