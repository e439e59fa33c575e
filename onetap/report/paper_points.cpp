#include "onetap/report/paper_points.h"

namespace onetap {

const std::vector<PaperPoint>& paper_points() {
  static const std::vector<PaperPoint> points = {
      {"Resnet20", 64, 4327754, 1608970, 95.21},
      {"Resnet20", 32, 1084586, 806026, 94.4},
      {"Resnet20", 16, 272474, 404554, 92.48},
      {"Resnet20", 8, 68786, 203818, 88.37},
      {"Resnet20+SAL", 10, 15710, 246322, 83.2},
      {"Resnet20+SAL", 30, 131410, 732802, 92.65},
      {"Resnet20+SAL", 40, 231410, 976042, 93.64},
      {"Resnet20+SAL", 70, 700010, 1705762, 95.01},
      {"Resnet20+SAL", 83, 981609.5, 2021974, 95.3},
      {"Resnet20+SAL", 100, 1421510, 2435482, 95.63},
      {"Resnet20+SAL", 120, 2043010, 2921962, 95.8},
      {"Resnet20+SAL2", 30, 248860, 732802, 93.29},
      {"Resnet20+SAL2", 50, 685760, 1219282, 95},
      {"Resnet20+SAL2", 60, 985510, 1462522, 95.25},
      {"Resnet20+SAL2", 90, 2209960, 2192242, 95.86},
      {"Resnet20+SAL2", 110, 3297260, 2678722, 95.87},
      {"Resnet20+BC", 100, 339394.375, 2512282, 94.34},
      {"Resnet20+BC", 80, 218817.5, 2010442, 93.5},
      {"Resnet20+BC", 64, 141328, 1608970, 93},
      {"Resnet20+BWN", 160, 859225, 4017802, 95.7},
      {"Resnet20+BWN", 80, 218817.5, 2010442, 95},
      {"Resnet20+BWN", 60, 124590.625, 1508602, 94.27},
      {"Resnet20+BWN", 40, 56713.75, 1006762, 93.41},
      {"Resnet20+BWN", 32, 36941, 806026, 92.53},
      {"MobileNetV2", std::nullopt, 2296922, 3595530, 94},
      {"SqueezeNet", std::nullopt, 734986, 734378, 92.23},
  };
  return points;
}

}  // namespace onetap
