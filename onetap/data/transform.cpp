#include "onetap/data/transform.h"

#include "onetap/base/fail.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace onetap {
namespace {

// Weights of the input samples that make one output sample.
struct Filter {
  int64_t first = 0;
  std::vector<float> weights;
};

// Triangle filter over `extent` input samples for `count` outputs that cover [start, start + length).
std::vector<Filter> triangle_filters(int64_t extent, double start, double length, int64_t count) {
  const double scale = length / static_cast<double>(count);
  const double support = std::max(scale, 1.0);
  std::vector<Filter> filters(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const double centre = start + (static_cast<double>(i) + 0.5) * scale;
    const auto low = static_cast<int64_t>(std::floor(centre - support + 0.5));
    const auto high = static_cast<int64_t>(std::floor(centre + support + 0.5));
    Filter& filter = filters[static_cast<size_t>(i)];
    filter.first = std::clamp<int64_t>(low, 0, extent - 1);
    const int64_t last = std::clamp<int64_t>(high, filter.first + 1, extent);
    double sum = 0;
    for (int64_t k = filter.first; k < last; ++k) {
      const double weight = std::max(0.0, 1.0 - std::abs(static_cast<double>(k) + 0.5 - centre) / support);
      filter.weights.push_back(static_cast<float>(weight));
      sum += weight;
    }
    if (sum <= 0) {  // the centre lies outside the image: take the edge
      filter.weights.assign(1, 1.0f);
      sum = 1;
    }
    for (float& weight : filter.weights) weight = static_cast<float>(weight / sum);
  }
  return filters;
}

void check_channels(const Image& image) {
  if (image.channels != 3) fail("[data] expected 3 channels, got {}", image.channels);
}

// A box of random area and aspect inside the image, the usual ImageNet distribution.
Box random_box(const Image& image, Random& random) {
  const auto height = static_cast<double>(image.height), width = static_cast<double>(image.width);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double area = height * width * random.uniform(0.08f, 1.0f);
    const double aspect = std::exp(random.uniform(std::log(3.0f / 4.0f), std::log(4.0f / 3.0f)));
    const double w = std::round(std::sqrt(area * aspect)), h = std::round(std::sqrt(area / aspect));
    if (w < 1 || h < 1 || w > width || h > height) continue;
    const double top = random.below(static_cast<uint32_t>(height - h) + 1);
    const double left = random.below(static_cast<uint32_t>(width - w) + 1);
    return {top, left, h, w};
  }
  const double side = std::min(height, width);
  return {(height - side) / 2, (width - side) / 2, side, side};
}

// Zeros, the mean colour, in the square.
void cut_out(const View& view, const Cutout& square, float* out) {
  const auto inside = [&](int64_t at) { return std::clamp<int64_t>(at, 0, view.size); };
  const int64_t left = inside(square.left), right = inside(square.left + square.side);
  for (int64_t c = 0; c < 3; ++c) {
    for (int64_t y = inside(square.top); y < inside(square.top + square.side); ++y) {
      float* row = out + (c * view.size + y) * view.size;
      std::fill(row + left, row + right, 0.0f);
    }
  }
}

void augmented_view(const Image& image, const View& view, const AugmentOptions& options, Random& random, float* out) {
  switch (options.kind) {
    case Augment::kNone:
      return test_view(image, view, out);
    case Augment::kPadCrop: {
      // Every placement of the view inside the padded image is equally likely.
      const auto places = [&](int64_t extent) {
        const int64_t slack = extent + 2 * options.pad - view.size;
        if (slack < 0) {
          fail_usage("[data] an image side of {} with padding {} is smaller than the view {}", extent, options.pad,
                     view.size);
        }
        return static_cast<uint32_t>(slack + 1);
      };
      const int64_t top = static_cast<int64_t>(random.below(places(image.height))) - options.pad;
      const int64_t left = static_cast<int64_t>(random.below(places(image.width))) - options.pad;
      const bool flip = random.coin() && options.flip;
      return padded_crop(image, view, top, left, flip, out);
    }
    case Augment::kResizedCrop: {
      const Box box = random_box(image, random);
      const bool flip = random.coin() && options.flip;
      return resized_crop(image, view, box, flip, out);
    }
  }
}

}  // namespace

Scale scale_of(const Normalisation& normalisation, size_t channel) {
  return {1.0f / (255.0f * normalisation.sd[channel]), -normalisation.mean[channel] / normalisation.sd[channel]};
}

void padded_crop(const Image& image, const View& view, int64_t top, int64_t left, bool flip, float* out) {
  check_channels(image);
  for (size_t c = 0; c < 3; ++c) {
    const uint8_t* plane = image.pixels.data() + static_cast<int64_t>(c) * image.height * image.width;
    const Scale scale = scale_of(view.normalisation, c);
    for (int64_t y = 0; y < view.size; ++y) {
      const int64_t row = top + y;
      const bool row_inside = row >= 0 && row < image.height;
      for (int64_t x = 0; x < view.size; ++x) {
        const int64_t column = left + (flip ? view.size - 1 - x : x);
        const bool inside = row_inside && column >= 0 && column < image.width;
        const float value = inside ? static_cast<float>(plane[row * image.width + column]) : 0.0f;
        *out++ = value * scale.multiply + scale.add;
      }
    }
  }
}

void resized_crop(const Image& image, const View& view, const Box& box, bool flip, float* out) {
  check_channels(image);
  const auto columns = triangle_filters(image.width, box.left, box.width, view.size);
  const auto rows = triangle_filters(image.height, box.top, box.height, view.size);
  const int64_t first_row = rows.front().first;
  const int64_t last_row = rows.back().first + static_cast<int64_t>(rows.back().weights.size());
  std::vector<float> narrow(static_cast<size_t>((last_row - first_row) * view.size));
  for (size_t c = 0; c < 3; ++c) {
    const uint8_t* plane = image.pixels.data() + static_cast<int64_t>(c) * image.height * image.width;
    for (int64_t y = first_row; y < last_row; ++y) {
      float* to = narrow.data() + (y - first_row) * view.size;
      for (const Filter& filter : columns) {
        const uint8_t* from = plane + y * image.width + filter.first;
        float sum = 0;
        for (const float weight : filter.weights) sum += weight * static_cast<float>(*from++);
        *to++ = sum;
      }
    }
    const Scale scale = scale_of(view.normalisation, c);
    for (const Filter& filter : rows) {
      for (int64_t x = 0; x < view.size; ++x) {
        const int64_t column = flip ? view.size - 1 - x : x;
        const float* from = narrow.data() + (filter.first - first_row) * view.size + column;
        float sum = 0;
        for (const float weight : filter.weights) {
          sum += weight * *from;
          from += view.size;
        }
        *out++ = sum * scale.multiply + scale.add;
      }
    }
  }
}

void train_view(const Image& image, const View& view, const AugmentOptions& options, Random random, float* out) {
  augmented_view(image, view, options, random, out);
  if (options.cutout > 0) cut_out(view, Cutout::draw(view.size, options.cutout, random), out);
}

void test_view(const Image& image, const View& view, float* out) {
  if (image.height == view.size && image.width == view.size) {
    return padded_crop(image, view, 0, 0, false, out);
  }
  const auto height = static_cast<double>(image.height), width = static_cast<double>(image.width);
  const double side = std::min(height, width) * 224.0 / 256.0;
  resized_crop(image, view, {(height - side) / 2, (width - side) / 2, side, side}, false, out);
}

}  // namespace onetap
