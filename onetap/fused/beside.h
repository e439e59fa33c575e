// Work on a second stream of a GPU, beside what goes on there; on a CPU it is simply done.
#pragma once

#include "onetap/nn/torch.h"

#include <functional>
#include <memory>
#include <vector>

namespace onetap::fused {

class Beside {
 public:
  Beside();
  ~Beside();

  // `work` begins after all that is under way now. `inputs` are what it reads: they are kept until it is done.
  void run(std::vector<torch::Tensor> inputs, const std::function<void()>& work);
  // What follows comes after all of it.
  void join();

 private:
  struct Stream;  // of a GPU; made when first needed
  std::unique_ptr<Stream> stream_;
};

}  // namespace onetap::fused
