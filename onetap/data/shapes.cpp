#include "onetap/data/shapes.h"

#include "onetap/base/random.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace onetap {
namespace {

constexpr int64_t kSide = 32;
constexpr int kSamples = 3;  // per pixel and axis, against jagged edges
constexpr float kPi = 3.14159265f;

struct Point {
  float x, y;
};

using Polygon = std::vector<Point>;

bool inside_polygon(const Polygon& polygon, Point p) {
  bool inside = false;
  for (size_t i = 0, j = polygon.size() - 1; i < polygon.size(); j = i++) {
    const Point a = polygon[i], b = polygon[j];
    if ((a.y > p.y) != (b.y > p.y) && p.x < (b.x - a.x) * (p.y - a.y) / (b.y - a.y) + a.x) inside = !inside;
  }
  return inside;
}

float radius(Point p) {
  return std::sqrt(p.x * p.x + p.y * p.y);
}

Polygon star_polygon() {
  Polygon star;
  for (int i = 0; i < 10; ++i) {
    const float angle = kPi * static_cast<float>(i) / 5.0f, r = i % 2 == 0 ? 1.0f : 0.42f;
    star.push_back({r * std::sin(angle), -r * std::cos(angle)});
  }
  return star;
}

// The ten figures, each in its own coordinates inside the square [-1, 1].
bool inside_figure(int64_t figure, Point p) {
  static const Polygon triangle = {{0.0f, -1.0f}, {0.87f, 0.5f}, {-0.87f, 0.5f}};
  static const Polygon star = star_polygon();
  static const Polygon arrow = {{0, -1},     {0.8f, -0.1f},   {0.28f, -0.1f}, {0.28f, 1},
                                {-0.28f, 1}, {-0.28f, -0.1f}, {-0.8f, -0.1f}};
  static const Polygon tee = {{-0.9f, -0.9f}, {0.9f, -0.9f},   {0.9f, -0.35f},   {0.28f, -0.35f},
                              {0.28f, 0.95f}, {-0.28f, 0.95f}, {-0.28f, -0.35f}, {-0.9f, -0.35f}};
  static const Polygon ell = {{-0.8f, -0.95f}, {-0.25f, -0.95f}, {-0.25f, 0.4f},
                              {0.8f, 0.4f},    {0.8f, 0.95f},    {-0.8f, 0.95f}};
  switch (figure) {
    case 0:
      return radius(p) <= 1;  // disc
    case 1:
      return std::abs(p.x) <= 1 && std::abs(p.y) <= 1;  // square
    case 2:
      return inside_polygon(triangle, p);  // triangle
    case 3:
      return radius(p) <= 1 && radius(p) >= 0.6f;  // ring
    case 4:
      return std::max(std::abs(p.x), std::abs(p.y)) <= 1 && std::min(std::abs(p.x), std::abs(p.y)) <= 0.33f;  // cross
    case 5:
      return inside_polygon(star, p);  // star
    case 6:
      return radius(p) <= 1 && radius({p.x - 0.55f, p.y}) >= 0.85f;  // crescent
    case 7:
      return inside_polygon(arrow, p);  // arrow
    case 8:
      return inside_polygon(tee, p);  // tee
    default:
      return inside_polygon(ell, p);  // ell
  }
}

const char* const kNames[] = {"disc", "square", "triangle", "ring", "cross", "star", "crescent", "arrow", "tee", "ell"};

// Area of each figure in its own coordinates, measured once on a fine grid.
const std::array<float, 10>& figure_areas() {
  static const std::array<float, 10> areas = [] {
    std::array<float, 10> measured{};
    constexpr int kGrid = 256;
    for (size_t figure = 0; figure < measured.size(); ++figure) {
      int count = 0;
      for (int y = 0; y < kGrid; ++y) {
        for (int x = 0; x < kGrid; ++x) {
          const Point p = {(static_cast<float>(x) + 0.5f) * 2 / kGrid - 1,
                           (static_cast<float>(y) + 0.5f) * 2 / kGrid - 1};
          count += inside_figure(static_cast<int64_t>(figure), p) ? 1 : 0;
        }
      }
      measured[figure] = 4.0f * static_cast<float>(count) / (kGrid * kGrid);
    }
    return measured;
  }();
  return areas;
}

using Colour = std::array<float, 3>;

Colour random_colour(Random& random, float low, float high) {
  return {random.uniform(low, high), random.uniform(low, high), random.uniform(low, high)};
}

// Around what is drawn: pixels that it does not meet need not be asked, sample by sample.
struct Bounds {
  float left, top, right, bottom;

  bool meets_pixel(int64_t x, int64_t y) const {
    const auto from_x = static_cast<float>(x), from_y = static_cast<float>(y);
    return from_x < right && from_x + 1 > left && from_y < bottom && from_y + 1 > top;
  }
};

// A figure turned, stretched and moved; maps pixels to the figure's own coordinates.
struct Placement {
  float centre_x, centre_y, cosine, sine, scale_x, scale_y;

  // Figures lie in [-1, 1] x [-1, 1].
  Bounds bounds() const {
    constexpr float kMargin = 0.1f;
    const float reach_x = std::abs(cosine) * scale_x + std::abs(sine) * scale_y + kMargin;
    const float reach_y = std::abs(sine) * scale_x + std::abs(cosine) * scale_y + kMargin;
    return {centre_x - reach_x, centre_y - reach_y, centre_x + reach_x, centre_y + reach_y};
  }

