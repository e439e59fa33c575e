// What a new method costs: one row and one file (tests/support/keep_centre.h). Everything here finds it in the table.
#include "onetap/count/count.h"
#include "onetap/freeze/freeze.h"
#include "onetap/graph/json.h"
#include "onetap/graph/method.h"
#include "onetap/graph/text.h"
#include "onetap/runtime/reference.h"
#include "onetap/tap/fold.h"
#include "onetap/tap/tap_file.h"
#include "tests/graph/small_nets.h"
#include "tests/support/keep_centre.h"
#include "tests/train/training.h"

namespace onetap {
namespace {

using testing::expect_error;

// Before main(), as a library with methods of its own would.
const MethodInfo& kKeepCentre = testing::add_keep_centre();

const std::string kText =
    "onetap-net 1\nnetwork tiny\nx = input 3x8x8\nc = conv x out=6 kernel=3 pad=1 method=keep-centre fade=0.25\n"
    "p = gap c\nfc = linear p out=10\noutput fc\n";

TEST(NewMethod, IsReadAndWritten) {
  const Graph graph = parse_network(kText);
  const Method& method = graph.node("c").method;
  EXPECT_EQ(&method.info(), &kKeepCentre);
  EXPECT_EQ(method.real("fade"), 0.25);
  EXPECT_EQ(network_text(graph), kText);
  EXPECT_TRUE(parse_graph_json(graph_json(graph), "test") == graph);
  EXPECT_EQ(method_summary(graph), "keep-centre fade=0.25");
  const auto refused = [](const std::string& keys, const std::string& why) {
    expect_error(ErrorKind::kUsage, why,
                 [&] { parse_network("onetap-net 1\nx = input 3x8x8\nc = conv x out=6 " + keys + "\n"); });
  };
  refused("kernel=3 method=keep-centre fade=2", "c: expected fade in 0..1, got 2");
  refused("kernel=3 method=keep-centre fade=much", "expected a number for fade, got 'much'");
  refused("kernel=3 method=keep-centre taps=2", "taps needs method=sal");
  refused("kernel=3 fade=0.5", "fade needs method=keep-centre");
  refused("method=keep-centre", "more than one position");
  refused("method=keep-center", " or method=keep-centre or method=binary, got 'keep-center'");
}

TEST(NewMethod, IsCounted) {
  const Graph graph = parse_network(kText);
  const auto params = [&](CountRules rules) { return count_network(graph, rules).layers[1].params; };
  EXPECT_EQ(params(CountRules::kPlain), 6 * 3 * 9 + 6);         // weights and gains
  EXPECT_EQ(params(CountRules::kPaper), 6 * 3 + 3 * 4 / 32.0);  // a weight a slice, a position of 4 bits an input
}

TEST(NewMethod, StandsInRecipes) {
  Recipe recipe;
  apply_recipe_text(recipe, "method = \"keep-centre\"\nfade = 0.5\n", "test.toml");
  check_recipe(recipe);
  EXPECT_EQ(recipe_method(recipe), Method("keep-centre").set("fade", 0.5));
  EXPECT_NE(recipe_text(recipe).find("\nfade = 0.5\n"), std::string::npos);
  const RecipeField& field = known_recipe_field("fade", "test");
  EXPECT_EQ(field.flag(), "--fade");
  EXPECT_STREQ(field.value_name(), "X");
  expect_error(ErrorKind::kUsage, "in 0..1, got 3", [&] { set_recipe_field(recipe, field, "3", "fade"); });
}

TEST(NewMethod, TrainsFreezesAndRuns) {
  const testing::TempDir dir;
  Recipe recipe;
  apply_recipe_text(recipe,
                    "arch = \"resnet8\"\nwidth = 4\nmethod = \"keep-centre\"\ndata = \"shapes:train=96,test=32\"\n"
                    "epochs = 2\nbatch_size = 32\nlr = 0.05\nthreads = 1\nworkers = 1\ndevice = \"cpu\"\n",
                    "test.toml");
  const RecipeField& engine = known_recipe_field("engine", "test");
  std::vector<double> losses;
  for (const std::string how : {"plain", "captured", "fused"}) {
    set_recipe_field(recipe, engine, how, "engine");
    testing::train_in(dir / how, recipe);
    const auto metrics = read_metrics(RunFiles(dir / how).metrics());
    losses.push_back(metrics.back().loss);
    EXPECT_TRUE(metrics.back().acc_hard.has_value()) << "no test of what is frozen";
  }
  for (const double loss : losses) EXPECT_NEAR(loss, losses[0], 2e-3 * losses[0]);

  const RunFiles files(dir / "fused");
  nn::GraphModule module(files.read_graph());
  CheckpointFolder::load(CheckpointFolder(files.checkpoints()).find("last"), module);
  const TapNet net = parse_tap(tap_bytes(freeze(module)), "test");
  const Node& conv = net.graph.node("layer1.0.conv1");
  EXPECT_EQ(conv.op, Op::kTapConv);
  EXPECT_EQ(net.tensors(conv).positions, std::vector<uint16_t>(4, 4));  // the centre, for every input

  const torch::NoGradGuard no_grad;
  module->eval();
  const nn::ModeGuard hard(module, nn::AttentionMode::kHard);
  const auto x = torch::randn({1, 3, 32, 32});
  const auto expected = module->forward(x).flatten();
  const auto got = run_reference(net, x.data_ptr<float>());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], expected[static_cast<int64_t>(i)].item<double>(), 1e-4) << i;
  }
}

}  // namespace
}  // namespace onetap
