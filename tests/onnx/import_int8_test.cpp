// Quantised models: our own export comes back as the network that it was; others are refused with what differs.
#include "onetap/graph/text.h"
#include "onetap/graph/zoo/zoo.h"
#include "onetap/onnx/import.h"
#include "onetap/onnx/schema.h"
#include "onetap/onnx/writer.h"
#include "onetap/runtime/int8_reference.h"
#include "onetap/runtime/reference.h"
#include "onetap/tap/tap_file.h"
#include "tests/graph/small_nets.h"
#include "tests/quant/random_int8_net.h"
#include "tests/support/support.h"

#include <cmath>
#include <functional>
#include <set>

namespace onetap {
namespace {

using testing::expect_error;
using testing::quantized;
using testing::random_image;

void expect_same(const TapNet& net, const TapNet& again, const std::string& what) {
  EXPECT_EQ(network_text(again.graph), network_text(net.graph)) << what;
  EXPECT_TRUE(again.layers == net.layers) << what;
  EXPECT_EQ(again.value_scales, net.value_scales) << what;
  EXPECT_TRUE(tap_bytes(again) == tap_bytes(net)) << what;
}

void expect_same_logits(const TapNet& net, const TapNet& again, const std::string& what) {
  ASSERT_TRUE(again.is_int8()) << what;
  const Int8Reference expected(net), got(again);
  for (uint64_t seed = 0; seed < 3; ++seed) {
    const std::vector<float> image = random_image(net.graph, seed);
    EXPECT_EQ(got.run(image.data()), expected.run(image.data())) << what;
  }
}

TapNet reimported(const TapNet& net, int64_t opset = kFirstOnnxOpset) {
  OnnxOptions options;
  options.opset = opset;
  return frozen_net(parse_onnx(onnx_model(net, options), "test"));
}

// The model, changed by hand.
std::string changed(const TapNet& net, const std::function<void(onnx::Model&)>& change) {
  onnx::Model model;
  EXPECT_TRUE(model.ParseFromString(onnx_model(net)));
  change(model);
  return model.SerializeAsString();
}

onnx::Tensor& initialiser(onnx::Model& model, const std::string& name) {
  for (onnx::Tensor& tensor : *model.mutable_graph()->mutable_initializer()) {
    if (tensor.name() == name) return tensor;
  }
  throw std::runtime_error("no initialiser " + name);
}

std::string without_metadata(const TapNet& net) {
  return changed(net, [](onnx::Model& model) { model.clear_metadata_props(); });
}

TapNet small_net() {
  return quantized(random_tap_net(parse_network("onetap-net 1\nx = input 3x6x6\n"
                                                "c = conv x out=4 kernel=3 pad=1 bias=1\nr = relu c\n"
                                                "d = tapconv r out=4 kernel=3 pad=1 bias=1 share=2\ns = add d r\n"
                                                "p = gap s\nfc = linear p out=3\n"),
                                  7),
                   7);
}

TEST(ImportInt8, OfOurOwnExportIsTheIdentity) {
  for (const char* share : {"1", "4", "4x4", "all", "allx4"}) {
    for (const char shortcut : {'A', 'B'}) {
      const Graph graph = frozen_form(testing::small_resnet(sal_method(1, parse_share(share).value()), shortcut)).graph;
      TapNet net = quantized(random_tap_net(graph, 2), 2);
      net.pixels = {{0.5f, 0.25f, 0.125f}, {1, 2, 4}};
      net.facts["name"] = "a network";
      const std::string what = std::string(share) + ' ' + shortcut;
      expect_same(net, reimported(net), what);
      expect_same_logits(net, reimported(net, kLastOnnxOpset), what);
    }
  }
  for (const char* arch : {"resnet8", "resnet-w", "squeezenet"}) {
    NetSpec spec;
    spec.arch = arch;
    spec.width = 8;
    const TapNet net = quantized(random_tap_net(frozen_form(build_network(spec)).graph, 3), 3);
    expect_same(net, reimported(net), arch);
  }
}

// Every op that comes back as it was; a kept layer in floats, dropped weights, several taps, groups, depthwise layers.
constexpr const char* kForms = R"(onetap-net 1
network forms
x = input 3x11x9
a = tapconv x out=20 kernel=3x5 pad=1x2 taps=2 share=3 bias=1
ra = relu a
s = shift ra kernel=3 dilation=2
t = shift s kernel=3 counts=3,3,0,0,5,0,0,4,5
rt = relu t
c = conv rt out=20 kernel=3 pad=1 groups=20 bias=1
b = affine c
sum = add ra b c
peak = maxpool sum kernel=3 stride=2 pad=1
mean = avgpool peak kernel=3 stride=1x2 pad=1
thin = subsample mean out=26 stride=2
deep = tapconv thin out=8 kernel=3 pad=2 dilation=2 groups=2 taps=1 bias=1 dropped=20
wide = conv thin out=8 kernel=3 pad=2 dilation=2
both = add deep wide
bent = relu both
flat = flatten bent
pool = gap bent
all = concat flat pool
hidden = linear all out=9
rest = relu hidden
fc = linear rest out=5
output fc
)";

TapNet every_form(const QuantizeOptions& options = {}) {
  TapNet floats = random_tap_net(parse_network(kForms), 4);
  // Taps that are kept though all of their weights are 0: the model has them as zeros among zeros.
  auto* weight = floats.layers.at("a").weight.data<float>();
  std::fill(weight, weight + 9 * 2, 0.0f);
  return quantized(floats, 4, options);
}

TEST(ImportInt8, KeepsEveryForm) {
  const TapNet net = every_form();
  expect_same(net, reimported(net), "all");
  QuantizeOptions options;
  options.kept = {"a", "fc", "b"};
  const TapNet kept = every_form(options);
  expect_same(kept, reimported(kept), "kept");
}

// Nodes that the output does not need are left out by the reader.
TapNet without_unread(const TapNet& net) {
  std::set<std::string> needed = {net.graph.output(), net.graph.input().name};
  const auto& nodes = net.graph.nodes();
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    if (needed.count(node->name) > 0) needed.insert(node->inputs.begin(), node->inputs.end());
  }
  TapNet made = net;
  made.graph = Graph(net.graph.name());
  for (const Node& node : nodes) {
    if (needed.count(node.name) > 0) {
      made.graph.add(node);
    } else {
      made.layers.erase(node.name);
    }
  }
  made.graph.set_output(net.graph.output());
  return made;
}

