// Work on a second stream of a GPU, at the same time as what runs on the current one; on a CPU it is done at once.
#pragma once

#include "onetap/nn/torch.h"

#include <functional>
#include <memory>
#include <vector>

namespace onetap::fused {

class SideStream {
 public:
  SideStream();
  ~SideStream();

  // `work` begins after all that is under way now. `inputs` are what it reads: they are kept until it is done.
  void run(std::vector<torch::Tensor> inputs, const std::function<void()>& work);
  // What follows comes after all of it.
  void join();

 private:
  struct Stream;  // of a GPU; made when first needed
  std::unique_ptr<Stream> stream_;
};

}  // namespace onetap::fused
