// The structure of ONNX models, read by field numbers of onnx.proto; tests/tools/onnx_test.py runs them.
#include "onetap/onnx/writer.h"

#include "onetap/base/version.h"
#include "onetap/graph/text.h"
#include "tests/support/protobuf.h"
#include "tests/support/support.h"
#include "tests/tap/random_net.h"

#include <cstring>
#include <set>

namespace onetap {
namespace {

using testing::expect_error;
using testing::fields;
using testing::random_net;
using namespace std::string_literals;
using Fields = std::multimap<uint64_t, std::string>;
using Texts = std::vector<std::string>;

Texts all(const Fields& message, uint64_t field) {
  Texts found;
  for (auto [at, end] = message.equal_range(field); at != end; ++at) found.push_back(at->second);
  return found;
}

std::string one(const Fields& message, uint64_t field) {
  const Texts found = all(message, field);
  EXPECT_EQ(found.size(), 1u) << "field " << field;
  return found.empty() ? "" : found[0];
}

struct Initialiser {
  Texts dims;
  std::string type, bytes;

  template <typename T>
  std::vector<T> values() const {
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
};

struct Operator {
  std::string type;
  Texts inputs;
  std::map<std::string, Texts> attributes;
};

// name: dimensions, "batch" among them.
std::pair<std::string, Texts> value_info(const std::string& bytes) {
  const Fields value = fields(bytes);
  const Fields tensor = fields(one(fields(one(value, 2)), 1));
  EXPECT_EQ(one(tensor, 1), "1") << "float";
  Texts dims;
  for (const std::string& dim : all(fields(one(tensor, 2)), 1)) dims.push_back(fields(dim).begin()->second);
  return {one(value, 1), dims};
}

struct Model {
  Fields top, graph;
  std::map<std::string, Initialiser> initialisers;
  std::map<std::string, Operator> operators;  // by what they make
  Texts order;

