// Weights from elsewhere into a network of ours.
#include "onetap/nn/graph_module.h"
#include "onetap/nn/tensor_file.h"
#include "tests/graph/small_nets.h"
#include "tests/support/support.h"

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
}

}  // namespace
}  // namespace onetap::nn
