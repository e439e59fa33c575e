// Ops of steps that learn from more than labels: the loss and mixed images, and the decay of logits.
#include "onetap/batches/mix.h"
#include "onetap/fused/ops.h"
#include "onetap/fused/teacher.h"
#include "tests/fused/networks.h"
#include "tests/nn/gradients.h"

namespace onetap::fused {
namespace {

// The reference, and the kernels where there is a GPU.
std::vector<std::pair<std::shared_ptr<Ops>, torch::Device>> all_ops() {
  std::vector<std::pair<std::shared_ptr<Ops>, torch::Device>> all;
  all.emplace_back(reference_ops(), torch::kCPU);
  if (torch::cuda::is_available() && cuda_ops() != nullptr) all.emplace_back(cuda_ops(), torch::kCUDA);
  return all;
}

nn::Targets on(torch::Device device, const nn::Targets& targets) {
  const auto moved = [&](const torch::Tensor& tensor) { return tensor.defined() ? tensor.to(device) : tensor; };
  nn::Targets there(moved(targets.labels));
  there.others = moved(targets.others);
  there.share = moved(targets.share);
  there.teacher = moved(targets.teacher);
  return there;
}

TEST(LossOps, HaveTheValueAndTheGradientOfTheObjective) {
  torch::manual_seed(1);
  for (const auto& [ops, device] : all_ops()) {
    for (const int64_t classes : {2, 10, 70}) {
      for (int kind = 0; kind < 4; ++kind) {
        auto logits = (torch::randn({37, classes}) * 5).requires_grad_();
        nn::Targets targets(torch::randint(0, classes, {37}, torch::kInt64));
        if (kind % 2 == 1) {
          targets.others = targets.labels.flip(0);
          targets.share = torch::tensor(0.3f);
        }
        if (kind >= 2) targets.teacher = torch::randn({37, classes}) * 4;
        LossState state;
        static_cast<nn::Objective&>(state) = {0.1, 0.7, 3};
        state.sums = torch::zeros({2}, torch::TensorOptions(torch::kFloat64).device(device));
        const auto got = ops->loss(state, logits.detach().to(device), on(device, targets), 50).cpu();
        const auto loss = nn::objective_loss(logits, targets, state);
        const auto expected = torch::autograd::grad({loss * (37.0 / 50)}, {logits})[0];
        EXPECT_LT(testing::relative(got, expected), 1e-4) << classes << " classes, kind " << kind;
        EXPECT_NEAR(state.sums[0].item<double>(), 37 * loss.item<double>(), 1e-4 * 37 * loss.item<double>());
        EXPECT_EQ(state.sums[1].item<double>(), logits.argmax(1).eq(targets.main_labels()).sum().item<double>());
      }
    }
  }
}

TEST(MixOps, EqualTheHosts) {
  torch::manual_seed(2);
  const Mix draws[] = {{0.3f, 0.3f, 0, 0, 0, 0}, {0.75f, 1, 1, 2, 4, 7}, {0, 1, 0, 0, 9, 9}, {1, 1, 0, 0, 0, 0}};
  for (const auto& [ops, device] : all_ops()) {
    for (const auto type : {torch::kFloat32, torch::kBFloat16}) {
      const auto images = torch::randn({7, 8, 9, 9}).to(type).contiguous(torch::MemoryFormat::ChannelsLast);
      for (const Mix& mix : draws) {
        StepValues values;
        values.rates = torch::tensor({0.1f, 0.5f, mix.share, mix.weight, mix.top, mix.left, mix.bottom, mix.right});
        values.rates = values.rates.to(device);
        const auto got = ops->mix(images.to(device), values);
        EXPECT_TRUE(got.is_contiguous(torch::MemoryFormat::ChannelsLast));
        EXPECT_TRUE(got.cpu().equal(mixed(images, mix)));
      }
    }
  }
}

TEST(AdvanceOps, BringAllNumbersOfTheNextStep) {
  for (const auto& [ops, device] : all_ops()) {
    AugmentState state;
    state.clock = torch::zeros({2}, torch::TensorOptions(torch::kInt64).device(device));
    const auto counter = torch::full({1}, 1, torch::TensorOptions(torch::kInt64).device(device));
    const auto tables = torch::arange(8 * 4, torch::kFloat32).view({8, 4}).to(device);
    const StepValues values{torch::zeros({8}, tables.options())};
    ops->advance(state, counter, tables, values);
    EXPECT_TRUE(values.rates.cpu().equal(torch::arange(8, torch::kFloat32) * 4 + 2));
    EXPECT_EQ(counter.item<int64_t>(), 2);
    EXPECT_EQ(state.clock[0].item<int64_t>(), 1);
  }
}

// One step from zero momentum and gradient: every number shrinks by rate * decay, logits by their own.
TEST(UpdateOps, LogitsHaveADecayOfTheirOwn) {
  for (const auto& [ops, device] : all_ops()) {
    const auto on_device = torch::TensorOptions(torch::kFloat32).device(device);
    ConvState conv;
    conv.weight = torch::rand({4, 8, 3, 3}, on_device);
    conv.weight_momentum = torch::zeros_like(conv.weight);
    conv.attention = torch::rand({4, 8, 9}, on_device);
    conv.attention_momentum = torch::zeros_like(conv.attention);
    conv.packed = torch::zeros_like(conv.weight).contiguous(torch::MemoryFormat::ChannelsLast);
    conv.grad = torch::zeros_like(conv.packed);
    conv.layout.outputs = 4;
    conv.layout.inputs = 8;
    conv.layout.positions = 9;
    const auto weight = conv.weight * (1 - 0.1 * 0.2), attention = conv.attention * (1 - 0.1 * 0.2 * 0.5);
    const StepValues values{torch::tensor({0.1f, 1.0f}).to(device)};
    ops->update_convs(conv, values, {0.9, false, 0.2, 0.5});
    EXPECT_TRUE(torch::allclose(conv.weight, weight, 1e-6));
    EXPECT_TRUE(torch::allclose(conv.attention, attention, 1e-6));
  }
}

// A network of the usual form and one without, with images that are padded as another network wants them.
TEST(Teachers, SayWhatTheModuleSays) {
  set_gpu_arithmetic(/*tf32=*/false, /*conv_trials=*/10);
  torch::manual_seed(3);
  const torch::NoGradGuard no_grad;
  for (const auto& [ops, device] : all_ops()) {
    for (const char* arch : {"resnet8", "squeezenet"}) {
      nn::GraphModule module(testing::small_network(arch, 4, std::nullopt, 16));
      module->to(device);
      const auto images = torch::randn({6, 3, 16, 16}).to(device);
      module->forward(images);  // statistics other than the first ones
      module->eval();
      Teacher teacher(module, {torch::kFloat32, device.is_cuda()}, ops);
      for (const int64_t channels : {3, 8}) {
        const auto got = teacher.logits(testing::as_activations(images, channels));
        EXPECT_LT(testing::relative(got, module->forward(images)), 1e-4) << arch << ", " << channels << " channels";
      }
      EXPECT_FALSE(module->is_training());
    }
  }
}

}  // namespace
}  // namespace onetap::fused
