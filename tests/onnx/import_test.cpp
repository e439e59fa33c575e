// Names, and models of our own writing; tests/tools/import_test.py holds the reader against ONNX Runtime.
#include "onetap/onnx/import.h"

#include "onetap/graph/text.h"
#include "onetap/graph/zoo/zoo.h"
#include "onetap/onnx/layer_facts.h"
#include "onetap/onnx/names.h"
#include "onetap/onnx/schema.h"
#include "onetap/onnx/writer.h"
#include "onetap/runtime/reference.h"
#include "tests/support/support.h"
#include "tests/tap/random_net.h"

namespace onetap {
namespace {

using Strings = std::vector<std::string>;

TEST(ImportNames, AreThoseOfPyTorchsModules) {
  EXPECT_EQ(layer_of_weight("layer1.0.conv1.weight"), "layer1.0.conv1");
  EXPECT_EQ(layer_of_weight("onnx::Conv_193"), "");
  EXPECT_EQ(layer_of_weight("a b.weight"), "");
  EXPECT_EQ(layer_of_weight(".weight"), "");
  EXPECT_EQ(operator_names("/layer1/layer1.0/conv1/Conv", "Conv"), (Strings{"layer1.0.conv1", "layer1.0.conv1.Conv"}));
  EXPECT_EQ(operator_names("/features/features.1/conv/conv.0/conv.0.2/Clip", "Clip").front(), "features.1.conv.0.2");
  EXPECT_EQ(operator_names("/Flatten", "Flatten"), Strings{"Flatten"});
  EXPECT_EQ(operator_names("pool/mean", "GlobalAveragePool"), (Strings{"pool", "pool_mean"}));
  EXPECT_EQ(operator_names("node_relu_3", "Relu"), Strings{"node_relu_3"});
  EXPECT_EQ(operator_names("a::b c..d.", "Relu"), Strings{"a__b_c.d"});
  EXPECT_EQ(operator_names("", "Relu"), Strings{"Relu"});
}

TEST(ImportNames, NoNameIsTheFrontPartOfAnother) {
  NameTable names;
  EXPECT_EQ(names.take({"a.b"}), "a.b");
  EXPECT_EQ(names.take({"a", "a.Add"}), "a.Add");
  EXPECT_EQ(names.take({"a"}), "a_2");
  EXPECT_EQ(names.take({"a"}), "a_3");
  EXPECT_EQ(names.take({"a.b"}), "a.b_2");
  EXPECT_EQ(names.take({"a.b.c"}), "a_b_c");
  EXPECT_EQ(names.take({}), "node");
}

// Protobuf would read on behind a group, where no count of parts has been.
TEST(Import, RefusesBytesThatHideAModel) {
  const TapNet net = random_tap_net(frozen_form(parse_network("onetap-net 1\nx = input 3x4x4\np = gap x\n")).graph, 1);
  const std::string model = onnx_model(net);
  for (const std::string front : {"\xA3\x06\xA4\x06", "\xBA\x80\x80\x80\x10\x01x"}) {
    testing::expect_error(ErrorKind::kData, "got other bytes", [&] { parse_onnx(front + model, "test"); });
  }
}

// A frozen dense network goes out and comes back: nodes, names and every bit of the weights.
TEST(Import, OfOurOwnExportIsTheIdentity) {
  for (const char* arch : {"resnet8", "mobilenetv2", "squeezenet", "resnet-w"}) {
    NetSpec spec;
    spec.arch = arch;
    spec.width = 8;
    const TapNet net = random_tap_net(frozen_form(build_network(spec)).graph, 3);
    const TapNet again = frozen_net(parse_onnx(onnx_model(net), "test"));
    EXPECT_EQ(network_text(again.graph), network_text(net.graph));
    EXPECT_TRUE(again.layers == net.layers) << arch;
  }
}

constexpr const char* kEveryFunction = R"(onetap-net 1
network every
x = input 3x9x8
a = conv x out=6 kernel=3 bias=1
b = relu6 a
c = hardswish b
d = silu c
e = pad d sides=0,1,2,0
m = pad d sides=0,1,2,0 fill=lowest
n = maxpool m kernel=2
o = affine n
g = gap o
s = linear g out=6
h = hardsigmoid s
t = mul o h
u = sigmoid t
v = mul u o
w = avgpool e kernel=2
k = concat v w
p = gap k
fc = linear p out=4
output fc
)";

TEST(Import, KeepsEveryFunctionInEveryOpset) {
  const TapNet net = random_tap_net(parse_network(kEveryFunction), 5);
  for (int64_t opset = kFirstOnnxOpset; opset <= kLastOnnxOpset; ++opset) {
    OnnxOptions options;
    options.opset = opset;
    const TapNet again = frozen_net(parse_onnx(onnx_model(net, options), "test"));
    EXPECT_EQ(network_text(again.graph), network_text(net.graph)) << opset;
    EXPECT_TRUE(again.layers == net.layers) << opset;
  }
}

constexpr const char* kOwnLayers = R"(onetap-net 1
network own
x = input 4x9x8
a = tapconv x out=6 kernel=3 pad=1 taps=5 share=2
b = shift a kernel=3 counts=1,1,0,1,0,1,0,1,1
c = tapconv b out=4 kernel=3 pad=1 taps=1 share=2x2
s = shift c kernel=3 counts=2,2,0,0,0,0,0,0,0
d = tapconv s out=4 kernel=5 pad=2 taps=2 groups=2
e = conv d out=4
p = gap e
fc = linear p out=3
output fc
)";

