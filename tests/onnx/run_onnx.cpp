// Imports ONNX models and runs them, for tests/tools/import_test.py to compare with ONNX Runtime.
//   run_onnx < list      lines MODEL.onnx IMAGES.bin OUT.bin [CxHxW]
// IMAGES.bin holds float images; OUT.bin gets the values of each image by the fast kernels, then those by the reference
// executor of the network in its form for training, frozen. A model that is refused prints its error.
#include "onetap/base/file.h"
#include "onetap/base/text.h"
#include "onetap/onnx/import.h"
#include "onetap/runtime/reference.h"
#include "onetap/runtime/session.h"

#include <cstring>
#include <iostream>
#include <sstream>

using namespace onetap;

namespace {

void run(const std::string& model, const std::string& images, const std::string& out, const std::string& shape) {
  ImportOptions options;
  if (!shape.empty()) {
    for (const std::string_view side : split(shape, 'x')) options.shape.push_back(parse_int(side).value());
  }
  const ImportedNet imported = import_onnx(model, options);
  const TapNet net = frozen_net(imported), trained = frozen_net(trainable_net(imported));
  const std::string bytes = read_file(images);
  std::vector<float> x(bytes.size() / sizeof(float));
  std::memcpy(x.data(), bytes.data(), bytes.size());
  const int64_t each = element_count(net.graph.input().shape);
  const int64_t count = static_cast<int64_t>(x.size()) / each;
  const int64_t outputs = element_count(net.graph.node(net.graph.output()).shape);
  std::vector<float> y(static_cast<size_t>(count * outputs));
  constexpr int64_t kMemory = int64_t{4} << 30;
  ModelOptions model_options;
  model_options.memory_limit = kMemory;
  Session session(std::make_shared<const Model>(net, model_options));
  session.run(x.data(), count, y.data());
  for (int64_t i = 0; i < count; ++i) {
    const auto values = run_reference(trained, x.data() + i * each, kMemory);
    y.insert(y.end(), values.begin(), values.end());
  }
  write_file_atomic(out, std::string_view(reinterpret_cast<const char*>(y.data()), y.size() * sizeof(float)));
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string model, images, out, shape;
    words >> model >> images >> out >> shape;
    try {
      run(model, images, out, shape);
      std::cout << "ok\n";
    } catch (const Error& problem) {
      std::cout << problem.exit_code() << ' ' << problem.what() << '\n';
    }
  }
}
