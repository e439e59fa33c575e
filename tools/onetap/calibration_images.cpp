#include "tools/onetap/calibration_images.h"

#include "onetap/base/fail.h"
#include "onetap/base/file.h"
#include "onetap/data/read_view.h"
#include "tools/onetap/bench_model.h"
#include "tools/onetap/classify.h"
#include "tools/onetap/console.h"

#include <fmt/format.h>

#include <algorithm>

namespace onetap::tool {
namespace {

constexpr int64_t kRandomImages = 32;

}  // namespace

SpreadDataset calibration_images(const DataSource& source, const std::string& data, int64_t count, const char* verb) {
  if (source.train->size() == 0) {
    fail_data("[{}] expected training images to calibrate with, got none ({})", verb, data);
  }
  return {source.train, count};
}

void PeerImages::write(const std::filesystem::path& file) const {
  FileWriter writer(file);
  std::vector<float> image(static_cast<size_t>(floats_));
  for (int64_t i = 0; i < count_; ++i) {
    read_(i, image.data());
    writer.write(image.data(), image.size() * sizeof(float));
  }
  writer.finish();
}

std::vector<float> PeerImages::first() const {
  std::vector<float> image(static_cast<size_t>(floats_));
  if (count_ > 0) read_(0, image.data());
  return image;
}

PeerImages peer_images(const TapNet& net, const DataSource& source, const std::string& name, int64_t count,
                       const char* verb) {
  net.graph.check_classifier(static_cast<int64_t>(source.classes.size()));
  const View view = network_view(net.graph, net.pixels, verb);
  SpreadDataset images = calibration_images(source, name, count, verb);
  const int64_t size = images.size(), most = kPeerBytes / (view.floats() * static_cast<int64_t>(sizeof(float)));
  if (size > most) {
    fail_usage("[{}] expected at most {} calibration images of {} floats ({}) for ONNX Runtime, got --images {}", verb,
               most, view.floats(), bytes_text(static_cast<double>(kPeerBytes)), count);
  }
  const auto read = [images = std::move(images), view, image = Image()](int64_t index, float* out) mutable {
    read_test_view(images, index, view, image, out);
  };
  return {size, view.floats(), read, fmt::format("{} image{} of {}", size, size == 1 ? "" : "s", name)};
}

PeerImages random_peer_images(const Graph& graph) {
  const int64_t floats = element_count(graph.input().shape);
  const auto read = [floats, images = random_images(graph, 1, kRandomImages).images](int64_t index, float* out) {
    std::copy_n(images.begin() + index * floats, floats, out);
  };
  return {kRandomImages, floats, read, fmt::format("{} random images", kRandomImages)};
}

}  // namespace onetap::tool
