#include "onetap/data/shapes.h"

#include "onetap/data/source.h"
#include "tests/support/support.h"

#include <cmath>
#include <set>

namespace onetap {
namespace {

TEST(Shapes, TheSameSeedDrawsTheSameImages) {
  Image a, b;
  draw_shape(3, false, 17, a);
  draw_shape(3, false, 17, b);
  EXPECT_EQ(a.pixels, b.pixels);
  draw_shape(4, false, 17, b);
  EXPECT_NE(a.pixels, b.pixels);
  draw_shape(3, true, 17, b);
  EXPECT_NE(a.pixels, b.pixels) << "training and test images must differ";
}

TEST(Shapes, TenBalancedClasses) {
  const DataSource source = open_data("shapes:train=200,test=50,seed=5");
  EXPECT_EQ(source.train->size(), 200);
  EXPECT_EQ(source.test->size(), 50);
  EXPECT_EQ(source.classes.size(), 10u);
  std::vector<int> counts(10, 0);
  for (int64_t i = 0; i < 200; ++i) ++counts[static_cast<size_t>(source.train->label(i))];
  EXPECT_EQ(counts, std::vector<int>(10, 20));
}

// Colours must not give the class away: per class, the mean of every channel over many images is the same up to
// chance. (That a network of 1x1 convolutions fails and one of 3x3 does well is tested by training both.)
TEST(Shapes, MeanColoursDoNotTellTheClass) {
  if (testing::kThreadSanitizer) GTEST_SKIP() << "skipped: no threads of its own";
  constexpr int64_t kPerClass = 150;
  double sums[10] = {}, squares[10] = {};
  Image image;
  for (int64_t i = 0; i < 10 * kPerClass; ++i) {
    draw_shape(1, false, i, image);
    double mean = 0;
    for (const uint8_t pixel : image.pixels) mean += pixel;
    mean /= static_cast<double>(image.pixels.size());
    sums[i % 10] += mean;
    squares[i % 10] += mean * mean;
  }
  double total = 0;
  for (const double sum : sums) total += sum;
  const double overall = total / (10 * kPerClass);
  for (int k = 0; k < 10; ++k) {
    const double mean = sums[k] / kPerClass;
    const double sd_of_mean = std::sqrt((squares[k] / kPerClass - mean * mean) / kPerClass);
    EXPECT_NEAR(mean, overall, 4 * sd_of_mean) << "class " << k;
  }
}

TEST(DataSpec, SaysWhatItExpects) {
  using testing::expect_error;
  expect_error(ErrorKind::kUsage, "did you mean 'cifar10'?", [] { parse_data_spec("cifra10:x"); });
  expect_error(ErrorKind::kUsage, "expected folder:DIR", [] { parse_data_spec("folder"); });
  expect_error(ErrorKind::kUsage, "expected shapes:train=N", [] { parse_data_spec("shapes:train=0"); });
  expect_error(ErrorKind::kUsage, "shapes has no 'trian', did you mean 'train'?",
               [] { parse_data_spec("shapes:trian=5"); });
  EXPECT_EQ(parse_data_spec("folder:a:b").argument, "a:b");
}

}  // namespace
}  // namespace onetap
