// LibTorch to compare with: the network with every tap, as its own modules run it.
#include "onetap/base/fail.h"
#include "onetap/graph/op.h"
#include "onetap/nn/graph_module.h"
#include "onetap/tap/trainable_form.h"
#include "tools/onetap/bench.h"

#include <chrono>

namespace onetap::tool {
namespace {

class LibTorch : public Benchmark {
 public:
  // Its weights are fresh random ones: they cost the same.
  LibTorch(const TapNet& net, const BenchSetting& setting) : module_(trainable_form(net.graph)) {
    torch::set_num_threads(static_cast<int>(setting.threads));
    module_->eval();
    const Shape& shape = net.graph.input().shape;
    std::vector<int64_t> sizes = {setting.batch};
    sizes.insert(sizes.end(), shape.begin(), shape.end());
    images_ = torch::from_blob(const_cast<float*>(setting.images.data()), sizes, torch::kFloat32).clone();
  }

  void run(int64_t times, std::vector<double>& seconds) override {
    const c10::InferenceMode inference;
    for (int64_t i = 0; i < times; ++i) {
      const auto start = std::chrono::steady_clock::now();
      const torch::Tensor result = module_->forward(images_);
      seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
  }

 private:
  nn::GraphModule module_;
  torch::Tensor images_;
};

}  // namespace

std::unique_ptr<Benchmark> libtorch_benchmark(const TapNet& net, const BenchSetting& setting, std::string& version) {
  version = TORCH_VERSION;
  return std::make_unique<LibTorch>(net, setting);
}

}  // namespace onetap::tool
