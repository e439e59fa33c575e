// Training for int8 against the int8 network that comes of it.
#include "onetap/freeze/freeze.h"
#include "onetap/graph/text.h"
#include "onetap/quant/quantize.h"
#include "onetap/runtime/int8_reference.h"
#include "onetap/train/quantized_training.h"
#include "tests/freeze/compare.h"
#include "tests/graph/small_nets.h"
#include "tests/train/training.h"

namespace onetap {
namespace {

using testing::disturb;
using testing::small_resnet;
using testing::TempDir;
using testing::train_in;

// Of the module that `quantized` rounds: frozen, and in bytes by its own ranges.
TapNet bytes_of(const nn::GraphModule& module) {
  TapNet net = freeze(module);
  net.value_ranges = named_ranges(module->graph(), module->named_buffers()[QuantizedTraining::kRanges]);
  return quantize_net(net, recorded_calibration(net));
}

// Root mean square of the difference over that of `expected`.
double relative_error(const torch::Tensor& got, const torch::Tensor& expected) {
  return ((got - expected).square().mean().sqrt() / expected.square().mean().sqrt()).item<double>();
}

torch::Tensor run_bytes(const TapNet& net, const torch::Tensor& images) {
  const Int8Reference reference(net);
  std::vector<torch::Tensor> outputs;
  for (int64_t i = 0; i < images.size(0); ++i) {
    const std::vector<float> output = reference.run(images[i].contiguous().data_ptr<float>());
    outputs.push_back(torch::tensor(output));
  }
  return torch::stack(outputs);
}

// How many steps the values of an image lie apart in the mean, by place: the module's and those of the bytes.
std::map<std::string, double> steps_apart(nn::GraphModule& module, const TapNet& net, const torch::Tensor& image) {
  std::map<std::string, torch::Tensor> rounded;
  for (const Int8Place& place : int8_places(module->graph()).values) rounded[place.node];
  module->set_observer([&](const Node& node, const torch::Tensor& value) {
    if (rounded.count(node.name) > 0) rounded[node.name] = value.clone();
  });
  module->forward(image.unsqueeze(0));
  module->set_observer(nullptr);
  const Int8Reference reference(net);
  std::map<std::string, std::vector<std::byte>> bytes;
  reference.run(image.contiguous().data_ptr<float>(), [&](int value, const std::vector<std::byte>& of) {
    bytes[reference.plan().plan.value(value).node->name] = of;
  });
  std::map<std::string, double> apart;
  for (const Int8Place& place : int8_places(module->graph()).values) {
    const auto steps = (rounded.at(place.node) / net.value_scales.at(place.value)).round().flatten().contiguous();
    const std::vector<std::byte>& got = bytes.at(place.value);
    EXPECT_EQ(steps.numel(), static_cast<int64_t>(got.size())) << place.value;
    double sum = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      const int byte = place.range.least == 0 ? static_cast<int>(got[i]) : static_cast<int8_t>(got[i]);
      sum += std::abs(steps.data_ptr<float>()[i] - static_cast<float>(byte));
    }
    apart[place.value] = sum / static_cast<double>(got.size());
  }
  return apart;
}

std::vector<Graph> networks() {
  std::vector<Graph> all;
  for (const Method& method : {Method{}, sal_method(), sal_method(1, BlockShare{4, 4}), sal_method(2),
                               sal_method().set("density", 0.5), Method("random-taps")}) {
    all.push_back(small_resnet(method));
  }
  all.push_back(small_resnet(sal_method(), 'A'));
  // Batch norms that stay, a concatenation with one scale for both, a ReLU by itself, pools that add up and that do
  // not.
  all.push_back(parse_network(
      "onetap-net 1\nx = input 3x16x16\nc1 = conv x out=8 kernel=3 pad=1\nb1 = bn c1\nr1 = relu b1\n"
      "n = bn r1\nc2 = conv n out=8 kernel=3 pad=1 bias=1\nr2 = relu c2\nj = concat c2 r2\nm = maxpool j kernel=2 "
      "stride=2\nc3 = conv m out=8 kernel=1 bias=1\ns = add c3 c3\na = avgpool s kernel=2 stride=2\np = gap a\n"
      "fc = linear p out=5\n"));
  return all;
}

// Statistics of these images in every batch norm, so that no bias drowns what it is added to.
void take_statistics(nn::GraphModule& module, const torch::Tensor& images) {
  for (const auto& child : module->modules()) {
    if (auto* norm = child->as<torch::nn::BatchNorm2d>()) norm->options.momentum(1.0);
  }
  const nn::ModeGuard hard(module, nn::AttentionMode::kHard);
  module->train();
  module->forward(images);
  module->eval();
}

TEST(QuantizedTraining, ComputesWhatTheInt8NetworkDoes) {
  torch::manual_seed(91);
  const torch::NoGradGuard no_grad;
  for (const Graph& graph : networks()) {
    nn::GraphModule module(graph);
    disturb(module);
    std::vector<int64_t> shape = graph.input().shape;
    shape.insert(shape.begin(), 6);
    const auto x = torch::randn(shape);
    take_statistics(module, x);
    torch::Tensor floats;
    QuantizedTraining quantized(module);
    int64_t batches = 0;
    quantized.calibrate([&] {
      if (batches++ > 0) return false;
      floats = module->forward(x);
      return true;
    });
    const auto rounded = module->forward(x), bytes = run_bytes(bytes_of(module), x);
    const double off = relative_error(bytes, rounded), by_rounding = relative_error(rounded, floats);
    // What is left are sums in another order near the middle of two steps, and rounded biases; a byte that differs
    // early makes others differ behind it.
    EXPECT_LT(off, 0.6 * by_rounding) << graph.name();
    for (const auto& [place, steps] : steps_apart(module, bytes_of(module), x[0])) {
      EXPECT_LT(steps, place == graph.input().name ? 0.001 : 0.6) << graph.name() << " " << place;
    }
    EXPECT_LT(by_rounding, 0.2);
  }
}

// Trained a little in floats, then for int8: what the run's test says is what the bytes do.
TEST(QuantizedTraining, ARunsTestIsThatOfItsInt8Network) {
  if (testing::kThreadSanitizer) GTEST_SKIP() << "skipped: no threads of its own";
  const TempDir dir;
  Recipe recipe = testing::small_recipe();
  recipe.width = 6;
  recipe.data = "shapes:train=256,test=100";
  recipe.batch_size = 8;
  recipe.schedule = LrSchedule::kCosine;
  recipe.augment = AugmentChoice::kNone;
  recipe.t_end = 0.5;
  train_in(dir / "floats", recipe);
  const double floats = *read_metrics(RunFiles(dir / "floats").metrics()).back().acc_hard;
  recipe.init = (dir / "floats").string();
  recipe.quantize = Quantize::kInt8;
  recipe.lr = 0.005;
  recipe.epochs = 1;
  train_in(dir / "int8", recipe);

  const RunFiles files(dir / "int8");
  nn::GraphModule module(files.read_graph());
  const Checkpoint last = CheckpointFolder(files.checkpoints()).find("last");
  CheckpointFolder::load(last, module);
  TapNet net = freeze(module);
  net.value_ranges = read_ranges(last, files.read_graph());
  const TapNet bytes = quantize_net(net, recorded_calibration(net));
  const DataSource source = open_data(recipe.data);
  StreamOptions options;
  options.view = recipe_view(recipe, net.graph, source);
  options.batch_size = 50;
  BatchStream stream(*source.test, options);
  Batch batch;
  int64_t right = 0, images = 0;
  while (stream.next(batch)) {
    right += run_bytes(bytes, batch.images).argmax(1).eq(batch.labels).sum().item<int64_t>();
    images += batch.labels.size(0);
  }
  ASSERT_EQ(images, 100);
  const double tested = *read_metrics(files.metrics()).back().acc_hard;
  EXPECT_NEAR(static_cast<double>(right) / 100, tested, 0.021);
  EXPECT_GT(static_cast<double>(right) / 100, floats - 0.05);
}

}  // namespace
}  // namespace onetap