// Tap convolutions and shifts too, whatever share of their positions they keep and whatever weights they have.
TEST(Import, OfOurOwnTapsAndShiftsIsTheIdentity) {
  TapNet net = random_tap_net(parse_network(kOwnLayers), 7);
  net.layers.at("d").weight.data<float>()[0] = 0;  // its position is kept
  const std::string bytes = onnx_model(net);
  const TapNet again = frozen_net(parse_onnx(bytes, "test"));
  EXPECT_EQ(network_text(again.graph), network_text(net.graph));
  EXPECT_TRUE(again.layers == net.layers);

  // Weights that have been changed since are read as they are.
  onnx::Model model;
  ASSERT_TRUE(model.ParseFromString(bytes));
  for (onnx::Tensor& tensor : *model.mutable_graph()->mutable_initializer()) {
    if (tensor.name() != "a.weight" && tensor.name() != "b.weight") continue;
    std::vector<float> ones(tensor.raw_data().size() / sizeof(float), 1);
    tensor.set_raw_data(ones.data(), ones.size() * sizeof(float));
  }
  const TapNet changed = frozen_net(parse_onnx(model.SerializeAsString(), "test"));
  EXPECT_EQ(changed.graph.node("a").op, Op::kConv);
  EXPECT_EQ(changed.graph.node("b").op, Op::kConv);
  EXPECT_EQ(changed.graph.node("c").op, Op::kTapConv);
  // Facts that do not fit the layer, too: more outputs that share than there are.
  for (onnx::Entry& entry : *model.mutable_metadata_props()) {
    if (entry.key() != kFloatFactsKey) continue;
    const std::string fitting = "\"share\":\"2x2\"";
    std::string facts = entry.value();
    const size_t at = facts.find(fitting);
    ASSERT_NE(at, std::string::npos) << facts;
    entry.set_value(facts.replace(at, fitting.size(), "\"share\":\"100\""));
  }
  EXPECT_EQ(frozen_net(parse_onnx(model.SerializeAsString(), "test")).graph.node("c").op, Op::kConv);
  for (onnx::Entry& entry : *model.mutable_metadata_props()) {
    if (entry.key() == kFloatFactsKey) entry.set_value("[1]");
  }
  testing::expect_error(ErrorKind::kData, "[onnx] metadata 'layers': expected facts about layers",
                        [&] { frozen_net(parse_onnx(model.SerializeAsString(), "test")); });
}

// Random networks: an active shift comes back as a depthwise convolution that computes the same.
TEST(Import, OfRandomNetworksComputesTheSame) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const TapNet net = testing::random_net(seed);
    const TapNet again = frozen_net(parse_onnx(onnx_model(net), "test"));
    Random random(seed, Purpose::kTest);
    const auto x = testing::random_floats(static_cast<size_t>(element_count(net.graph.input().shape)), random);
    const std::vector<float> expected = run_reference(net, x.data()), got = run_reference(again, x.data());
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-5) << seed;
  }
}

