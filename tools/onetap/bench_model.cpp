#include "tools/onetap/bench_model.h"

#include "onetap/base/random.h"

#include <chrono>

namespace onetap::tool {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

BenchSetting random_images(const Graph& graph, int64_t threads, int64_t batch) {
  BenchSetting setting;
  setting.threads = threads;
  setting.batch = batch;
  Random random(7, Purpose::kRandomNet);
  setting.images.resize(static_cast<size_t>(batch * element_count(graph.input().shape)));
  for (float& pixel : setting.images) pixel = random.uniform(-2, 2);
  return setting;
}

ModelBenchmark::ModelBenchmark(std::shared_ptr<const Model> model, const BenchSetting& setting, int64_t threads)
    : model_(std::move(model)),
      session_(model_, {threads, setting.batch}),
      setting_(setting),
      outputs_(static_cast<size_t>(setting.batch * model_->output_floats())) {}

void ModelBenchmark::run(int64_t times, std::vector<double>& seconds) {
  for (int64_t i = 0; i < times; ++i) {
    const auto start = Clock::now();
    session_.run(setting_.images.data(), setting_.batch, outputs_.data());
    seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
}

}  // namespace onetap::tool
