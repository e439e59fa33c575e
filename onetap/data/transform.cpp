#include "onetap/data/transform.h"

#include "onetap/base/fail.h"
#include "onetap/data/triangle.h"

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

// Over `extent` input samples for `count` outputs that cover [start, start + length).
std::vector<Filter> triangle_filters(int64_t extent, double start, double length, int64_t count) {
  std::vector<Filter> filters(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const Triangle triangle = Triangle::make(extent, start, length, count, i);
    Filter& filter = filters[static_cast<size_t>(i)];
    filter.first = triangle.first;
    for (int64_t k = 0; k < triangle.count; ++k) filter.weights.push_back(triangle.weight(k));
  }
  return filters;
}

void check_channels(const Image& image) {
  if (image.channels != 3) fail("[data] expected 3 channels, got {}", image.channels);
}

// A box of random area and aspect inside the image, the usual ImageNet distribution.
Box random_box(double height, double width, Random& random) {
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

void change_colours(const View& view, const Jitter& jitter, float* out) {
  const int64_t plane = view.size * view.size;
  for (int64_t i = 0; i < plane; ++i) jitter.apply(out[i], out[plane + i], out[2 * plane + i]);
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

Crop train_crop(int64_t height, int64_t width, const View& view, const AugmentOptions& options, Random random) {
  Crop crop;
  switch (options.kind) {
    case Augment::kNone:
      crop = test_crop(height, width, view);
      break;
    case Augment::kPadCrop: {
      // Every placement of the view inside the padded image is equally likely.
      const auto place = [&](int64_t extent) {
        const int64_t slack = extent + 2 * options.pad - view.size;
        if (slack < 0) {
          fail_usage("[data] an image side of {} with padding {} is smaller than the view {}", extent, options.pad,
                     view.size);
        }
        return static_cast<double>(random.below(static_cast<uint32_t>(slack + 1))) - static_cast<double>(options.pad);
      };
      const auto side = static_cast<double>(view.size);
      crop.box.top = place(height);
      crop.box.left = place(width);
      crop.box.height = crop.box.width = side;
      crop.resize = false;
      crop.flip = random.coin() && options.flip;
      break;
    }
    case Augment::kResizedCrop:
      crop.box = random_box(static_cast<double>(height), static_cast<double>(width), random);
      crop.flip = random.coin() && options.flip;
      break;
  }
  if (options.cutout > 0) crop.cutout = Cutout::draw(view.size, options.cutout, random);
  if (options.jitter > 0) crop.jitter = Jitter::draw(options.jitter, random);
  return crop;
}

Crop test_crop(int64_t height, int64_t width, const View& view) {
  const auto h = static_cast<double>(height), w = static_cast<double>(width);
  if (height == view.size && width == view.size) return {{0, 0, h, w}, false, false, {}};
  const double side = std::min(h, w) * 224.0 / 256.0;
  return {{(h - side) / 2, (w - side) / 2, side, side}, false, true, {}};
}

int eighths_needed(const Crop& crop, const View& view) {
  if (!crop.resize) return 8;
  const double shorter = std::min(crop.box.height, crop.box.width);
  // Halves alone: libjpeg-turbo has vector code for those, and takes longer for 5, 6 or 7 eighths than for all.
  for (const int eighths : {1, 2, 4}) {
    if (shorter * eighths >= static_cast<double>(8 * view.size)) return eighths;
  }
  return 8;
}

Crop reduced(Crop crop, int eighths) {
  for (double* value : {&crop.box.top, &crop.box.left, &crop.box.height, &crop.box.width}) *value *= eighths / 8.0;
  return crop;
}

void crop_view(const Image& image, const View& view, const Crop& crop, float* out) {
  if (crop.resize) {
    resized_crop(image, view, crop.box, crop.flip, out);
  } else {
    padded_crop(image, view, static_cast<int64_t>(crop.box.top), static_cast<int64_t>(crop.box.left), crop.flip, out);
  }
  if (crop.jitter.changes()) change_colours(view, crop.jitter, out);
  if (crop.cutout.side > 0) cut_out(view, crop.cutout, out);
}

void train_view(const Image& image, const View& view, const AugmentOptions& options, Random random, float* out) {
  crop_view(image, view, train_crop(image.height, image.width, view, options, random), out);
}

void test_view(const Image& image, const View& view, float* out) {
  crop_view(image, view, test_crop(image.height, image.width, view), out);
}

}  // namespace onetap
