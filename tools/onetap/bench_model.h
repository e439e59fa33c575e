// Our own runtime as a benchmark: what `bench` and `frontier` take the time of.
#pragma once

#include "tools/onetap/bench.h"

namespace onetap::tool {

// Random images of a network's input, the same for everyone.
BenchSetting random_images(const Graph& graph, int64_t threads, int64_t batch);

// A model on a batch. Refers to the setting as long as it lives.
class ModelBenchmark : public Benchmark {
 public:
  ModelBenchmark(std::shared_ptr<const Model> model, const BenchSetting& setting, int64_t threads);

  void run(int64_t times, std::vector<double>& seconds) override;

  const Model& model() const { return *model_; }
  Session& session() { return session_; }

 private:
  std::shared_ptr<const Model> model_;
  Session session_;
  const BenchSetting& setting_;
  std::vector<float> outputs_;
};

}  // namespace onetap::tool
