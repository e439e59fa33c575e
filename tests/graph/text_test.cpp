#include "onetap/graph/text.h"

#include "onetap/graph/sal.h"
#include "onetap/graph/zoo/zoo.h"
#include "tests/graph/random_graph.h"
#include "tests/support/support.h"

namespace onetap {
namespace {

using testing::expect_error;

const std::string kTiny =
    "onetap-net 1\n"
    "network tiny\n"
    "x = input 3x32x32\n"
    "conv1 = conv x out=16 kernel=3 pad=1\n"
    "layer1.conv = conv conv1 out=16 kernel=3x5 pad=1x2 method=sal taps=2 share=4 init=centre\n"
    "pool = gap layer1.conv\n"
    "fc = linear pool out=10\n"
    "output fc\n";

TEST(NetworkText, ReadsAndWritesTheDocumentedForm) {
  const Graph graph = parse_network(kTiny);
  const Node& node = graph.node("layer1.conv");
  EXPECT_EQ(node.kernel, (Extent2{3, 5}));
  EXPECT_EQ(node.method.name(), "sal");
  EXPECT_EQ(node.method.number("taps"), 2);
  EXPECT_TRUE(node.method.blocks("share") == 4);
  EXPECT_EQ(tap_init(node.method), TapInit::kCentre);
  EXPECT_TRUE(graph.node("fc").bias);
  EXPECT_EQ(network_text(graph), kTiny);
}

TEST(NetworkText, CommentsBlanksAndOrderOfKeysDoNotMatter) {
  const Graph graph = parse_network(
      "# a comment\n\nonetap-net 1 # version\r\nnetwork tiny\nx = input 3x32x32\n"
      "\tconv1  =  conv x   pad=1 kernel=3 out=16\n"
      "layer1.conv = conv conv1 share=4 taps=2 method=sal init=centre out=16 kernel=3x5 pad=1x2 # why\n"
      "pool = gap layer1.conv\nfc = linear pool out=10");
  EXPECT_TRUE(graph == parse_network(kTiny));
}

TEST(NetworkText, RoundTripsRandomGraphs) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    const Graph graph = testing::random_graph(seed);
    const std::string text = network_text(graph);
    const Graph again = parse_network(text);
    ASSERT_TRUE(graph == again) << text;
    ASSERT_EQ(network_text(again), text);
  }
}

TEST(NetworkText, RoundTripsTheZoo) {
  for (const char* arch : {"resnet20", "resnet110", "resnet50-cifar", "resnet-w"}) {
    NetSpec spec;
    spec.arch = arch;
    const Graph graph = build_network(spec);
    EXPECT_TRUE(graph == parse_network(network_text(graph))) << arch;
  }
}

void expect_text_refused(const std::string& lines, const std::string& why) {
  expect_error(ErrorKind::kUsage, why, [&] { parse_network("onetap-net 1\nx = input 3x8x8\n" + lines); });
}

TEST(NetworkText, SaysWhatIsWrongAndWhere) {
  expect_error(ErrorKind::kUsage, "expected 'onetap-net 1' in the first line", [] { parse_network(""); });
  expect_error(ErrorKind::kUsage, "line 1: expected 'onetap-net 1'", [] { parse_network("hello\n"); });
  expect_error(ErrorKind::kUsage, "expected version 1, got '2'", [] { parse_network("onetap-net 2\n"); });
  expect_error(ErrorKind::kUsage, "no nodes", [] { parse_network("onetap-net 1\n"); });
  expect_text_refused("c = convv x out=3\n", "line 3: unknown op 'convv', did you mean 'conv'?");
  expect_text_refused("c = conv x kernal=3\n", "conv has no 'kernal', did you mean 'kernel'?");
  expect_text_refused("c = relu x out=3\n", "relu has no 'out'");
  expect_text_refused("c = conv x out=three\n", "expected a whole number for out, got 'three'");
  expect_text_refused("c = conv x out=-3\n", "expected a whole number for out");
  expect_text_refused("c = conv x out=3 out=4\n", "'out' is given twice");
  expect_text_refused("c = conv x out=3 kernel=1x2x3\n", "expected N or NxM");
  expect_text_refused("c = conv x out=3 bias=yes\n", "expected bias=0 or bias=1");
  expect_text_refused("c = conv x out=3 method=sla\n", "expected method=conv or method=sal");
  expect_text_refused("c = conv x out=3 taps=2\n", "taps needs method=sal");
  expect_text_refused("c = conv x out=3 kernel=3 pad=1 bias=1 method=sal\n",
                      "[net] line 3: c: expected no bias with method=sal");
  expect_text_refused("c = conv x out=3 kernel=3 pad=1 method=sal taps=10\n", "expected taps in 1..9");
  expect_text_refused("c conv x\n", "expected 'NAME = OP");
  expect_text_refused("c = conv y out=3\n", "got 'y'");
  expect_text_refused("y = input 3x8\n", "expected an input shape");
  expect_text_refused("network late\n", "before the first node");
  expect_text_refused("output nothing\n", "no node 'nothing'");
}

TEST(NetworkText, FileErrorsNameTheFile) {
  const testing::TempDir dir;
  testing::write_text(dir / "bad.net", "onetap-net 1\nx = inptu 3\n");
  expect_error(ErrorKind::kUsage, "bad.net", [&] { read_network(dir / "bad.net"); });
  expect_error(ErrorKind::kData, "cannot open", [&] { read_network(dir / "missing.net"); });
}

}  // namespace
}  // namespace onetap
