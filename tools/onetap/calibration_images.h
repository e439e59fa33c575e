// Images that int8 networks are calibrated with: by `quantize`, and by a peer that quantizes the same network itself.
#pragma once

#include "onetap/data/dataset.h"
#include "onetap/data/spread_dataset.h"
#include "onetap/tap/tap_net.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace onetap::tool {

constexpr int64_t kCalibrationImages = 512;  // of a data set, unless --images says otherwise

// So many training images, evenly spread over all of them. kData, naming `data`, if there are none.
SpreadDataset calibration_images(const DataSource& source, const std::string& data, int64_t count, const char* verb);

constexpr int64_t kPeerBytes = int64_t{4} << 30;  // of a file of images

// What a peer gets. They are read, or made, one after the other when they are written.
class PeerImages {
 public:
  // Writes image `index` to `out`, as the network sees it.
  using Reader = std::function<void(int64_t index, float* out)>;

  PeerImages() = default;  // none
  PeerImages(int64_t count, int64_t floats, Reader read, std::string text)
      : count_(count), floats_(floats), read_(std::move(read)), text_(std::move(text)) {}

  // One network input after the other.
  void write(const std::filesystem::path& file) const;
  std::vector<float> first() const;

  const std::string& text() const { return text_; }  // "512 images of cifar10"

 private:
  int64_t count_ = 0, floats_ = 0;
  Reader read_;
  std::string text_;
};

// The images of calibration_images(). kUsage if they are not images for the network, or if there are more than
// kPeerBytes of them. `name` is what the text calls the data.
PeerImages peer_images(const TapNet& net, const DataSource& source, const std::string& name, int64_t count,
                       const char* verb);

// Where there are no data.
PeerImages random_peer_images(const Graph& graph);

}  // namespace onetap::tool
