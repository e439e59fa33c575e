// Runs a frozen network from C++: run_tap MODEL.tap [IMAGE.ppm]. Without an image it makes one of random pixels.
//
// Expected output: the five classes that the network finds most probable, best first.
#include "onetap/base/error.h"
#include "onetap/base/random.h"
#include "onetap/data/transform.h"
#include "onetap/runtime/session.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <numeric>

using namespace onetap;

// A binary PPM (P6) of 8 bits without comments.
Image read_ppm(const char* path) {
  std::ifstream file(path, std::ios::binary);
  std::string magic;
  Image image;
  image.channels = 3;
  int largest = 0;
  file >> magic >> image.width >> image.height >> largest;
  file.get();
  const bool ok = file && magic == "P6" && largest == 255 && image.width > 0 && image.width <= 10000 &&
                  image.height > 0 && image.height <= 10000;
  std::vector<uint8_t> rgb(ok ? static_cast<size_t>(3 * image.width * image.height) : 0);
  if (!ok || !file.read(reinterpret_cast<char*>(rgb.data()), static_cast<std::streamsize>(rgb.size()))) {
    throw Error(ErrorKind::kData, "[example] expected a binary PPM image of 8 bits (" + std::string(path) + ")");
  }
  for (size_t c = 0; c < 3; ++c) {
    for (size_t i = c; i < rgb.size(); i += 3) image.pixels.push_back(rgb[i]);
  }
  return image;
}

Image random_image(int64_t size) {
  Image image{3, size, size, std::vector<uint8_t>(static_cast<size_t>(3 * size * size))};
  Random random(1, Purpose::kTest);
  for (uint8_t& pixel : image.pixels) pixel = static_cast<uint8_t>(random.below(256));
  return image;
}

void print_top(const Model& model, const std::vector<float>& outputs, size_t top) {
  std::vector<size_t> order(outputs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return outputs[a] > outputs[b]; });
  double sum = 0.0;
  for (const float output : outputs) sum += std::exp(output);
  for (size_t place = 0; place < std::min(top, order.size()); ++place) {
    const size_t best = order[place];
    const char* name = best < model.classes().size() ? model.classes()[best].c_str() : "";
    std::printf("%3zu  %-20s %6.2f %%\n", best, name, 100.0 * std::exp(outputs[best]) / sum);
  }
}

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::cerr << "usage: run_tap MODEL.tap [IMAGE.ppm]\n";
    return 2;
  }
  try {
    const auto model = Model::open(argv[1]);
    const Shape& shape = model->input_shape();
    if (shape.size() != 3 || shape[0] != 3 || shape[1] != shape[2]) {
      throw Error(ErrorKind::kUsage, "[example] expected a network for square colour images, got " + shape_text(shape));
    }
    View view;  // the square that the network sees, and the scale of its pixels
    view.size = shape[1];
    view.normalisation = {model->pixels().mean, model->pixels().sd};
    std::vector<float> pixels(static_cast<size_t>(view.floats()));
    test_view(argc == 3 ? read_ppm(argv[2]) : random_image(view.size), view, pixels.data());

    Session session(model, {/*threads=*/1, /*batch=*/1});
    std::vector<float> outputs(static_cast<size_t>(model->output_floats()));
    session.run(pixels.data(), 1, outputs.data());
    print_top(*model, outputs, 5);
  } catch (const Error& problem) {
    std::cerr << problem.what() << '\n';
    return problem.exit_code();
  }
  return 0;
}
