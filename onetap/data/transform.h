// From byte images to what a network sees: crop, flip, resize, normalise.
#pragma once

#include "onetap/base/random.h"
#include "onetap/data/dataset.h"

namespace onetap {

// The square a network takes, in planes of floats: (pixel / 255 - mean) / sd.
struct View {
  int64_t size = 32;
  Normalisation normalisation;

  int64_t floats() const { return 3 * size * size; }
};

// A byte's normalised value, (byte / 255 - mean) / sd, as one multiply-add.
struct Scale {
  float multiply, add;
};
Scale scale_of(const Normalisation& normalisation, size_t channel);

enum class Augment {
  kNone,         // training images as in a test
  kPadCrop,      // zero-pad, random crop, random flip (CIFAR)
  kResizedCrop,  // random area and aspect, resized, random flip (ImageNet)
};

struct AugmentOptions {
  Augment kind = Augment::kPadCrop;
  int64_t pad = 4;
  bool flip = true;
  int64_t cutout = 0;  // side of a square that is left out; 0: none
  float jitter = 0;    // how far colours may change; 0: not at all
};

// Of a view of `size`, the square that is left out: its middle anywhere, so that it may reach over the edge.
struct Cutout {
  int64_t top = 0, left = 0, side = 0;

  static constexpr Cutout draw(int64_t size, int64_t side, Random& random) {
    const int64_t top = static_cast<int64_t>(random.below(static_cast<uint32_t>(size))) - side / 2;
    const int64_t left = static_cast<int64_t>(random.below(static_cast<uint32_t>(size))) - side / 2;
    return {top, left, side};
  }
  constexpr bool covers(int64_t y, int64_t x) const {
    return y >= top && y < top + side && x >= left && x < left + side;
  }
};

// Colours of a view changed alike in every pixel, on normalised values: contrast around the data's mean colour,
// saturation around the pixel's grey, brightness in standard deviations.
struct Jitter {
  float contrast = 1, saturation = 1, brightness = 0;

  static constexpr Jitter draw(float most, Random& random) {
    Jitter jitter;
    jitter.contrast = random.uniform(1 - most, 1 + most);
    jitter.saturation = random.uniform(1 - most, 1 + most);
    jitter.brightness = random.uniform(-most, most);
    return jitter;
  }
  constexpr bool changes() const { return contrast != 1 || saturation != 1 || brightness != 0; }
  // Of one pixel.
  constexpr void apply(float& red, float& green, float& blue) const {
    const float grey = (red + green + blue) * (1.0f / 3.0f);
    red = contrast * (grey + saturation * (red - grey)) + brightness;
    green = contrast * (grey + saturation * (green - grey)) + brightness;
    blue = contrast * (grey + saturation * (blue - grey)) + brightness;
  }
};

// Part of an image, in pixels; may reach over the edge only in padded_crop.
struct Box {
  double top = 0, left = 0, height = 0, width = 0;
};

// What a view shows of an image. It depends on the image's height and width alone, so it is known before the pixels
// are.
struct Crop {
  Box box;
  bool flip = false;
  bool resize = true;  // else pixel for pixel from the box's corner on, which is whole, as in padded_crop
  Cutout cutout;       // of the view
  Jitter jitter = {};
};

// For training; all randomness comes from `random`.
Crop train_crop(int64_t height, int64_t width, const View& view, const AugmentOptions& options, Random random);

// For tests: as it is where sizes agree, else the shorter side resized to 256/224 of the view and the centre cut out.
Crop test_crop(int64_t height, int64_t width, const View& view);

// How many eighths (1, 2, 4 or 8) of an image's height and width still show the crop in at least the view's resolution.
int eighths_needed(const Crop& crop, const View& view);

// The same part of an image that was reduced to so many eighths.
Crop reduced(Crop crop, int eighths);

// The view of an image that the crop shows.
void crop_view(const Image& image, const View& view, const Crop& crop, float* out);

// The view.size square at whole-pixel (top, left); outside the image lie black (zero) pixels.
void padded_crop(const Image& image, const View& view, int64_t top, int64_t left, bool flip, float* out);

// `box` scaled to the view by a triangle filter that widens when shrinking (no aliasing).
void resized_crop(const Image& image, const View& view, const Box& box, bool flip, float* out);

// Of a whole image in one go.
void train_view(const Image& image, const View& view, const AugmentOptions& options, Random random, float* out);
void test_view(const Image& image, const View& view, float* out);

}  // namespace onetap
