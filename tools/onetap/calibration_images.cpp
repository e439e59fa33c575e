#include "tools/onetap/calibration_images.h"

#include "onetap/base/fail.h"
#include "onetap/data/read_view.h"
#include "tools/onetap/bench_model.h"
#include "tools/onetap/classify.h"

#include <fmt/format.h>

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

PeerImages peer_images(const TapNet& net, const DataSource& source, const std::string& name, int64_t count,
                       const char* verb) {
  net.graph.check_classifier(static_cast<int64_t>(source.classes.size()));
  const View view = network_view(net.graph, net.pixels, verb);
  const SpreadDataset images = calibration_images(source, name, count, verb);
  PeerImages made;
  made.floats.resize(static_cast<size_t>(images.size() * view.floats()));
  Image image;
  for (int64_t i = 0; i < images.size(); ++i) {
    read_test_view(images, i, view, image, made.floats.data() + i * view.floats());
  }
  made.text = fmt::format("{} image{} of {}", images.size(), images.size() == 1 ? "" : "s", name);
  return made;
}

PeerImages random_peer_images(const Graph& graph) {
  return {random_images(graph, 1, kRandomImages).images, fmt::format("{} random images", kRandomImages)};
}

}  // namespace onetap::tool
