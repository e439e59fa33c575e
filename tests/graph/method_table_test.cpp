#include "onetap/graph/method_table.h"

#include "onetap/graph/op.h"
#include "onetap/graph/sal.h"
#include "tests/support/support.h"

namespace onetap {
namespace {

using testing::expect_error;

TEST(Method, IsARowAndItsValues) {
  EXPECT_TRUE(Method().is_dense());
  EXPECT_EQ(Method(), Method("conv"));
  EXPECT_EQ(Method("sal"), sal_method(1, 1, TapInit::kUniform));
  EXPECT_NE(sal_method(2), sal_method(1));
  EXPECT_NE(sal_method(1, 2), sal_method(1, 1));
  EXPECT_NE(sal_method(1, 1, TapInit::kCentre), sal_method());
  EXPECT_NE(sal_method(), frozen_taps(1, 1));
  EXPECT_EQ(sal_method(3, 4, TapInit::kCentre).number("taps"), 3);
  EXPECT_EQ(sal_method(3, 4, TapInit::kCentre).word("init"), "centre");
  expect_error(ErrorKind::kUsage, "expected method conv or sal or random-taps or ", [] { Method("sla"); });
  expect_error(ErrorKind::kFailure, "method conv has no key taps", [] { (void)Method().number("taps"); });
  expect_error(ErrorKind::kFailure, "of another type", [] { Method("sal").set("taps", 0.5); });
  expect_error(ErrorKind::kFailure, "of another type", [] { (void)Method("sal").word("taps"); });
}

TEST(MethodTable, RefusesRowsThatWouldNotDo) {
  const size_t rows = method_table().size();
  const auto refused = [&](const MethodInfo& info, const std::string& why) {
    expect_error(ErrorKind::kUsage, why, [&] { add_method(info); });
    EXPECT_EQ(method_table().size(), rows) << "a refused row must not stay";
  };
  MethodInfo info;
  info.name = "sal";
  refused(info, "two methods are called 'sal'");
  info.name = "frozen";
  refused(info, "two methods are called 'frozen'");
  info.name = "binary";
  refused(info, "two methods are called 'binary'");
  info.name = "new";
  info.frozen = Op::kTapConv;
  refused(info, "to keep positions if it freezes to a tapconv");
  info.frozen = Op::kConv;
  MethodKey taps;
  taps.name = "taps";
  taps.usual = "few";
  info.keys = {taps};
  refused(info, "expected key 'taps' of method new to be as in other methods");
}

TEST(MethodTable, ANodeOfAFrozenNetworkHasItsTaps) {
  EXPECT_EQ(default_node(Op::kTapConv).method, frozen_taps(1, 1));
  EXPECT_TRUE(default_node(Op::kTapConv).is_pruned());
  EXPECT_FALSE(default_node(Op::kConv).is_pruned());
}

}  // namespace
}  // namespace onetap
