// Images that int8 networks are calibrated with: by `quantize`, and by a peer that quantizes the same network itself.
#pragma once

#include "onetap/data/dataset.h"
#include "onetap/data/spread_dataset.h"
#include "onetap/tap/tap_net.h"

#include <cstdint>
#include <string>
#include <vector>

namespace onetap::tool {

constexpr int64_t kCalibrationImages = 512;  // of a data set, unless --images says otherwise

// So many training images, evenly spread over all of them. kData, naming `data`, if there are none.
SpreadDataset calibration_images(const DataSource& source, const std::string& data, int64_t count, const char* verb);

// What a peer gets.
struct PeerImages {
  std::vector<float> floats;  // one network input after the other
  std::string text;           // "512 images of cifar10"
};

// The images of calibration_images(), as the network sees them. kUsage if they are not images for it. `name` is what
// the text calls the data.
PeerImages peer_images(const TapNet& net, const DataSource& source, const std::string& name, int64_t count,
                       const char* verb);

// Where there are no data.
PeerImages random_peer_images(const Graph& graph);

}  // namespace onetap::tool
