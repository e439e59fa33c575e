// Whatever network the planner accepts: the fused step computes the loss, the gradients and the logits of autograd. And
// whatever the network: so does the step of autograd that a graph can hold.
#include "onetap/fused/autograd_network.h"
#include "onetap/fused/network.h"
#include "tests/fused/same_steps.h"
#include "tests/graph/random_graph.h"

namespace onetap::fused {
namespace {

Node node_of(Op op, const std::string& name, const std::vector<std::string>& inputs) {
  Node node = default_node(op);
  node.name = name;
  node.inputs = inputs;
  return node;
}

// Convolutions with norms, sums, ReLUs and pools, wired at random: values with several readers, and some with none.
Graph random_blocks(uint64_t seed) {
  Random random(seed, Purpose::kTest, 1);
  const auto one_in = [&](uint32_t n) { return random.below(n) == 0; };
  Graph graph("blocks" + std::to_string(seed));
  graph.add(testing::input_node({3, 8, 8}));
  std::vector<std::string> values = {"x"};
  const auto any = [&] { return values[random.below(static_cast<uint32_t>(values.size()))]; };
  const auto keep = [&](Node node) { values.push_back(graph.add(std::move(node))); };
  const uint32_t blocks = 1 + random.below(4);
  for (uint32_t i = 0; i < blocks; ++i) {
    const std::string name = "b" + std::to_string(i);
    Node conv = testing::conv_node(name + "-conv", one_in(3) ? any() : values.back(), 2 + random.below(3), 1);
    if (!one_in(4)) {
      conv.kernel = {3, 3};
      conv.padding = {1, 1};
      if (random.coin()) conv.method = sal_method();
      if (one_in(3)) conv.method = sal_method(1, {2, 2});
      if (one_in(6)) conv.method = sal_method(1, BlockShare::kAllOutputs);
    }
    const std::string made = graph.add(std::move(conv));
    if (one_in(4)) values.push_back(made);  // others may read it, too
    keep(node_of(Op::kBatchNorm, name + "-norm", {made}));
    if (one_in(3)) keep(node_of(Op::kBatchNorm, name + "-norm2", {made}));
    const std::string other = any();
    if (other != values.back() && graph.node(other).shape == graph.node(values.back()).shape) {
      keep(node_of(Op::kAdd, name + "-add", {values.back(), other}));
    }
    if (!one_in(3)) keep(node_of(Op::kRelu, name + "-relu", {values.back()}));
    if (one_in(5) && graph.node(values.back()).shape[1] > 4) {
      Node pool = node_of(Op::kMaxPool, name + "-pool", {values.back()});
      pool.kernel = pool.stride = {2, 2};
      keep(std::move(pool));
    }
  }
  const std::string pooled = graph.add(node_of(Op::kGlobalAvgPool, "pool", {values.back()}));
  Node fc = node_of(Op::kLinear, "fc", {pooled});
  fc.out = 10;
  fc.bias = random.coin();
  graph.add(std::move(fc));
  return graph;
}

bool has_shared_convolution(const Graph& graph) {
  for (const Node& node : graph.nodes()) {
    int norms = 0;
    for (const Node& reader : graph.nodes()) {
      if (reader.op == Op::kBatchNorm && reader.inputs[0] == node.name) ++norms;
    }
    if (norms > 1) return true;
  }
  return false;
}

nn::GraphModule copy_of(const nn::GraphModule& module) {
  nn::GraphModule copy(module->graph());
  nn::load_tensors(SafetensorsFile::parse(nn::tensor_bytes(nn::state_of(*module)), "test"), nn::state_of(*copy),
                   "test");
  copy->set_temperature(1);
  return copy;
}

// A batch that keeps every ReLU of the network off its corner.
torch::Tensor clear_images(const nn::GraphModule& module) {
  const torch::NoGradGuard no_grad;
  const Shape& shape = module->graph().input().shape;
  torch::Tensor images;
  double nearest = 0;
  for (int attempt = 0; attempt < 50 && nearest < 2e-5; ++attempt) {
    nn::GraphModule looked = copy_of(module);
    testing::watch_corners(looked, nearest);
    images = torch::randn({6, shape[0], shape[1], shape[2]});
    looked->forward(images);
  }
  return images;
}

// With momentum from zero and no decay, the velocities after a step are the gradients.
void expect_same_step(const Graph& graph, uint64_t seed, const testing::MakeNetwork& make) {
  torch::manual_seed(seed);
  nn::GraphModule plain(graph);
  nn::GraphModule fused_module = copy_of(plain);
  Sgd plain_sgd(*plain, {0.9, false, 0}), fused_sgd(*fused_module, {0.9, false, 0});
  const auto network = make(fused_module, fused_sgd.state());
  const auto images = clear_images(plain);
  const auto labels = torch::randint(0, 10, {6}, torch::kInt64);
  plain->set_temperature(1);
  const auto loss = torch::nn::functional::cross_entropy(plain->forward(images), labels);
  loss.backward();
  plain_sgd.step(0.05);

  StepValues values{torch::tensor({0.05, 1.0}, torch::kFloat32)};
  LossState sums;
  sums.sums = torch::zeros({2}, torch::kFloat64);
  const auto activations = testing::as_activations(images, network->input_channels());
  network->pack(values);
  const auto dlogits = reference_ops()->loss(sums, network->forward(activations), labels, 6);
  network->backward_and_update(dlogits, /*add=*/false, values, {0.9, false, 0});

  EXPECT_NEAR(sums.sums[0].item<double>() / 6, loss.item<double>(), 1e-4) << graph.name();
  for (const auto& [expected, got] : {std::pair(plain_sgd.state(), fused_sgd.state()),
                                      std::pair(nn::state_of(*plain), nn::state_of(*fused_module))}) {
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_LT(testing::relative(got[i].second.detach().to(torch::kFloat64),
                                  expected[i].second.detach().to(torch::kFloat64)),
                2e-3)
          << graph.name() << ": " << expected[i].first;
    }
  }
  const torch::NoGradGuard no_grad;
  plain->eval();
  network->pack_for_inference();
  EXPECT_LT(testing::relative(network->infer(activations), plain->forward(images)), 5e-3) << graph.name();
}

void expect_same_fused_step(const Graph& graph, uint64_t seed) {
  expect_same_step(graph, seed, [&](const nn::GraphModule& module, const nn::NamedTensors& momenta) {
    const NetworkOptions options{torch::kFloat32, /*pad_channels=*/seed % 2 == 0};
    return std::make_unique<Network>(module, momenta, options, reference_ops());
  });
}

void expect_same_autograd_step(const Graph& graph, uint64_t seed) {
  expect_same_step(graph, seed, [&](const nn::GraphModule& module, const nn::NamedTensors& momenta) {
    return std::make_unique<AutogradNetwork>(module, momenta, AutogradOptions{}, reference_ops());
  });
}

TEST(RandomPlans, ComputeWhatAutogradDoes) {
  int accepted = 0, with_shared_convolution = 0, without_reader = 0;
  for (uint64_t seed = 0; seed < testing::sweep_cases(400); ++seed) {
    for (const Graph& graph : {random_blocks(seed), testing::random_graph(seed)}) {
      const Plan plan = make_plan(graph);
      without_reader += plan.obstacle.find("has no reader") != std::string::npos;
      if (!plan.obstacle.empty()) continue;
      ++accepted;
      with_shared_convolution += has_shared_convolution(graph);
      expect_same_fused_step(graph, seed);
      if (HasFailure()) return;
    }
  }
  EXPECT_GE(accepted, static_cast<int>(testing::sweep_cases(100)));
  EXPECT_GE(with_shared_convolution, static_cast<int>(testing::sweep_cases(10)));
  EXPECT_GE(without_reader, static_cast<int>(testing::sweep_cases(60)));
}

TEST(RandomPlans, NoneIsNeededForStepsOfAutograd) {
  for (uint64_t seed = 0; seed < testing::sweep_cases(60); ++seed) {
    for (const Graph& graph : {random_blocks(seed), testing::random_graph(seed)}) {
      expect_same_autograd_step(graph, seed);
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace onetap::fused
