#include "onetap/tap/test_fact.h"

#include <gtest/gtest.h>

namespace onetap {
namespace {

TEST(TestFact, ComesBackToTheLastDigit) {
  TapNet net;
  EXPECT_FALSE(test_fact(net));
  set_test_fact(net, {0.9241, 10000, "cifar10"});
  EXPECT_EQ(net.facts.at("tested"), "0.9241 of 10000 images, cifar10");
  set_test_fact(net, {1.0 / 3, 3, "folder"});
  const auto fact = test_fact(net);
  ASSERT_TRUE(fact);
  EXPECT_EQ(fact->accuracy, 1.0 / 3);
  EXPECT_EQ(fact->images, 3);
  EXPECT_EQ(fact->data, "folder");
  set_before_fact(net, {0.5, 3, "folder"});
  EXPECT_EQ(net.facts.at("before"), "0.5 of 3 images, folder");
  EXPECT_EQ(test_fact(net)->accuracy, 1.0 / 3);
}

TEST(TestFact, OtherTextsAreNone) {
  TapNet net;
  for (const char* text : {"", "much", " images,  of ", "x of 3 images, y", "0.5 of 0 images, y", "nan of 3 images, y",
                           "1.5 of 3 images, y", "0.5 of 3.5 images, y", "0.5 of  images, y", "-0.1 of 3 images, y"}) {
    net.facts["tested"] = text;
    EXPECT_FALSE(test_fact(net)) << text;
  }
}

}  // namespace
}  // namespace onetap
