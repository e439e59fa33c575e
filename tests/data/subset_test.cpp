#include "onetap/data/subset.h"

#include "onetap/data/source.h"
#include "tests/support/support.h"

#include <map>
#include <set>

namespace onetap {
namespace {

using testing::expect_error;

// Images whose only pixel tells their number.
std::shared_ptr<MemoryDataset> numbered(const std::vector<int64_t>& labels) {
  auto data = std::make_shared<MemoryDataset>(3, 1, 1);
  for (size_t i = 0; i < labels.size(); ++i) {
    const auto value = static_cast<uint8_t>(i);
    const uint8_t pixel[3] = {value, value, value};
    data->add(pixel, labels[i]);
  }
  return data;
}

std::set<int> numbers(const Dataset& data) {
  std::set<int> found;
  Image image;
  for (int64_t i = 0; i < data.size(); ++i) {
    data.read(i, image);
    found.insert(image.pixels[0]);
  }
  return found;
}

std::map<int64_t, int> count_labels(const Dataset& data) {
  std::map<int64_t, int> counts;
  for (int64_t i = 0; i < data.size(); ++i) ++counts[data.label(i)];
  return counts;
}

const std::vector<int64_t> kLabels = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2};

TEST(Subset, HoldsOutAShareOfEveryClass) {
  const HeldOut parts = hold_out(numbered(kLabels), 0.25, 3);
  // 2.5, 1 and 0.5 of 10, 4 and 2 images, rounded away from 0.
  EXPECT_EQ(count_labels(*parts.held), (std::map<int64_t, int>{{0, 3}, {1, 1}, {2, 1}}));
  std::set<int> all = numbers(*parts.rest);
  EXPECT_EQ(all.size(), 11u);
  for (const int number : numbers(*parts.held)) EXPECT_TRUE(all.insert(number).second) << number;
  EXPECT_EQ(all.size(), kLabels.size());
  EXPECT_EQ(numbers(*hold_out(numbered(kLabels), 0.25, 3).held), numbers(*parts.held));
  EXPECT_NE(numbers(*hold_out(numbered(kLabels), 0.25, 4).held), numbers(*parts.held));
  expect_error(ErrorKind::kData, "at least 2 training images", [] { hold_out(numbered({0, 0, 1}), 0.5, 0); });
}

TEST(Subset, LimitsEvenlyOverTheClasses) {
  EXPECT_EQ(count_labels(*limited(numbered(kLabels), 7, 0)), (std::map<int64_t, int>{{0, 3}, {1, 2}, {2, 2}}));
  EXPECT_EQ(limited(numbered(kLabels), 16, 0)->size(), 16);
  // Small limits are parts of large ones.
  const auto few = numbers(*limited(numbered(kLabels), 4, 9));
  const auto more = numbers(*limited(numbered(kLabels), 9, 9));
  for (const int number : few) EXPECT_EQ(more.count(number), 1u);
}

TEST(Source, OptionsFollowTheData) {
  const DataSource source = open_data("shapes:train=100,test=40,seed=2,limit=60,validation=0.1");
  ASSERT_NE(source.validation, nullptr);
  EXPECT_EQ(source.train->size(), 50);  // one of every class's six is held out
  EXPECT_EQ(source.validation->size(), 10);
  EXPECT_EQ(source.test->size(), 40);
  EXPECT_EQ(open_data("shapes:train=50,test=10,limit=20").train->size(), 20);
  const DataSpec spec = parse_data_spec("folder:a,b/photos,test=0.25,seed=3,strict");
  EXPECT_EQ(spec.argument, "a,b/photos");
  EXPECT_EQ(spec.options, ",test=0.25,seed=3,strict");
  EXPECT_EQ(parse_data_spec("cifar10:,limit=5").argument, "");
  const auto refused = [](const char* text, const char* why) {
    expect_error(ErrorKind::kUsage, why, [&] { parse_data_spec(text); });
  };
  refused("folder:x,test=1", "expected a fraction above 0 and below 1 for test, got '1'");
  refused("folder:x,limit=0", "expected a whole number for limit, got '0'");
  refused("shapes:limit=a", "expected a whole number for limit");
}

}  // namespace
}  // namespace onetap
