// ONNX Runtime to compare with: Python's, in a process of its own, on a model written to a folder that goes with it.
#include "onetap/base/fail.h"
#include "onetap/base/file.h"
#include "onetap/base/text.h"
#include "onetap/quant/float_net.h"
#include "onetap/runtime/reference.h"
#include "tools/onetap/bench.h"
#include "tools/onetap/child.h"
#include "tools/onetap/onnx.h"
#include "tools/onetap/scratch_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace onetap::bench_files {
std::string_view bench_onnxruntime_py();
}

namespace onetap::tool {
namespace {

std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  for (const std::string_view word : split(line, ' ')) {
    if (!word.empty()) words.emplace_back(word);
  }
  return words;
}

class OnnxRuntime : public Benchmark {
 public:
  OnnxRuntime(const TapNet& net, const BenchSetting& setting, const PeerImages& images, std::string& version) {
    write_file_atomic(folder_.file("bench.py"), bench_files::bench_onnxruntime_py());
    const TapNet floats = net.is_int8() ? float_net(net) : TapNet();
    write_file_atomic(folder_.file("model.onnx"), onnx_bytes(net.is_int8() ? floats : net));
    write_file_atomic(folder_.file("input.bin"), bytes_of(setting.images));
    const char* python = std::getenv("ONETAP_PYTHON");
    std::vector<std::string> command = {python != nullptr && *python != '\0' ? python : "python3",
                                        folder_.file("bench.py"), folder_.file("model.onnx"), folder_.file("input.bin"),
                                        std::to_string(setting.threads)};
    if (net.is_int8()) {
      images.write(folder_.file("images.bin"));
      command.insert(command.end(), {"int8", folder_.file("images.bin")});
    }
    child_ = std::make_unique<Child>(command);
    const std::vector<std::string> answer = words_of(child_->read_line());
    if (answer.size() < 2 || answer[0] != "ready") {
      throw MissingPeer(fmt::format(
          "[bench] expected a Python with {} (pip install {}; ONETAP_PYTHON names another interpreter), got none",
          net.is_int8() ? "onnxruntime and onnx" : "onnxruntime", net.is_int8() ? "onnxruntime onnx" : "onnxruntime"));
    }
    version = answer[1];
    // Two ways of rounding to bytes agree less than two orders of adding up floats do.
    const std::vector<std::string> outputs(answer.begin() + 2, answer.end());
    net.is_int8() ? check_outputs(floats, images.first(), outputs, 0.5)
                  : check_outputs(net, setting.images, outputs, 1e-3);
  }

  void run(int64_t times, std::vector<double>& seconds) override {
    child_->write_line(std::to_string(times));
    const std::vector<std::string> answer = words_of(child_->read_line());
    if (static_cast<int64_t>(answer.size()) != times) fail("[bench] onnxruntime ended before it had finished");
    for (const std::string& nanoseconds : answer) seconds.push_back(parse_double(nanoseconds).value_or(0) * 1e-9);
  }

 private:
  static std::string_view bytes_of(const std::vector<float>& floats) {
    return {reinterpret_cast<const char*>(floats.data()), floats.size() * sizeof(float)};
  }

  // A comparison is honest if both run the same network: outputs for the first image.
  static void check_outputs(const TapNet& net, const std::vector<float>& images, const std::vector<std::string>& got,
                            double limit) {
    const std::vector<float> expected = run_reference(net, images.data());
    double gap = 0, scale = 1e-30;
    for (size_t i = 0; i < std::min(expected.size(), got.size()); ++i) {
      gap = std::max(gap, std::abs(parse_double(got[i]).value_or(1e30) - static_cast<double>(expected[i])));
      scale = std::max(scale, std::abs(static_cast<double>(expected[i])));
    }
    if (!(gap <= limit * scale)) fail("[bench] onnxruntime's outputs differ by {} of {}", gap, scale);
  }

  const ScratchFolder folder_{"bench"};
  std::unique_ptr<Child> child_;
};

}  // namespace

std::unique_ptr<Benchmark> onnxruntime_benchmark(const TapNet& net, const BenchSetting& setting,
                                                 const PeerImages& images, std::string& version) {
  return std::make_unique<OnnxRuntime>(net, setting, images, version);
}

}  // namespace onetap::tool