bool has_shift(const TapNet& net) {
  const auto& nodes = net.graph.nodes();
  return std::any_of(nodes.begin(), nodes.end(), [](const Node& node) { return node.op == Op::kShift; });
}

// Another tool may have taken the metadata away: the bytes are the same.
TEST(ImportInt8, GivesTheSameBytesWithoutMetadata) {
  const Graph graph = frozen_form(testing::small_resnet(sal_method(1, parse_share("4x4").value()))).graph;
  const TapNet net = quantized(random_tap_net(graph, 2), 2);
  const TapNet again = frozen_net(parse_onnx(without_metadata(net), "test"));
  expect_same_logits(net, again, "4x4");
  EXPECT_LT(tap_bytes(again).size(), tap_bytes(net).size() * 11 / 10);  // taps were found
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const TapNet random = quantized(without_unread(testing::random_net(seed)), seed);
    expect_same_logits(random, reimported(random), "seed " + std::to_string(seed));
    if (has_shift(random)) continue;
    expect_same_logits(random, frozen_net(parse_onnx(without_metadata(random), "test")), "bare");
  }
}

// To train: floats, close to what the bytes give.
TEST(ImportInt8, ANetworkToTrainHasTheFloatsThatBytesStandFor) {
  const TapNet net = small_net();
  const ImportedNet trainable = trainable_net(parse_onnx(onnx_model(net), "test"));
  EXPECT_EQ(trainable.int8, nullptr);
  EXPECT_NE(trainable.notes.at(0).find("quantized"), std::string::npos);
  const float scale = static_cast<float>(net.layers.at("c").scale.of(1));
  EXPECT_EQ(trainable.tensors.at("c.weight").data<float>()[27],
            static_cast<float>(net.layers.at("c").weight.data<int8_t>()[27]) * scale);
  const TapNet floats = frozen_net(trainable);
  EXPECT_FALSE(floats.is_int8());
  const std::vector<float> image = random_image(net.graph, 1);
  const std::vector<float> expected = Int8Reference(net).run(image.data()), got = run_reference(floats, image.data());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 0.1);
}

// Bytes for weights alone: a network of floats.
TEST(ImportInt8, WeightsInBytesAloneAreFloats) {
  const TapNet net = small_net();
  const std::string model = changed(net, [](onnx::Model& message) {
    auto& nodes = *message.mutable_graph()->mutable_node();
    for (onnx::Node& node : nodes) {
      const bool of_value =
          node.op_type() == "QuantizeLinear" || (node.op_type() == "DequantizeLinear" && node.attribute_size() == 0);
      if (!of_value) continue;
      node.set_op_type("Identity");
      while (node.input_size() > 1) node.mutable_input()->RemoveLast();
    }
  });
  const ImportedNet imported = parse_onnx(model, "test");
  EXPECT_EQ(imported.int8, nullptr);
  EXPECT_NE(imported.notes.at(0).find("integers"), std::string::npos);
}

