// The figures of the paper: heat maps, temperatures, memory.
#include "onetap/base/text.h"
#include "onetap/report/paper_points.h"
#include "onetap/reproduce/rows.h"

#include <fmt/format.h>

namespace onetap {
namespace {

Experiment heatmaps(const char* name, const char* title, const char* maps, const char* label, RunSpec run) {
  Experiment figure;
  figure.name = name;
  figure.title = title;
  figure.figure = FigureKind::kHeatmaps;
  figure.paper_maps = maps;
  figure.rows = {{"SAL", label, std::move(run)}};
  return figure;
}

// A point of the paper's curves: the temperature as 1/tau, and the accuracy.
struct TemperaturePoint {
  double tau, accuracy;
};

struct TemperatureCurve {
  const char* name;
  RunSpec (*run)(const Settings& more);
  std::vector<TemperaturePoint> final_points, initial_points;
};

const std::vector<TemperatureCurve>& temperature_curves() {
  static const std::vector<TemperatureCurve> curves = {
      {"Resnet-20+CIFAR10",
       [](const Settings& more) { return sanet_resnet20("cifar10", 83, more); },
       {{1, 33},
        {1.1, 45.54},
        {1.2, 75},
        {1.35, 87.72},
        {1.5, 92.3},
        {2, 93.2},
        {5, 95.23},
        {50, 95.52},
        {100, 94.79},
        {200, 95},
        {2000, 94.75}},
       {{0.01, 95.01},
        {0.03, 95.2},
        {0.05, 95.32},
        {0.07, 95.4},
        {0.1, 95.54},
        {0.15, 95.52},
        {0.3, 95.35},
        {0.4, 95.22},
        {0.5, 95},
        {0.7, 94.76},
        {1, 94.67},
        {2, 94.57},
        {5, 94.54},
        {10, 94.5},
        {20, 94.45},
        {30, 94.43},
        {40, 94.4},
        {50, 94.39}}},
      {"Resnet56+CIFAR10",
       [](const Settings& more) { return sanet_resnet56(more); },
       {{1, 10}, {1.5, 68.6}, {2, 82.41}, {5, 92.75}, {10, 92}, {20, 93.7}, {50, 94}, {200, 93.9}, {2000, 93.8}},
       {{0.05, 93.8},
        {0.1, 93.9},
        {0.15, 94},
        {0.3, 93.63},
        {0.5, 93.47},
        {1, 93.32},
        {2, 93.19},
        {5, 93},
        {10, 92.88},
        {20, 92.87}}},
      {"Resnet-20+CIFAR100",
       [](const Settings& more) { return sanet_resnet20("cifar100", 83, more); },
       {{1, 1.34},
        {2, 4.63},
        {5, 24.79},
        {10, 35.34},
        {20, 48.34},
        {30, 61.77},
        {40, 66.14},
        {50, 73},
        {70, 77.39},
        {200, 76.6},
        {2000, 76.7}},
       {{0.1, 77}, {0.15, 77.3}, {0.3, 77.1}, {1, 75.34}, {2, 75.4}, {5, 75.26}, {10, 75.32}, {20, 75.55}}},
      {"Resnet-50+CIFAR100",
       [](const Settings& more) { return sanet_resnet50(more); },
       {{1, 13}, {2, 59.82}, {3, 68}, {5, 75.08}, {10, 75.42}, {20, 76.15}, {30, 76.65}, {70, 77.6}, {200, 76}},
       {{0.05, 76.23},
        {0.1, 77},
        {0.15, 77.6},
        {0.3, 77.1},
        {1, 76.86},
        {2, 76.81},
        {5, 76.75},
        {10, 76.68},
        {20, 76.25}}},
  };
  return curves;
}

// As recipes have it: 6.7 for 1/0.15, as the paper rounds it.
std::string temperature_text(double tau) {
  return tau == 0.15 ? "6.7" : fmt::format("{:.6g}", 1 / tau);
}

Experiment temperatures() {
  Experiment figure;
  figure.name = "fig-temperature";
  figure.title = "Accuracy against the final and against the initial temperature";
  figure.figure = FigureKind::kTemperature;
  figure.rounds = true;
  for (const TemperatureCurve& curve : temperature_curves()) {
    for (const TemperaturePoint& point : curve.final_points) {
      const std::string t1 = temperature_text(point.tau);
      figure.rows.push_back({curve.name,
                             fmt::format("{} T1={}", curve.name, t1),
                             curve.run({{"t0", "6.7"}, {"t1", t1}}),
                             {point.accuracy, {}, {}},
                             "",
                             "Final temperature",
                             parse_double(t1)});
    }
  }
  for (const TemperatureCurve& curve : temperature_curves()) {
    for (const TemperaturePoint& point : curve.initial_points) {
      const std::string t0 = temperature_text(point.tau);
      figure.rows.push_back({curve.name,
                             fmt::format("{} T0={}", curve.name, t0),
                             curve.run({{"t0", t0}, {"t1", "0.02"}}),
                             {point.accuracy, {}, {}},
                             "",
                             "Initial temperature",
                             parse_double(t0)});
    }
  }
  return figure;
}

RunSpec memory_run(const PaperPoint& point) {
  const int64_t width = point.width.value_or(0);
  const auto resnet20 = [&](const char* method, const Settings& more = {}) {
    return cifar_run("cifar10", "resnet20", width, method, 300, more);
  };
  if (point.curve == "Resnet20") return resnet20("conv");
  if (point.curve == "Resnet20+SAL") return sanet_resnet20("cifar10", width);
  if (point.curve == "Resnet20+SAL2") return sanet_resnet20("cifar10", width, {{"taps", "2"}});
  if (point.curve == "Resnet20+BC") return resnet20("bc", kBinaryConnect);
  if (point.curve == "Resnet20+BWN") return resnet20("bwn");
  return cifar_run("cifar10", point.curve == "MobileNetV2" ? "mobilenetv2" : "squeezenet", 0, "conv");
}

// Its points are those that the report page shows, too.
Experiment memory() {
  Experiment figure;
  figure.name = "fig-memory";
  figure.title = "Accuracy against memory footprint, CIFAR-10";
  figure.figure = FigureKind::kMemory;
  for (const PaperPoint& point : paper_points()) {
    const std::string label = point.width ? fmt::format("{} w={}", point.curve, *point.width) : point.curve;
    figure.rows.push_back(
        {point.curve, label, memory_run(point), {point.accuracy, point.params, {}}, "", "", point.memory()});
  }
  return figure;
}

}  // namespace

std::vector<Experiment> paper_figures() {
  return {
      heatmaps("fig-heatmaps", "Heat maps of kept taps: ResNet-20, CIFAR-10", "resnet20", "ResNet-20",
               sanet_resnet20("cifar10")),
      heatmaps("fig-heatmaps-center", "Heat maps of kept taps: ResNet-20, logits that start with the centre ahead",
               "resnet20-centre", "ResNet-20, centre", sanet_resnet20("cifar10", 83, {{"tap_init", "centre"}})),
      heatmaps("fig-heatmaps-r56", "Heat maps of kept taps: ResNet-56, CIFAR-10", "resnet56", "ResNet-56",
               sanet_resnet56()),
      heatmaps("fig-heatmaps-5x5", "Heat maps of kept taps: ResNet-20 with 5x5 kernels, CIFAR-10", "resnet20-5x5",
               "ResNet-20, 5x5", sanet_resnet20("cifar10", 83, {{"kernel", "5"}})),
      temperatures(),
      memory(),
  };
}

}  // namespace onetap
