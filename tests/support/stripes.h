// An image folder of stripes: files of many sizes whose class a small network learns.
#pragma once

#include "onetap/base/random.h"
#include "onetap/batches/batch_stream.h"
#include "tests/support/images.h"
#include "tests/support/support.h"

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

namespace onetap::testing {

// Two kinds of stripes, in JPEG and PNG files of many sizes; some JPEGs are large enough to be reduced.
inline void write_stripes(const std::filesystem::path& root, int train, int test) {
  for (const bool training : {true, false}) {
    for (int i = 0; i < (training ? train : test); ++i) {
      const int width = 24 + 37 * (i % 5), height = 30 + 29 * (i % 4);
      std::vector<uint8_t> rgb;
      Random random(3, Purpose::kTest, static_cast<uint32_t>(i), training ? 1 : 0);
      const float phase = random.uniform(0, 6), slope = random.uniform(0.15f, 0.3f);
      for (int y = 0; y < height; ++y) {
        for (int x = 0; x < width; ++x) {
          const float along = static_cast<float>(i % 2 == 0 ? x : y);
          for (int c = 0; c < 3; ++c) {
            rgb.push_back(static_cast<uint8_t>(120 + 60 * std::sin(slope * along + phase) + random.uniform(-9, 9)));
          }
        }
      }
      const bool png = i % 3 == 0;
      const std::string name = std::to_string(i) + (png ? ".png" : ".jpg");
      write_text(root / (training ? "train" : "val") / (i % 2 == 0 ? "across" : "down") / name,
                 png ? png_bytes(rgb, width, height) : jpeg_bytes(rgb, width, height));
    }
  }
}

inline StreamOptions stripe_stream(const DataSource& source, bool train, Augment kind) {
  StreamOptions stream;
  stream.view = {24, source.normalisation};
  stream.batch_size = 7;
  stream.workers = 3;
  stream.train = train;
  stream.augment.kind = kind;
  stream.augment.pad = 6;
  stream.augment.cutout = 9;
  stream.augment.jitter = 0.2f;
  stream.seed = 5;
  stream.epoch = 2;
  return stream;
}

}  // namespace onetap::testing