// The bias of a convolution, which layers with a method do not have, becomes a batch norm or a part of one.
TEST(Import, ANetworkToTrainHasNoBiasInConvolutions) {
  const TapNet net = random_tap_net(parse_network("onetap-net 1\nx = input 2x5x5\nc = conv x out=3 kernel=3 bias=1\n"
                                                  "r = relu c\na = affine r\np = gap a\nfc = linear p out=2\n"),
                                    4);
  const ImportedNet imported = parse_onnx(onnx_model(net), "test");
  const ImportedNet trainable = trainable_net(imported);
  EXPECT_EQ(network_text(trainable.graph),
            "onetap-net 1\nnetwork network\nx = input 2x5x5\nc = conv x out=3 kernel=3\nc_bn = bn c\nr = relu c_bn\n"
            "a = bn r\np = gap a\nfc = linear p out=2\noutput fc\n");
  EXPECT_EQ(trainable.tensors.count("c.bias"), 0u);
  EXPECT_EQ(trainable.tensors.at("c_bn.bias"), net.layers.at("c").bias);
  EXPECT_EQ(trainable.tensors.at("a.weight"), net.layers.at("a").weight);
  const std::vector<float> x(50, 0.5f);
  const auto expected = run_reference(net, x.data()), got = run_reference(frozen_net(trainable), x.data());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-5);
}

// Products with constants become a batch norm, which takes in the bias of the convolution before it.
TEST(Import, ABiasBeforeAnAffineGetsNoBatchNormOfItsOwn) {
  const TapNet net = random_tap_net(parse_network("onetap-net 1\nx = input 2x5x5\nc = conv x out=3 kernel=3 bias=1\n"
                                                  "a = affine c\np = gap a\n"),
                                    4);
  const ImportedNet trainable = trainable_net(parse_onnx(onnx_model(net), "test"));
  EXPECT_EQ(
      network_text(trainable.graph),
      "onetap-net 1\nnetwork network\nx = input 2x5x5\nc = conv x out=3 kernel=3\na = bn c\np = gap a\noutput p\n");
  const std::vector<float> x(50, 0.5f);
  const auto expected = run_reference(net, x.data()), got = run_reference(frozen_net(trainable), x.data());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-5);
}

// Where all outputs share positions, channels are moved and a 1x1 convolution adds them up.
TEST(Export, ShiftFormMovesChannels) {
  const TapNet net = random_tap_net(
      parse_network("onetap-net 1\nx = input 4x7x6\na = tapconv x out=5 kernel=3 pad=1 stride=2 share=5 bias=1\n"
                    "b = tapconv a out=3 kernel=3 pad=1 share=2\np = gap b\n"),
      6);
  OnnxOptions options;
  options.form = OnnxForm::kShift;
  options.batch = 2;
  const ImportedNet imported = parse_onnx(onnx_model(net, options), "test");
  EXPECT_EQ(imported.graph.node("a").kernel, (Extent2{1, 1}));
  const Node& moved = imported.graph.node(imported.graph.node("a").inputs[0]);
  EXPECT_EQ(moved.groups, 4);
  EXPECT_EQ(moved.stride, (Extent2{2, 2}));
  EXPECT_EQ(imported.graph.node("b").kernel, (Extent2{3, 3}));
  const TapNet again = frozen_net(imported);
  Random random(1, Purpose::kTest);
  const auto x = testing::random_floats(4 * 7 * 6, random);
  const auto expected = run_reference(net, x.data()), got = run_reference(again, x.data());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-6);

  const TapNet dense = random_tap_net(parse_network("onetap-net 1\nx = input 2x4x4\nc = conv x out=2\n"), 1);
  testing::expect_error(ErrorKind::kUsage, "share=all", [&] { onnx_model(dense, options); });
  options = {};
  options.opset = 21;
  testing::expect_error(ErrorKind::kUsage, "13..20", [&] { onnx_model(dense, options); });
}

}  // namespace
}  // namespace onetap
