// ONNX Runtime to compare with: Python's, in a process of its own, on a model written to a folder that goes with it.
#include "onetap/base/fail.h"
#include "onetap/base/file.h"
#include "onetap/base/text.h"
#include "onetap/emit/onnx.h"
#include "onetap/runtime/reference.h"
#include "tools/onetap/bench.h"
#include "tools/onetap/child.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

namespace onetap::bench_files {
std::string_view bench_onnxruntime_py();
}

namespace onetap::tool {
namespace {

namespace fs = std::filesystem;

class ScratchFolder {
 public:
  ScratchFolder() {
    std::string pattern = (fs::temp_directory_path() / "onetap-bench-XXXXXX").string();
    const char* made = ::mkdtemp(pattern.data());
    if (made == nullptr) fail("[bench] cannot make a folder in {}", fs::temp_directory_path().string());
    path_ = made;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }

  std::string file(const char* name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  for (const std::string_view word : split(line, ' ')) {
    if (!word.empty()) words.emplace_back(word);
  }
  return words;
}

class OnnxRuntime : public Benchmark {
 public:
  OnnxRuntime(const TapNet& net, const BenchSetting& setting, std::string& version) {
    write_file_atomic(folder_.file("bench.py"), bench_files::bench_onnxruntime_py());
    write_file_atomic(folder_.file("model.onnx"), onnx_model(net));
    write_file_atomic(folder_.file("input.bin"), std::string_view(reinterpret_cast<const char*>(setting.images.data()),
                                                                  setting.images.size() * sizeof(float)));
    const char* python = std::getenv("ONETAP_PYTHON");
    child_ = std::make_unique<Child>(std::vector<std::string>{
        python != nullptr && *python != '\0' ? python : "python3", folder_.file("bench.py"), folder_.file("model.onnx"),
        folder_.file("input.bin"), std::to_string(setting.threads)});
    const std::vector<std::string> answer = words_of(child_->read_line());
    if (answer.size() < 2 || answer[0] != "ready") {
      fail_usage(
          "[bench] expected a Python with onnxruntime (pip install onnxruntime; ONETAP_PYTHON names another "
          "interpreter), got none");
    }
    version = answer[1];
    check_outputs(net, setting, {answer.begin() + 2, answer.end()});
  }

  void run(int64_t times, std::vector<double>& seconds) override {
    child_->write_line(std::to_string(times));
    const std::vector<std::string> answer = words_of(child_->read_line());
    if (static_cast<int64_t>(answer.size()) != times) fail("[bench] onnxruntime ended in the middle");
    for (const std::string& nanoseconds : answer) seconds.push_back(parse_double(nanoseconds).value_or(0) * 1e-9);
  }

 private:
  // A comparison is honest if both run the same network.
  static void check_outputs(const TapNet& net, const BenchSetting& setting, const std::vector<std::string>& got) {
    const std::vector<float> expected = run_reference(net, setting.images.data());
    double gap = 0, scale = 1e-30;
    for (size_t i = 0; i < std::min(expected.size(), got.size()); ++i) {
      gap = std::max(gap, std::abs(parse_double(got[i]).value_or(1e30) - static_cast<double>(expected[i])));
      scale = std::max(scale, std::abs(static_cast<double>(expected[i])));
    }
    if (!(gap <= 1e-3 * scale)) fail("[bench] onnxruntime's outputs differ by {} of {}", gap, scale);
  }

  ScratchFolder folder_;
  std::unique_ptr<Child> child_;
};

}  // namespace

std::unique_ptr<Benchmark> onnxruntime_benchmark(const TapNet& net, const BenchSetting& setting, std::string& version) {
  return std::make_unique<OnnxRuntime>(net, setting, version);
}

}  // namespace onetap::tool