  Point to_figure(float x, float y) const {
    const float dx = x - centre_x, dy = y - centre_y;
    return {(dx * cosine + dy * sine) / scale_x, (dy * cosine - dx * sine) / scale_y};
  }
};

Placement random_placement(Random& random, int64_t figure) {
  // The same area for every class, whatever its outline: 90 to 200 of the 1024 pixels.
  const float area = random.uniform(90, 200);
  const float scale = std::sqrt(area / figure_areas()[static_cast<size_t>(figure)]);
  const float stretch = std::exp(random.uniform(-0.22f, 0.22f));
  const float angle = random.uniform(-0.6f, 0.6f);
  const float middle = kSide / 2.0f;
  return {middle + random.uniform(-5, 5),
          middle + random.uniform(-5, 5),
          std::cos(angle),
          std::sin(angle),
          scale * stretch,
          scale / stretch};
}

// Short strokes that belong to no class.
struct Stroke {
  static constexpr float kReach = 0.7f;

  Point from, to;
  Colour colour;

  Bounds bounds() const {
    constexpr float kMargin = kReach + 0.1f;
    return {std::min(from.x, to.x) - kMargin, std::min(from.y, to.y) - kMargin, std::max(from.x, to.x) + kMargin,
            std::max(from.y, to.y) + kMargin};
  }

  bool covers(Point p) const {
    const float dx = to.x - from.x, dy = to.y - from.y;
    const float t = std::clamp(((p.x - from.x) * dx + (p.y - from.y) * dy) / (dx * dx + dy * dy + 1e-6f), 0.0f, 1.0f);
    return radius({p.x - from.x - t * dx, p.y - from.y - t * dy}) < kReach;
  }
};

Stroke random_stroke(Random& random) {
  const Point from = {random.uniform(0, kSide), random.uniform(0, kSide)};
  const float angle = random.uniform(0, 2 * kPi), length = random.uniform(4, 10);
  return {from, {from.x + length * std::cos(angle), from.y + length * std::sin(angle)}, random_colour(random, 0, 255)};
}

}  // namespace

void draw_shape(uint64_t seed, bool test, int64_t index, Image& image) {
  Random random(seed, Purpose::kShapes, static_cast<uint32_t>(index), test ? 1 : 0);
  const int64_t figure = index % 10;
  const Placement placement = random_placement(random, figure);
  // Figures are lighter than their background, in any hue.
  const Colour sky = random_colour(random, 0, 150), ground = random_colour(random, 0, 150);
  const Colour paint = random_colour(random, 110, 255);
  const float tilt = random.uniform(0, 2 * kPi);
  std::array<Stroke, 4> strokes;
  for (Stroke& stroke : strokes) stroke = random_stroke(random);
  const float noise = random.uniform(10, 60);

  const float along_x = std::cos(tilt), along_y = std::sin(tilt);
  const Bounds figure_bounds = placement.bounds();
  std::array<Bounds, 4> stroke_bounds;
  std::transform(strokes.begin(), strokes.end(), stroke_bounds.begin(),
                 [](const Stroke& stroke) { return stroke.bounds(); });

  image.channels = 3;
  image.height = image.width = kSide;
  image.pixels.resize(3 * kSide * kSide);
  for (int64_t y = 0; y < kSide; ++y) {
    for (int64_t x = 0; x < kSide; ++x) {
      const bool near_figure = figure_bounds.meets_pixel(x, y);
      std::array<const Stroke*, 4> near{};
      size_t near_strokes = 0;
      for (size_t i = 0; i < strokes.size(); ++i) {
        if (stroke_bounds[i].meets_pixel(x, y)) near[near_strokes++] = &strokes[i];
      }
      Colour sum{};
      for (int s = 0; s < kSamples * kSamples; ++s) {
        const int row = s / kSamples, column = s % kSamples;
        const Point p = {static_cast<float>(x) + (static_cast<float>(column) + 0.5f) / kSamples,
                         static_cast<float>(y) + (static_cast<float>(row) + 0.5f) / kSamples};
        const float blend = std::clamp(0.5f + ((p.x - 16) * along_x + (p.y - 16) * along_y) / kSide, 0.0f, 1.0f);
        Colour colour;
        for (size_t c = 0; c < 3; ++c) colour[c] = sky[c] + blend * (ground[c] - sky[c]);
        if (near_figure && inside_figure(figure, placement.to_figure(p.x, p.y))) colour = paint;
        for (size_t i = 0; i < near_strokes; ++i) {
          if (near[i]->covers(p)) colour = near[i]->colour;
        }
        for (size_t c = 0; c < 3; ++c) sum[c] += colour[c];
      }
      for (size_t c = 0; c < 3; ++c) {
        const float grain = noise * (random.uniform() + random.uniform() + random.uniform() - 1.5f);
        const float value = sum[c] / (kSamples * kSamples) + grain;
        image.pixels[static_cast<size_t>((static_cast<int64_t>(c) * kSide + y) * kSide + x)] =
            static_cast<uint8_t>(std::clamp(value, 0.0f, 255.0f));
      }
    }
  }
}

DataSource open_shapes(const ShapesOptions& options) {
  const auto draw_split = [&](bool test, int64_t count) {
    auto set = std::make_unique<MemoryDataset>(3, kSide, kSide);
    set->reserve(count);
    Image image;
    for (int64_t i = 0; i < count; ++i) {
      draw_shape(options.seed, test, i, image);
      set->add(image.pixels.data(), i % 10);
    }
    return set;
  };
  DataSource source;
  source.spec = "shapes";
  source.train = draw_split(false, options.train);
  source.test = draw_split(true, options.test);
  source.classes.assign(std::begin(kNames), std::end(kNames));
  source.image_size = kSide;
  return source;
}

}  // namespace onetap
