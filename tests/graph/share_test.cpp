#include "onetap/graph/share.h"

#include "onetap/graph/json.h"
#include "onetap/graph/method.h"
#include "onetap/graph/method_table.h"
#include "onetap/graph/sal.h"
#include "onetap/graph/tap_layout.h"
#include "onetap/graph/text.h"
#include "tests/support/support.h"

namespace onetap {
namespace {

using testing::expect_error;

TEST(BlockShare, ReadsAndWritesItsForms) {
  const auto reads = [](const std::string& text, BlockShare share, const std::string& written) {
    ASSERT_TRUE(parse_share(text).has_value()) << text;
    EXPECT_TRUE(*parse_share(text) == share) << text;
    EXPECT_EQ(share_text(share), written);
  };
  reads("1", {1, 1}, "1");
  reads("4", {4, 1}, "4");
  reads("4x1", {4, 1}, "4");
  reads("4x4", {4, 4}, "4x4");
  reads("1x3", {1, 3}, "1x3");
  reads("all", {BlockShare::kAllOutputs, 1}, "all");
  reads("allx4", {BlockShare::kAllOutputs, 4}, "allx4");
  for (const char* text : {"", "0", "-1", "x", "4x", "x4", "0x4", "4x0", "allx0", "allx", "4xall", "all4", "4x4x4",
                           "4X4", "4 x 4", "four", "ALL", "4.5", "1000000001"}) {
    EXPECT_FALSE(parse_share(text).has_value()) << text;
  }
}

constexpr const char* kNetwork =
    "onetap-net 1\nnetwork blocks\nx = input 6x8x8\na = conv x out=10 kernel=3 pad=1 method={}\ng = gap a\noutput g\n";

Graph network(const std::string& method) {
  std::string text = kNetwork;
  return parse_network(text.replace(text.find("{}"), 2, method));
}

TapLayout layout_of(const std::string& method) {
  const Graph graph = network(method);
  return tap_layout(graph, graph.node("a"));
}

TEST(BlockShare, MakesTheBlocksOfALayout) {
  for (const char* method : {"sal", "random-taps", "magnitude"}) {
    const auto sets = [&](const std::string& share) {
      return layout_of(std::string(method) + " taps=1 share=" + share).code_shape();
    };
    using Sets = std::vector<int64_t>;
    EXPECT_EQ(sets("4"), (Sets{3, 6, 1})) << method;    // 4 + 4 + 2 outputs
    EXPECT_EQ(sets("4x4"), (Sets{3, 2, 1})) << method;  // by 4 + 2 inputs
    EXPECT_EQ(sets("10"), (Sets{1, 6, 1})) << method;
    EXPECT_EQ(sets("all"), (Sets{1, 6, 1})) << method;
    EXPECT_EQ(sets("allx6"), (Sets{1, 1, 1})) << method;
  }
}

TEST(BlockShare, NetworksComeBack) {
  for (const char* method :
       {"sal taps=1 share=4", "sal taps=2 share=4x4", "sal taps=1 share=all", "magnitude taps=3 share=1x6",
        "random-taps taps=1 share=allx2", "sal taps=1 share=4 relax=straight-through",
        "sal taps=1 share=all init=centre relax=softmax"}) {
    const Graph graph = network(method);
    std::string expected = kNetwork;
    EXPECT_EQ(network_text(graph), expected.replace(expected.find("{}"), 2, method));
    EXPECT_TRUE(parse_graph_json(graph_json(graph), "test") == graph) << method;
  }
  EXPECT_EQ(method_summary(network("sal taps=2 share=4x4")), "sal taps=2 share=4x4");
  // As files always had it.
  EXPECT_NE(graph_json(network("sal taps=1 share=4")).find("\"share\":4}"), std::string::npos);
  EXPECT_NE(graph_json(network("sal taps=1 share=4x2")).find("\"share\":\"4x2\""), std::string::npos);
}

TEST(BlockShare, FrozenLayersKeepIt) {
  TapLayout layout = layout_of("sal taps=1 share=4x4");
  EXPECT_EQ(frozen_taps(layout).blocks("share"), BlockShare(4, 4));
  layout = layout_of("sal taps=1 share=all");
  EXPECT_EQ(frozen_taps(layout).blocks("share"), BlockShare(10));
}

TEST(BlockShare, BlocksLargerThanTheLayerAreRefused) {
  expect_error(ErrorKind::kUsage, "a: expected share in 1..10 (its output channels), got 11x2",
               [] { network("sal share=11x2"); });
  expect_error(ErrorKind::kUsage, "a: expected share by 1..6 inputs (its input channels per group), got 4x7",
               [] { network("sal share=4x7"); });
  expect_error(ErrorKind::kUsage, "expected outputs (4), outputs x inputs (4x4), all or allx4 for share, got '4x'",
               [] { network("sal share=4x"); });
  expect_error(ErrorKind::kUsage, "by 1..3 inputs", [] { network("sal share=4x4 groups=2"); });
}

// The word decides: share=10 is all outputs of this layer too.
TEST(Relax, AutoIsStraightThroughWithTheWordAll) {
  const auto relax = [](const std::string& keys) { return tap_relax(network("sal " + keys).node("a").method); };
  for (const char* share : {"share=1", "share=4", "share=4x4", "share=10"}) {
    EXPECT_EQ(relax(share), Relax::kSoftmax) << share;
    EXPECT_EQ(relax(std::string(share) + " relax=straight-through"), Relax::kStraightThrough) << share;
  }
  for (const char* share : {"share=all", "share=allx4"}) {
    EXPECT_EQ(relax(share), Relax::kStraightThrough) << share;
    EXPECT_EQ(relax(std::string(share) + " relax=softmax"), Relax::kSoftmax) << share;
  }
  EXPECT_TRUE(trains_hard(network("sal share=all")));
  EXPECT_TRUE(trains_hard(network("random-taps")));
  EXPECT_FALSE(trains_hard(network("sal share=10")));
  expect_error(ErrorKind::kUsage, "relax=auto or relax=softmax or relax=straight-through, got 'hard'",
               [&] { relax("relax=hard"); });
}

}  // namespace
}  // namespace onetap
