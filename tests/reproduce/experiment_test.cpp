#include "onetap/reproduce/experiment.h"

#include "onetap/base/text.h"
#include "onetap/graph/zoo/zoo.h"
#include "onetap/report/paper_points.h"
#include "tests/support/support.h"

#include <algorithm>
#include <map>
#include <set>

namespace onetap {
namespace {

using testing::expect_error;
using Takes = RunSpec::Takes;

const ExperimentRow& find_row(const char* experiment, const std::string& label, const std::string& data) {
  for (const ExperimentRow& row : find_experiment(experiment).rows) {
    if (row.label == label && row.run.data == data) return row;
  }
  throw std::runtime_error("no such row");
}

TEST(Experiments, HaveTheNamesOfTheIssue) {
  for (const char* name :
       {"table1", "table2", "table3", "table-imagenet", "fig-heatmaps", "fig-heatmaps-center", "fig-heatmaps-r56",
        "fig-heatmaps-5x5", "fig-temperature", "fig-memory", "uneven-shifts", "rivals"}) {
    const Experiment& experiment = find_experiment(name);
    EXPECT_FALSE(experiment.rows.empty()) << name;
    EXPECT_TRUE(experiment.in_all) << name << ": part of 'all'";
  }
  for (const char* name : {"learning", "depth-width", "density", "demo"}) EXPECT_FALSE(find_experiment(name).in_all);
  expect_error(ErrorKind::kUsage, "did you mean 'table1'", [] { find_experiment("tabel1"); });
  expect_error(ErrorKind::kUsage, "known: table1, table2, table3", [] { find_experiment("nonsense"); });
}

TEST(Experiments, EveryRowHasARecipeThatIsWhole) {
  for (const Experiment& experiment : experiments()) {
    std::set<std::pair<std::string, std::string>> labels;
    for (const ExperimentRow& row : experiment.rows) {
      SCOPED_TRACE(experiment.name + ", " + row.label);
      EXPECT_TRUE(labels.emplace(row.run.data, row.label).second) << "a row's name stands once";
      for (const double scale : {1.0, 0.1, 0.001}) check_recipe(experiment_recipe(row.run, scale));
      EXPECT_EQ(row.run.takes != Takes::kNothing, row.run.source != nullptr);
      EXPECT_GT(experiment_data(row.run.data).train_images, 0);
    }
  }
}

// 126 weights of 10 classes at width 97 and so on, counted by hand in the paper's rules: tests/count has the rest.
TEST(Experiments, EveryRowBuildsItsNetwork) {
  size_t built = 0;
  for (const Experiment& experiment : experiments()) {
    for (const ExperimentRow& row : experiment.rows) {
      SCOPED_TRACE(experiment.name + ", " + row.label);
      if (row.run.takes == Takes::kChannels) {
        EXPECT_FALSE(experiment_counts(row.run).has_value()) << "cut on the way";
        continue;
      }
      const auto counts = experiment_counts(row.run);
      ASSERT_TRUE(counts.has_value());
      ++built;
      // As the paper prints it: rounded or cut off after two or three digits.
      if (row.published.params && row.label != "ResNet-50, 1308 M" && row.label.rfind("ShiftNet", 0) != 0) {
        EXPECT_NEAR(counts->params / *row.published.params, 1, 0.05);
      }
    }
  }
  EXPECT_GT(built, 150u);
}

TEST(Experiments, CountsOfTheTables) {
  EXPECT_EQ(experiment_counts(find_row("table1", "ShiftNet", "cifar10").run)->params, 1177946);
  EXPECT_EQ(experiment_counts(find_row("table1", "ASNet", "cifar100").run)->params, 1024684);
  EXPECT_EQ(experiment_counts(find_row("table1", "SANet", "cifar10").run)->params, 981609.5);
  EXPECT_EQ(experiment_counts(find_row("table1", "SANet", "cifar100").run)->params, 1011579.5);
  EXPECT_EQ(experiment_counts(find_row("table1", "Baseline", "cifar100").run)->macs, 183250208);
  EXPECT_EQ(experiment_counts(find_row("table2", "SANet", "cifar10").run)->params, 366251);
  EXPECT_EQ(experiment_counts(find_row("table2", "ResNet-56 A", "cifar10").run)->params, 853018);
  EXPECT_EQ(experiment_counts(find_row("table3", "SANet", "cifar100").run)->params, 3960207.5);
  EXPECT_EQ(experiment_counts(find_row("table3", "ResNet-50, 16.9 M", "cifar100").run)->params, 16910362);
  // A ResNet-20 of 1x1 convolutions at width 97: 126 w^2 + 165 w + 10.
  EXPECT_EQ(experiment_counts(find_row("uneven-shifts", "as many of each shift", "cifar10").run)->params, 1201549);
}

TEST(Experiments, TheMemoryFigureHasThePublishedPoints) {
  const Experiment& figure = find_experiment("fig-memory");
  ASSERT_EQ(figure.rows.size(), 26u);
  for (size_t i = 0; i < figure.rows.size(); ++i) {
    const PaperPoint& point = paper_points()[i];
    SCOPED_TRACE(figure.rows[i].label);
    const auto counts = experiment_counts(figure.rows[i].run);
    EXPECT_EQ(counts->params, point.params);
    EXPECT_EQ(counts->activations, point.activations);
    EXPECT_EQ(figure.rows[i].x, point.memory());
  }
}

TEST(Experiments, TheTemperatureFigureHasThePapersPoints) {
  std::map<std::string, size_t> points;
  for (const ExperimentRow& row : find_experiment("fig-temperature").rows) {
    ++points[row.panel + ", " + row.group];
    EXPECT_TRUE(row.x && row.published.accuracy);
    const bool is_final = row.panel == "Final temperature";
    EXPECT_EQ(parse_double(row.run.setting(is_final ? "t1" : "t0")), row.x);
    EXPECT_EQ(row.run.setting(is_final ? "t0" : "t1"), is_final ? "6.7" : "0.02");
  }
  // Counted in the paper's source.
  const std::map<std::string, size_t> expected = {
      {"Final temperature, Resnet-20+CIFAR10", 11},   {"Final temperature, Resnet56+CIFAR10", 9},
      {"Final temperature, Resnet-20+CIFAR100", 11},  {"Final temperature, Resnet-50+CIFAR100", 9},
      {"Initial temperature, Resnet-20+CIFAR10", 18}, {"Initial temperature, Resnet56+CIFAR10", 10},
      {"Initial temperature, Resnet-20+CIFAR100", 8}, {"Initial temperature, Resnet-50+CIFAR100", 9}};
  EXPECT_EQ(points, expected);
}

double macs(const ExperimentRow& row) {
  return experiment_counts(row.run).value().macs;
}

TEST(Experiments, DepthsAndWidthsNeedAsManyMultiplications) {
  const Experiment& table = find_experiment("depth-width");
  ASSERT_EQ(table.rows.size(), 6u * 3);
  std::map<std::string, size_t> of_group;
  for (const ExperimentRow& row : table.rows) {
    EXPECT_NEAR(macs(row) / macs(find_row("depth-width", "ResNet-20, one tap", "cifar10")), 1, 0.05) << row.label;
    ++of_group[row.group];
    const bool is_dense = row.group == "Dense";
    EXPECT_EQ(row.run.setting("method"), is_dense ? "conv" : "sal") << row.label;
    EXPECT_EQ(row.run.setting("taps"), row.group == "Two taps" ? "2" : "") << row.label;
    EXPECT_EQ(row.run.setting("harden"), is_dense ? "" : "0.8") << row.label;
  }
  EXPECT_EQ(of_group, (std::map<std::string, size_t>{{"Dense", 6}, {"One tap", 6}, {"Two taps", 6}}));
}

TEST(Experiments, ADensityStandsBeforeTheNarrowerNetworkOfItsMultiplications) {
  const Experiment& table = find_experiment("density");
  size_t pairs = 0;
  for (size_t i = 0; i + 1 < table.rows.size(); ++i) {
    const ExperimentRow &row = table.rows[i], &narrow = table.rows[i + 1];
    if (row.run.setting("density").empty()) continue;
    ++pairs;
    EXPECT_NEAR(macs(narrow) / macs(row), 1, 0.02) << row.label;
    Settings expected = row.run.settings;
    expected.erase(std::remove(expected.begin(), expected.end(),
                               std::pair<std::string, std::string>("density", row.run.setting("density"))),
                   expected.end());
    for (auto& [key, value] : expected) {
      if (key == "width") value = narrow.run.setting("width");
    }
    EXPECT_EQ(narrow.run.settings, expected) << "but for the width, the same training";
  }
  EXPECT_EQ(pairs, 6u);
}

// One help at a time over the same training, so that a difference has one cause.
TEST(Experiments, LearningAddsOneHelpAtATime) {
  for (const char* data : {"cifar10", "cifar100"}) {
    const RunSpec& base = find_row("learning", "nothing", data).run;
    std::set<std::string> added;
    for (const ExperimentRow& row : find_experiment("learning").rows) {
      if (row.group != "Alone" || row.run.data != data || row.label == "nothing") continue;
      Settings more;
      for (const auto& setting : row.run.settings) {
        const bool is_base = std::find(base.settings.begin(), base.settings.end(), setting) != base.settings.end();
        if (!is_base) more.push_back(setting);
      }
      const bool has_teacher = row.run.teacher != nullptr, has_source = row.run.takes == Takes::kWeights;
      EXPECT_EQ(more.size() + (has_teacher ? 1 : 0) + (has_source ? 1 : 0), 1u) << row.label;
      EXPECT_EQ(row.run.settings.size(), base.settings.size() + more.size()) << row.label;
      added.insert(has_teacher ? "teacher" : has_source ? "init" : more.at(0).first);
    }
    EXPECT_EQ(added, (std::set<std::string>{"teacher", "init", "ema", "mixup", "cutmix", "augment", "t_end", "harden",
                                            "logit_decay", "recalibrate"}));
    const RunSpec& all = find_row("learning", "all", data).run;
    EXPECT_NE(all.teacher, nullptr);
    EXPECT_EQ(all.takes, Takes::kWeights);
    // Their weights fit.
    EXPECT_EQ(all.source->setting("width"), all.setting("width"));
    for (const char* key : {"ema", "mixup", "cutmix", "augment", "harden", "logit_decay", "recalibrate"}) {
      EXPECT_FALSE(all.setting(key).empty()) << key;
    }
  }
}

// The recipes that people read are the experiments that are run.
TEST(Experiments, AgreeWithTheRecipes) {
  const struct {
    const char *file, *experiment, *label, *data;
  } pairs[] = {{"cifar10-shiftresnet110", "table1", "ShiftNet", "cifar10"},
               {"cifar100-shiftresnet110", "table1", "ShiftNet", "cifar100"},
               {"cifar10-asnet", "table1", "ASNet", "cifar10"},
               {"cifar100-asnet", "table1", "ASNet", "cifar100"},
               {"cifar10-resnet56-baseline", "table2", "ResNet-56 A", "cifar10"},
               {"cifar100-resnet50-baseline", "table3", "ResNet-50, 16.9 M", "cifar100"},
               {"cifar10-uneven-shifts", "uneven-shifts", "in SANet's proportions", "cifar10"},
               {"cifar10-bc", "fig-memory", "Resnet20+BC w=100", "cifar10"},
               {"cifar10-bwn", "fig-memory", "Resnet20+BWN w=80", "cifar10"},
               {"cifar10-mobilenetv2", "fig-memory", "MobileNetV2", "cifar10"},
               {"cifar10-squeezenet", "fig-memory", "SqueezeNet", "cifar10"},
               {"imagenet-w16-baseline", "table-imagenet", "ResNet-w16 (CLs)", "imagenet"},
               {"imagenet-w24-baseline", "table-imagenet", "ResNet-w24 (CLs)", "imagenet"},
               {"imagenet-shiftnet-a", "table-imagenet", "ShiftNet-A", "imagenet"},
               {"imagenet-shiftnet-b", "table-imagenet", "ShiftNet-B", "imagenet"},
               {"cifar10-sanet", "table1", "SANet", "cifar10"},
               {"cifar10-baseline", "table1", "Baseline", "cifar10"},
               {"cifar100-sanet", "table1", "SANet", "cifar100"},
               {"cifar100-baseline", "table1", "Baseline", "cifar100"},
               {"cifar10-resnet56-sanet", "table2", "SANet", "cifar10"},
               {"cifar100-resnet50-sanet", "table3", "SANet", "cifar100"},
               {"imagenet-w32-sanet", "table-imagenet", "ResNet-w32 + SAL", "imagenet"},
               {"imagenet-w64-sanet", "table-imagenet", "ResNet-w64 + SAL", "imagenet"}};
  for (const auto& pair : pairs) {
    const Recipe file = read_recipe(std::filesystem::path(ONETAP_RECIPES) / (std::string(pair.file) + ".toml"));
    const Recipe row = experiment_recipe(find_row(pair.experiment, pair.label, pair.data).run, 1);
    for (const RecipeField& field : recipe_fields()) {
      const std::string key = field.key;
      if (key == "data" || key == "workers") continue;
      EXPECT_EQ(recipe_field_text(row, field), recipe_field_text(file, field)) << pair.file << ": " << key;
    }
  }
}

TEST(ExperimentRecipe, ScalesWhatIsCountedInEpochs) {
  const RunSpec& sanet = find_row("table1", "SANet", "cifar10").run;
  EXPECT_EQ(experiment_recipe(sanet, 1).epochs, 300);
  const Recipe tenth = experiment_recipe(sanet, 0.1);
  EXPECT_EQ(tenth.epochs, 30);
  EXPECT_EQ(tenth.lr_every, 10);
  EXPECT_EQ(tenth.t1, 0.02);
  const Recipe least = experiment_recipe(sanet, 0.001);
  EXPECT_EQ(least.epochs, 1);
  EXPECT_EQ(least.lr_every, 1);
  const Recipe shift = experiment_recipe(find_row("table1", "ShiftNet", "cifar10").run, 0.5);
  EXPECT_EQ(shift.epochs, 82);
  EXPECT_EQ(shift.lr_milestones, "40.5,61");
}

}  // namespace
}  // namespace onetap