  explicit Model(const TapNet& net) : top(fields(onnx_model(net))), graph(fields(one(top, 7))) {
    for (const std::string& bytes : all(graph, 5)) {
      const Fields tensor = fields(bytes);
      const Initialiser value = {all(tensor, 1), one(tensor, 2), one(tensor, 9)};
      EXPECT_TRUE(initialisers.emplace(one(tensor, 8), value).second);
    }
    for (const std::string& bytes : all(graph, 1)) {
      const Fields node = fields(bytes);
      Operator made = {one(node, 4), all(node, 1), {}};
      for (const std::string& text : all(node, 5)) {
        const Fields attribute = fields(text);
        const bool is_list = attribute.count(8) > 0;
        EXPECT_EQ(one(attribute, 20), is_list ? "7" : "2");
        made.attributes[one(attribute, 1)] = all(attribute, is_list ? 8 : 3);
      }
      EXPECT_EQ(one(node, 2), one(node, 3));
      EXPECT_TRUE(operators.emplace(one(node, 2), made).second) << "made twice: " << one(node, 2);
      order.push_back(one(node, 2));
    }
  }
};

TapNet net_of(const std::string& nodes) {
  return random_tap_net(parse_network("onetap-net 1\nnetwork small\n" + nodes), 1);
}

TEST(Onnx, SaysWhoMadeItAndForWhichOpset) {
  const Model model(net_of("x = input 3x4x5\nr = relu x\n"));
  EXPECT_EQ(one(model.top, 1), "8");
  EXPECT_EQ(one(model.top, 2), "onetap");
  EXPECT_EQ(one(model.top, 3), ONETAP_VERSION);
  const Fields opset = fields(one(model.top, 8));
  EXPECT_EQ(one(opset, 2), "13");
  EXPECT_TRUE(all(opset, 1).empty());
  EXPECT_EQ(one(model.graph, 2), "small");
}

TEST(Onnx, ValuesAreCalledLikeNodesAndBatchesAreFree) {
  const Model model(net_of("x = input 3x4x5\np = gap x\nfc = linear p out=7\nother = relu p\noutput fc\n"));
  EXPECT_EQ(value_info(one(model.graph, 11)), std::pair("x"s, Texts{"batch", "3", "4", "5"}));
  EXPECT_EQ(value_info(one(model.graph, 12)), std::pair("fc"s, Texts{"batch", "7"}));
  EXPECT_EQ(model.order, (Texts{"p/mean", "p", "fc", "other"}));
}

TEST(Onnx, EveryValueIsMadeOnceBeforeItsUse) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const TapNet net = random_net(seed);
    const Model model(net);
    std::set<std::string> known = {value_info(one(model.graph, 11)).first};
    for (const auto& [name, tensor] : model.initialisers) EXPECT_TRUE(known.insert(name).second) << name;
    for (const std::string& name : model.order) {
      for (const std::string& input : model.operators.at(name).inputs) EXPECT_EQ(known.count(input), 1u) << input;
      EXPECT_TRUE(known.insert(name).second) << name;
    }
    for (const Node& node : net.graph.nodes()) EXPECT_EQ(known.count(node.name), 1u) << node.name;
    EXPECT_EQ(known.count(value_info(one(model.graph, 12)).first), 1u);
  }
}

TEST(Onnx, PrunedWeightsAreZeros) {
  TapNet net = net_of("x = input 1x4x4\nc = tapconv x out=2 kernel=1x3 taps=1 bias=1\n");
  net.layers["c"] = {Tensor::of<float>({5, -6}, {2, 1, 1}), Tensor::of<float>({0.5f, 0.25f}, {2}), {2, 0}};
  const Model model(net);
  const Initialiser& weight = model.initialisers.at("c.weight");
  EXPECT_EQ(weight.dims, (Texts{"2", "1", "1", "3"}));
  EXPECT_EQ(weight.type, "1");
  EXPECT_EQ(weight.values<float>(), (std::vector<float>{0, 0, 5, -6, 0, 0}));
  EXPECT_EQ(model.initialisers.at("c.bias").values<float>(), (std::vector<float>{0.5f, 0.25f}));
  EXPECT_EQ(model.operators.at("c").inputs, (Texts{"x", "c.weight", "c.bias"}));
  // And so are those that were dropped.
  net.layers["c"].positions = {3, 0};
  update_dropped(net, "c");
  EXPECT_EQ(Model(net).initialisers.at("c.weight").values<float>(), (std::vector<float>{0, 0, 0, -6, 0, 0}));
}

TEST(Onnx, OperatorsAndAttributes) {
  const Model model(
      net_of("x = input 4x9x9\n"
             "c = conv x out=6 kernel=3x5 stride=2x1 pad=1x2 dilation=1x2 groups=2\n"
             "a = affine c\n"
             "s = add a a a\n"
             "t = add s c\n"
             "v = avgpool t kernel=3 stride=2 pad=1\n"
             "m = maxpool v kernel=2\n"
             "k = concat m m\n"
             "b = subsample k out=15 stride=2x1\n"
             "f = flatten b\n"
             "l = linear f out=3 bias=0\n"));
  const auto& operators = model.operators;
  using Attributes = std::map<std::string, Texts>;
  EXPECT_EQ(operators.at("c").type, "Conv");
  EXPECT_EQ(operators.at("c").attributes, (Attributes{{"kernel_shape", {"3", "5"}},
                                                      {"strides", {"2", "1"}},
                                                      {"pads", {"1", "2", "1", "2"}},
                                                      {"dilations", {"1", "2"}},
                                                      {"group", {"2"}}}));
  EXPECT_EQ(operators.at("c").inputs, (Texts{"x", "c.weight"})) << "no bias";
  EXPECT_EQ(operators.at("a/scaled").type, "Mul");
  EXPECT_EQ(operators.at("a").inputs, (Texts{"a/scaled", "a.bias"}));
  EXPECT_EQ(model.initialisers.at("a.weight").dims, (Texts{"6", "1", "1"}));
  EXPECT_EQ(model.initialisers.at("a.bias").dims, (Texts{"6", "1", "1"}));
  EXPECT_EQ(operators.at("s").type, "Sum");
  EXPECT_EQ(operators.at("s").inputs, (Texts{"a", "a", "a"}));
  EXPECT_EQ(operators.at("t").type, "Add");
  EXPECT_EQ(operators.at("v").attributes.at("count_include_pad"), (Texts{"1"}));
  EXPECT_EQ(operators.at("v").attributes.at("pads"), (Texts{"1", "1", "1", "1"}));
  EXPECT_EQ(operators.at("m").type, "MaxPool");
  EXPECT_EQ(operators.at("k").attributes, (Attributes{{"axis", {"1"}}}));
  EXPECT_EQ(operators.at("b/pixels").inputs, (Texts{"k", "b.starts", "b.ends", "b.axes", "b.steps"}));
  EXPECT_EQ(model.initialisers.at("b.steps").type, "7");
  EXPECT_EQ(model.initialisers.at("b.steps").values<int64_t>(), (std::vector<int64_t>{2, 1}));
  // 12 channels in 15: one zero in front, two behind.
  EXPECT_EQ(model.initialisers.at("b.pads").values<int64_t>(), (std::vector<int64_t>{0, 1, 0, 0, 0, 2, 0, 0}));
  EXPECT_EQ(operators.at("f").type, "Flatten");
  EXPECT_EQ(operators.at("l").type, "Gemm");
  EXPECT_EQ(operators.at("l").attributes, (Attributes{{"transB", {"1"}}}));
  EXPECT_EQ(operators.at("l").inputs, (Texts{"f", "l.weight"}));
}

TEST(Onnx, MetadataAreThoseOfTheTapFile) {
  TapNet net = net_of("x = input 3x4x4\np = gap x\nfc = linear p out=2\n");
  net.pixels = {{0.5f, 0.25f, 0}, {1, 2, 0.1f}};
  net.classes = {"a \"cat\"", "\xc3\xa9"};
  net.facts = {{"step", "12"}, {"path", "not \xff utf-8"}};
  std::map<std::string, std::string> metadata;
  for (const std::string& entry : all(fields(onnx_model(net)), 14))
    metadata[one(fields(entry), 1)] = one(fields(entry), 2);
  EXPECT_EQ(metadata, (std::map<std::string, std::string>{{"mean", "[0.5,0.25,0]"},
                                                          {"sd", "[1,2,0.1]"},
                                                          {"classes", "[\"a \\\"cat\\\"\",\"\xc3\xa9\"]"},
                                                          {"about.step", "12"},
                                                          {"about.path", "not \xef\xbf\xbd utf-8"}}));
}

TEST(Onnx, RefusesWhatNoFileCanHold) {
  // 1 MiB of taps, 4 GiB of zeros around them.
  TapNet net;
  net.graph =
      parse_network("onetap-net 1\nnetwork small\nx = input 512x64x64\nc = tapconv x out=512 kernel=64 taps=1\n");
  net.layers["c"] = {Tensor(DType::kF32, {512, 512, 1}), {}, std::vector<uint16_t>(512 * 512)};
  expect_error(ErrorKind::kUsage, "below 2 GiB with its pruned weights as zeros, got 4294967296 bytes (small)",
               [&] { onnx_model(net); });
}

TEST(Onnx, RefusesANetworkInTraining) {
  TapNet net;
  net.graph = parse_network("onetap-net 1\nx = input 3x4x4\nb = bn x\n");
  expect_error(ErrorKind::kData, "inference ops alone", [&] { onnx_model(net); });
}

}  // namespace
}  // namespace onetap
