#include "onetap/graph/json.h"

#include "onetap/tap/fold.h"
#include "tests/graph/random_graph.h"
#include "tests/support/support.h"

#include <nlohmann/json.hpp>

namespace onetap {
namespace {

using testing::expect_error;
using testing::random_graph;

TEST(GraphJson, RandomGraphsRoundTrip) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Graph graph = random_graph(seed);
    EXPECT_TRUE(parse_graph_json(graph_json(graph), "test") == graph) << seed;
    const Graph frozen = frozen_form(graph).graph;
    EXPECT_TRUE(parse_graph_json(graph_json(frozen), "test") == frozen) << seed;
  }
}

TEST(GraphJson, ReadsAsAScriptExpects) {
  Graph graph("g");
  graph.add(testing::input_node({3, 8, 8}));
  Node conv = testing::conv_node("c", "x", 4, 3);
  conv.stride = {1, 2};
  graph.add(conv);
  const auto object = nlohmann::json::parse(graph_json(graph));
  EXPECT_EQ(object["nodes"][0]["shape"], nlohmann::json({3, 8, 8}));
  EXPECT_EQ(object["nodes"][1]["kernel"], nlohmann::json({3, 3}));
  EXPECT_EQ(object["nodes"][1]["stride"], nlohmann::json({1, 2}));
  EXPECT_EQ(object["nodes"][1]["out"], 4);
  EXPECT_FALSE(object["nodes"][1].contains("pad"));
  EXPECT_EQ(object["output"], "c");
}

TEST(GraphJson, RefusesWhatIsNoNetwork) {
  const auto refused = [](const char* text, const char* part) {
    expect_error(ErrorKind::kData, part, [&] { parse_graph_json(text, "file"); });
  };
  refused("{", "(file)");
  refused("[]", "(file)");
  refused(R"({"name":"n","nodes":[{"name":"x","op":"input","shape":[3,8]}],"output":"x"})", "CxHxW");
  refused(R"({"name":"n","nodes":[{"name":"x","op":"what"}],"output":"x"})", "unknown op 'what'");
  refused(R"({"name":"n","nodes":[{"name":"x","op":"input","shape":[3,8,8]},
             {"name":"c","op":"conv","inputs":["x"],"out":-1}],"output":"c"})",
          "node 2");
  refused(R"({"name":"n","nodes":[{"name":"x","op":"input","shape":[3,8,8]},
             {"name":"c","op":"conv","inputs":["x"],"out":4,"kernle":3}],"output":"c"})",
          "did you mean 'kernel'");
  refused(R"({"name":"n","nodes":[{"name":"x","op":"input","shape":[3,8,8]}],"output":"y"})", "no node 'y'");
  // Frozen networks may say it, and a typing error is told all that could have been meant.
  refused(R"({"name":"n","nodes":[{"name":"x","op":"input","shape":[3,8,8]},
             {"name":"c","op":"conv","inputs":["x"],"out":4,"method":"binery"}],"output":"c"})",
          "or method=binary, got 'binery'");
}

}  // namespace
}  // namespace onetap
