// The reference executor of int8 networks: plain loops over an Int8Plan. Slow, and the bytes that everything faster
// gives; layers that are kept in floats alone may differ by the order in which others add up.
#pragma once

#include "onetap/quant/int8_plan.h"
#include "onetap/tap/tap_net.h"

#include <cstddef>
#include <functional>
#include <vector>

namespace onetap {

class Int8Reference {
 public:
  // Of an int8 network, which must outlive it. kData if plan_int8() refuses it; kUsage if the values of an image would
  // take more than `memory_limit` bytes (0: those of ONETAP_MEMORY, or 1 GiB).
  explicit Int8Reference(const TapNet& net, int64_t memory_limit = 0);

  const Int8Plan& plan() const { return plan_; }

  using Bytes = std::vector<std::byte>;  // of a value: of its type, planes without gaps

  // `image` holds planes of floats as the graph's input node has them; returns the values of the output node. Several
  // threads may call it at once.
  std::vector<float> run(const float* image) const;

  // And calls visit(value, bytes) for the network's input and the output of every step, in their order.
  using Visit = std::function<void(int value, const Bytes& bytes)>;
  std::vector<float> run(const float* image, const Visit& visit) const;

  // The output of one step, given all values that it reads: as plan().values, others may be empty.
  Bytes run_step(size_t step, const std::vector<Bytes>& values) const;
  // What the bytes of a value stand for.
  std::vector<float> floats(int value, const Bytes& bytes) const;

 private:
  const TapNet& net_;
  Int8Plan plan_;
};

}  // namespace onetap
