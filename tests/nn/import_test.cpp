// Weights from elsewhere into a network of ours.
#include "onetap/graph/text.h"
#include "onetap/nn/graph_module.h"
#include "onetap/nn/tensor_file.h"
#include "tests/graph/small_nets.h"
#include "tests/support/support.h"

#include <cmath>

namespace onetap::nn {
namespace {

using ::onetap::testing::expect_error;
using ::onetap::testing::small_resnet;

// As PyTorch would save a dense torchvision-style model.
NamedTensors foreign_state(torch::ScalarType type, const std::string& prefix) {
  const GraphModule dense(small_resnet(Method{}));
  NamedTensors state;
  for (const auto& [name, tensor] : state_of(*dense)) {
    const bool is_float = tensor.is_floating_point();
    state.emplace_back(prefix + name, is_float ? torch::randn(tensor.sizes()).abs().to(type) : tensor);
  }
  return state;
}

SafetensorsFile file_of(const NamedTensors& state) {
  return SafetensorsFile::parse(tensor_bytes(state), "file");
}

TEST(Import, TorchvisionNamesFillASalNetwork) {
  for (const auto type : {torch::kFloat32, torch::kFloat16, torch::kBFloat16, torch::kFloat64}) {
    for (const char* prefix : {"", "module."}) {
      const NamedTensors foreign = foreign_state(type, prefix);
      const GraphModule module(small_resnet(sal_method()));
      const NamedTensors mine = state_of(*module);
      const auto attention = module->named_parameters()["layer1.0.conv1.attention"].clone();
      const ImportReport report = import_weights(file_of(foreign), mine, "file");
      EXPECT_TRUE(report.unused.empty());
      EXPECT_EQ(report.kept.size(), 6u);  // the logits of six convolutions
      EXPECT_TRUE(module->named_parameters()["layer1.0.conv1.attention"].equal(attention));
      for (const auto& [name, tensor] : foreign) {
        const std::string plain = name.substr(std::string(prefix).size());
        for (const auto& [own, value] : mine) {
          if (own == plain) {
            EXPECT_TRUE(value.equal(tensor.to(value.scalar_type()))) << own;
          }
        }
      }
    }
  }
}

TEST(Import, SaysWhatDoesNotFit) {
  const GraphModule module(small_resnet(sal_method()));
  NamedTensors state = foreign_state(torch::kFloat32, "");
  state.emplace_back("extra.weight", torch::zeros({1}));
  EXPECT_EQ(import_weights(file_of(state), state_of(*module), "file").unused, std::vector<std::string>{"extra.weight"});
  state = foreign_state(torch::kFloat32, "");
  for (auto& [name, tensor] : state) {
    if (name == "fc.weight") tensor = torch::zeros({100, 16});
  }
  expect_error(ErrorKind::kData, "expected shape [10, 16] for 'fc.weight', got [100, 16]",
               [&] { import_weights(file_of(state), state_of(*module), "file"); });
  state = foreign_state(torch::kFloat32, "");
  for (auto& [name, tensor] : state) {
    if (name == "bn1.running_mean") name = "bn1.runing_mean";
  }
  expect_error(ErrorKind::kData, "expected a tensor 'bn1.running_mean', got none, did you mean 'bn1.runing_mean'",
               [&] { import_weights(file_of(state), state_of(*module), "file"); });
  state = foreign_state(torch::kFloat32, "");
  for (auto& [name, tensor] : state) {
    if (name == "fc.bias") tensor = torch::full({10}, std::nan(""));
  }
  expect_error(ErrorKind::kData, "expected finite numbers, got nan or inf in 'fc.bias'",
               [&] { import_weights(file_of(state), state_of(*module), "file"); });
  state = foreign_state(torch::kFloat32, "");
  for (auto& [name, tensor] : state) {
    if (name == "bn1.running_var") tensor = -tensor - 1;
  }
  expect_error(ErrorKind::kData, "got a negative one in 'bn1.running_var'",
               [&] { import_weights(file_of(state), state_of(*module), "file"); });
}

// A dense network with statistics as training leaves them, some channels all but dead.
GraphModule trained_dense(const Graph& graph) {
  GraphModule dense(graph);
  const torch::NoGradGuard no_grad;
  for (auto& item : dense->named_buffers()) {
    if (item.key().find("running_mean") != std::string::npos) item.value().normal_(0, 0.3);
    if (item.key().find("running_var") == std::string::npos) continue;
    item.value().uniform_(0.05, 0.5);
    item.value()[0] = 1e-6;
    item.value()[1] = 3e-3;
  }
  dense->eval();
  return dense;
}

// The start of a network with attention from the weights of `dense`, in evaluation at temperature t0.
GraphModule started_from(const GraphModule& dense, const Graph& graph, double t0) {
  GraphModule module(graph);
  import_weights(file_of(state_of(*dense)), state_of(*module), "file");
  std::set<std::string> layers;
  for (const auto& trained : module->trained_layers()) layers.insert(trained.name);
  module->set_temperature(t0);
  module->weights_imported(layers);
  module->eval();
  return module;
}

TEST(Import, ANetworkWithAttentionStartsAsTheDenseOne) {
  torch::manual_seed(71);
  const torch::NoGradGuard no_grad;
  GraphModule dense = trained_dense(small_resnet(Method{}));
  const auto x = torch::randn({4, 3, 32, 32});
  const auto expected = dense->forward(x);
  for (const double t0 : {6.7, 1.0}) {
    for (const Method& method : {sal_method(), sal_method(1, BlockShare{4, 2}), sal_method(2),
                                 sal_method(2, {}, TapInit::kMagnitude), sal_method(1, {}, TapInit::kMagnitude),
                                 sal_method(1, {}, TapInit::kCentre), sal_method().set("density", 0.5)}) {
      GraphModule module = started_from(dense, small_resnet(method), t0);
      const double off = (module->forward(x) - expected).abs().max().item<double>();
      EXPECT_LT(off, 1e-5 * expected.abs().max().item<double>()) << t0 << " " << method.word("init");
      if (t0 < 6) continue;
      // Nearly as large as the dense ones, not nine times as large: only so do they learn as fast.
      const auto weight = module->named_parameters()["layer3.0.conv2.weight"].abs().mean();
      const auto before = dense->named_parameters()["layer3.0.conv2.weight"].abs().mean();
      EXPECT_LT((weight / before).item<double>(), 3.5) << t0;
    }
  }
}

TEST(Import, WithoutABatchNormTheWeightsTakeTheAttentionBack) {
  torch::manual_seed(72);
  const torch::NoGradGuard no_grad;
  const auto net = [](const std::string& method) {
    return parse_network("onetap-net 1\nx = input 3x8x8\nc = conv x out=4 kernel=3 pad=1" + method +
                         "\nr = relu c\nb = bn r\np = gap b\nfc = linear p out=2\n");
  };
  GraphModule dense = trained_dense(net(""));
  GraphModule module = started_from(dense, net(" method=sal"), 6.7);
  const auto x = torch::randn({2, 3, 8, 8});
  EXPECT_TRUE(torch::allclose(module->forward(x), dense->forward(x), 1e-5, 1e-6));
  EXPECT_TRUE(module->named_buffers()["b.running_var"].equal(dense->named_buffers()["b.running_var"]));
}

// A hard forward pass has one tap, whatever the weights: there is nothing to keep, and nothing is scaled.
TEST(Import, StraightThroughStartsFromTheWeightsAsTheyAre) {
  GraphModule dense = trained_dense(small_resnet(Method{}));
  const GraphModule module = started_from(dense, small_resnet(sal_method().set("relax", "straight-through")), 6.7);
  for (const char* name : {"layer2.0.conv2.weight", "layer2.0.bn2.weight"}) {
    EXPECT_TRUE(module->named_parameters()[name].equal(dense->named_parameters()[name])) << name;
  }
}

TEST(GraphModule, FixedNormsKeepTheirStatistics) {
  torch::manual_seed(73);
  GraphModule module = trained_dense(small_resnet(Method{}));
  const auto x = torch::randn({4, 3, 32, 32});
  const auto in_evaluation = module->forward(x);
  std::set<std::string> norms;
  for (const Node& node : module->graph().nodes()) {
    if (node.op == Op::kBatchNorm) norms.insert(node.name);
  }
  module->fix_norms(norms);
  module->train();
  EXPECT_TRUE(torch::allclose(module->forward(x), in_evaluation, 1e-5, 1e-5));
  EXPECT_EQ(module->named_buffers()["bn1.num_batches_tracked"].item<int64_t>(), 0);
  norms.erase("bn1");
  module->fix_norms(norms);
  const auto others = module->named_buffers()["layer1.0.bn1.running_mean"].clone();
  const auto own = module->named_buffers()["bn1.running_mean"].clone();
  module->forward(x);
  EXPECT_TRUE(module->named_buffers()["layer1.0.bn1.running_mean"].equal(others));
  EXPECT_FALSE(module->named_buffers()["bn1.running_mean"].equal(own));
}

}  // namespace
}  // namespace onetap::nn
