#include "onetap/report/colour.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace onetap {
namespace {

constexpr double kPi = 3.14159265358979323846;

// Oklab in polar form: lightness 0..1, chroma, hue in degrees.
struct Oklch {
  double lightness, chroma, hue;
};

// The two ends of a scale. Chroma swells between them as far as screens can show it: where it had to be cut off, the
// eye would see an edge in the scale.
struct Ramp {
  Oklch cold, hot;
  double swell;
};

constexpr Ramp kLight = {{0.975, 0.045, 105}, {0.300, 0.095, 275}, 0.018};
constexpr Ramp kDark = {{0.255, 0.055, 280}, {0.955, 0.125, 105}, 0.005};

std::array<double, 3> linear_rgb(const Oklch& colour) {
  const double a = colour.chroma * std::cos(colour.hue * kPi / 180);
  const double b = colour.chroma * std::sin(colour.hue * kPi / 180);
  const auto cube = [](double x) { return x * x * x; };
  const double l = cube(colour.lightness + 0.3963377774 * a + 0.2158037573 * b);
  const double m = cube(colour.lightness - 0.1055613458 * a - 0.0638541728 * b);
  const double s = cube(colour.lightness - 0.0894841775 * a - 1.2914855480 * b);
  return {4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
          -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
          -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s};
}

uint8_t encoded(double linear) {
  const double x = std::clamp(linear, 0.0, 1.0);
  const double gamma = x <= 0.0031308 ? 12.92 * x : 1.055 * std::pow(x, 1 / 2.4) - 0.055;
  return static_cast<uint8_t>(std::lround(255 * gamma));
}

double decoded(uint8_t byte) {
  const double x = byte / 255.0;
  return x <= 0.04045 ? x / 12.92 : std::pow((x + 0.055) / 1.055, 2.4);
}

double luminance(Rgb colour) {
  return 0.2126 * decoded(colour.r) + 0.7152 * decoded(colour.g) + 0.0722 * decoded(colour.b);
}

}  // namespace

std::string hex(Rgb colour) {
  return fmt::format("#{:02x}{:02x}{:02x}", colour.r, colour.g, colour.b);
}

Theme Theme::light() {
  return {{255, 255, 255}, {28, 32, 38}, {92, 99, 110}, {205, 210, 217}};
}

Theme Theme::dark() {
  return {{17, 20, 26}, {233, 236, 240}, {158, 166, 178}, {62, 69, 80}};
}

Rgb heat_colour(double value, bool dark) {
  const Ramp& ramp = dark ? kDark : kLight;
  const double t = std::isfinite(value) ? std::clamp(value, 0.0, 1.0) : 0.0;
  const auto between = [t](double from, double to) { return from + t * (to - from); };
  const Oklch colour = {between(ramp.cold.lightness, ramp.hot.lightness),
                        between(ramp.cold.chroma, ramp.hot.chroma) + ramp.swell * std::sin(kPi * t),
                        between(ramp.cold.hue, ramp.hot.hue)};
  const auto rgb = linear_rgb(colour);
  return {encoded(rgb[0]), encoded(rgb[1]), encoded(rgb[2])};
}

double contrast(Rgb one, Rgb other) {
  const double a = luminance(one), b = luminance(other);
  return (std::max(a, b) + 0.05) / (std::min(a, b) + 0.05);
}

Rgb readable_on(Rgb behind) {
  constexpr Rgb kDarkInk = {0, 0, 0}, kLightInk = {255, 255, 255};
  return contrast(kDarkInk, behind) >= contrast(kLightInk, behind) ? kDarkInk : kLightInk;
}

}  // namespace onetap