TEST(ImportInt8, OtherSchemesAreRefusedWithWhatDiffers) {
  const TapNet net = small_net();
  const auto refused = [&](const char* expected, const std::function<void(onnx::Model&)>& change) {
    const std::string model = changed(net, change);
    expect_error(ErrorKind::kData, expected, [&] { parse_onnx(model, "test"); });
  };
  const float third = 0.333f;
  refused("QuantizeLinear 'r/bytes' (opset 13): expected a zero point of 0",
          [](onnx::Model& model) { initialiser(model, "r/zero").set_raw_data(std::string(1, '\x03')); });
  refused("QuantizeLinear 'r/bytes' (opset 13): expected uint8 where nothing is negative, got int8",
          [](onnx::Model& model) { initialiser(model, "r/zero").set_data_type(onnx::Tensor::INT8); });
  refused("QuantizeLinear 'x/bytes' (opset 13): expected int8 where values may be negative",
          [](onnx::Model& model) { initialiser(model, "x/zero").set_data_type(onnx::Tensor::UINT8); });
  refused("expected a finite scale above 0, got 0",
          [](onnx::Model& model) { initialiser(model, "r/scale").set_raw_data(std::string(4, '\0')); });
  const auto change_scale = [&](const char* name) {
    return [=](onnx::Model& model) {
      std::memcpy(initialiser(model, name).mutable_raw_data()->data(), &third, sizeof(float));
    };
  };
  refused("Conv 'c' (opset 13): expected scales of weights", change_scale("c.weight/scale"));
  refused("Conv 'd' (opset 13): expected a bias in units", change_scale("d.bias/scale"));
  refused("expected a bias of 16 bits", [](onnx::Model& model) {
    const int32_t bias = 12345677;
    std::memcpy(initialiser(model, "c.bias/bytes").mutable_raw_data()->data(), &bias, sizeof(bias));
  });
  refused("expected weights of -127 to 127, got -128",
          [](onnx::Model& model) { (*initialiser(model, "c.weight/bytes").mutable_raw_data())[0] = '\x80'; });
  const auto node = [](onnx::Model& model, const std::string& name) -> onnx::Node& {
    for (onnx::Node& one : *model.mutable_graph()->mutable_node()) {
      if (one.name() == name) return one;
    }
    throw std::runtime_error("no node " + name);
  };
  // A value that is not rounded.
  refused("scale of the value of 's'", [&](onnx::Model& model) {
    for (const char* name : {"s/bytes", "s"}) {
      node(model, name).set_op_type("Identity");
      while (node(model, name).input_size() > 1) node(model, name).mutable_input()->RemoveLast();
    }
  });
  refused("reads, to be rounded to bytes", [&](onnx::Model& model) { node(model, "d").set_input(0, "c"); });
  refused("Relu 'r/unrounded' (opset 13): expected input 0 in floats",
          [&](onnx::Model& model) { node(model, "r/unrounded").set_input(0, "x/bytes"); });
  refused("scale and zero point of QuantizeLinear",
          [&](onnx::Model& model) { node(model, "r").set_input(1, "x/scale"); });
  refused("nobody reads before it is rounded",
          [&](onnx::Model& model) { node(model, "s/unrounded").set_input(1, "r/unrounded"); });
  refused("got scales along axis 1",
          [&](onnx::Model& model) { node(model, "d.weight").mutable_attribute(0)->set_i(1); });
  const auto change_facts = [](const char* text) {
    return [=](onnx::Model& model) {
      for (onnx::Entry& entry : *model.mutable_metadata_props()) {
        if (entry.key() == "int8") entry.set_value(text);
      }
    };
  };
  refused("metadata 'int8': expected facts", change_facts("[1]"));
  refused("metadata 'int8': expected facts", change_facts(R"({"d": 3})"));
  refused("metadata 'int8': expected facts", change_facts(R"({"d": {"taps": 1, "share": "no"}})"));
  refused("expected the taps of 'c'", change_facts(R"({"c": {"taps": 1, "share": "1"}})"));
  refused("expected the taps of 'fc'", change_facts(R"({"fc": {"taps": 1, "share": "1"}})"));
  refused("expected the taps of 'd'", change_facts(R"({"d": {"taps": 1, "share": "2", "zeros": [0, 99]}})"));
  refused("expected the shift of 'd'",
          change_facts(R"({"d": {"shift": {"kernel": [3, 3], "dilation": [1, 1], "counts": []}}})"));
  refused("expected scales of weights", change_facts(R"({"c": {"base": 1e30, "bias_shift": 0}})"));
}

}  // namespace
}  // namespace onetap
