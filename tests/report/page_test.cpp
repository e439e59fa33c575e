#include "onetap/report/page.h"

#include "onetap/count/count.h"
#include "onetap/graph/method.h"
#include "onetap/graph/sal.h"
#include "onetap/graph/text.h"
#include "onetap/graph/zoo/zoo.h"
#include "onetap/report/paper_points.h"
#include "onetap/tap/random_net.h"
#include "onetap/tap/tap_file.h"
#include "tests/support/support.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <limits>
#include <map>

namespace onetap {
namespace {

using nlohmann::json;
using testing::expect_error;
using testing::TempDir;
using testing::write_text;

Graph network(const std::string& arch, int64_t width, Method method) {
  NetSpec spec;
  spec.arch = arch;
  spec.width = width;
  Graph graph = build_network(spec);
  apply_method(graph, method, "");
  return graph;
}

Graph sal_network(const std::string& arch, int64_t width, int64_t taps = 1) {
  return network(arch, width, sal_method(taps));
}

MetricLine metric(int64_t epoch, const std::string& split, double soft, std::optional<double> hard) {
  MetricLine line;
  line.epoch = epoch;
  line.split = split;
  line.loss = 1.0 / static_cast<double>(epoch);
  line.acc_soft = soft;
  line.acc_hard = hard;
  line.lr = 0.1;
  line.temperature = 2;
  line.wall_s = 10.0 * static_cast<double>(epoch);
  return line;
}

LayerAttention layer(const std::string& name, std::vector<int64_t> kept, std::optional<double> agreement, size_t bin) {
  LayerAttention attention;
  attention.name = name;
  attention.kernel_h = attention.kernel_w = 3;
  attention.mean_p.assign(9, 1.0 / 9);
  attention.kept = std::move(kept);
  attention.max_p.assign(LayerAttention::kBins, 0.0);
  attention.max_p.at(bin) = 1;
  attention.agreement = agreement;
  return attention;
}

ReportRun sal_run() {
  ReportRun run;
  run.label = "runs/sal";
  run.recipe.emplace();
  run.recipe->width = 4;
  run.recipe->epochs = 3;
  run.graph = sal_network("resnet8", 4);
  run.metrics = {metric(1, "train", 0.5, {}),  metric(1, "test", 0.6, 0.2), metric(2, "train", 0.7, {}),
                 metric(2, "test", 0.8, 0.75), metric(3, "train", 0.8, {}), metric(3, "test", 0.82, 0.7)};
  AttentionLine line;
  line.epoch = 1;
  line.temperature = 2;
  line.layers = {layer("layer1.0.conv1", {0, 0, 0, 0, 10, 0, 0, 0, 0}, {}, 2),
                 layer("layer1.0.conv2", {5, 5, 5, 5, 5, 5, 0, 0, 0}, {}, 4)};
  run.attention.push_back(line);
  line.epoch = 2;
  line.layers[0].agreement = 1.0;
  line.layers[1].agreement = 0.5;
  run.attention.push_back(line);
  return run;
}

// The text inside the script element that holds the data.
std::string data_text(const std::string& page) {
  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const size_t begin = page.find(open);
  EXPECT_NE(begin, std::string::npos);
  const size_t end = page.find("</script>", begin);
  return page.substr(begin + open.size(), end - begin - open.size());
}

json data_of(const std::vector<ReportRun>& runs) {
  return json::parse(data_text(report_page(runs)));
}

size_t occurrences(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(ReportPage, StandsAlone) {
  const std::string page = report_page({sal_run()});
  EXPECT_EQ(page.compare(0, 15, "<!DOCTYPE html>"), 0);
  EXPECT_EQ(page.find("{{"), std::string::npos) << "a mark of the template was not filled";
  EXPECT_EQ(page.find(" src="), std::string::npos);
  EXPECT_EQ(page.find("@import"), std::string::npos);
  EXPECT_EQ(page.find("https://"), std::string::npos);
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
  EXPECT_EQ(page.find("innerHTML"), std::string::npos);
  for (const char* id : {"summary", "curves", "gap", "maps", "confidence", "agreement", "memory", "layers"}) {
    EXPECT_NE(page.find("<section id=\"" + std::string(id) + "\""), std::string::npos) << id;
  }
}

TEST(ReportPage, SaysWhatTheRunReached) {
  const json run = data_of({sal_run()}).at("runs").at(0);
  EXPECT_EQ(run.at("label"), "runs/sal");
  EXPECT_EQ(run.at("network"), "resnet8");
  EXPECT_EQ(run.at("width"), 4);
  EXPECT_EQ(run.at("method"), "sal taps=1 share=1");
  EXPECT_EQ(run.at("epochs_done"), 3);
  EXPECT_EQ(run.at("epochs_total"), 3);
  EXPECT_EQ(run.at("final_soft"), 0.82);
  EXPECT_EQ(run.at("final_hard"), 0.7);
  EXPECT_EQ(run.at("best_hard"), 0.75);
  EXPECT_EQ(run.at("best_epoch"), 2);
  EXPECT_EQ(run.at("wall_s"), 30);
  EXPECT_EQ(run.at("ended_early"), false);
  EXPECT_EQ(run.at("curves").at("epoch"), json({1, 2, 3}));
  EXPECT_EQ(run.at("curves").at("hard"), json({0.2, 0.75, 0.7}));
  EXPECT_EQ(run.at("curves").at("train_loss").at(0), 1.0);
  EXPECT_NEAR(run.at("curves").at("gap").at(0).get<double>(), 0.4, 1e-12);
}

TEST(ReportPage, KnowsWhatARunIsTestedOn) {
  ReportRun run = sal_run();
  const auto test_set = [&](const std::string& data, int64_t limit) {
    run.recipe->data = data;
    run.recipe->limit = limit;
    return data_of({run}).at("runs").at(0).at("test_set").get<std::string>();
  };
  EXPECT_EQ(test_set("shapes:test=200", 0), "shapes:test=200");
  EXPECT_EQ(test_set("shapes:test=200", 5), "shapes:test=200,limit=5");
  EXPECT_EQ(test_set("cifar10:/data", 9999), "cifar10:/data,limit=9999");
  EXPECT_EQ(test_set("cifar10:/data", 10000), "cifar10:/data");  // all of its test images
  run.recipe->validation = 0.1;                                  // of the training images
  run.recipe->strict = true;
  EXPECT_EQ(test_set("folder:/photos", 0), "folder:/photos");
  run.recipe.reset();
  EXPECT_TRUE(data_of({run}).at("runs").at(0).at("test_set").is_null());
}

// A page can be mailed: it has no more of the run's start than it shows.
TEST(ReportPage, DoesNotNameTheMachine) {
  ReportRun run = sal_run();
  run.provenance = {{"command", "onetap train"}, {"host", "secret-workstation"}, {"cpu", "a CPU"}};
  const json shown = data_of({run}).at("runs").at(0).at("provenance");
  EXPECT_EQ(shown, json({{"command", "onetap train"}, {"cpu", "a CPU"}}));
}

TEST(ReportPage, HasTheRemarksOfItsRuns) {
  ReportRun run = sal_run(), other = sal_run();
  run.remarks = {"model.tap is old", "</script>"};
  const json runs = data_of({run, other}).at("runs");
  EXPECT_EQ(runs.at(0).at("remarks"), json({"model.tap is old", "</script>"}));
  EXPECT_EQ(runs.at(1).at("remarks"), json::array());
}

// Two layers of 9 positions, recorded `records` times with these counts and this mean P.
ReportRun still_run(size_t records, const std::vector<int64_t>& kept, const std::vector<double>& mean_p) {
  ReportRun run = sal_run();
  AttentionLine line = run.attention[0];
  run.attention.clear();
  for (size_t i = 0; i < records; ++i) {
    line.epoch = static_cast<int64_t>(i) + 1;
    for (LayerAttention& one : line.layers) {
      one.kept = kept;
      one.mean_p = mean_p;
      one.agreement = i == 0 ? std::optional<double>() : 1.0;
    }
    run.attention.push_back(line);
  }
  return run;
}

json still_of(const ReportRun& run) {
  return data_of({run}).at("runs").at(0).at("attention").at("still");
}

TEST(ReportPage, TellsWhetherTapsEverMoved) {
  const std::vector<double> even(9, 1.0 / 9);
  std::vector<double> uneven = even;
  uneven[0] += 1e-3;
  const std::vector<int64_t> drawn = {3, 2, 4, 3, 3, 2, 4, 3, 3}, first = {27, 0, 0, 0, 0, 0, 0, 0, 0},
                             first_two = {27, 27, 0, 0, 0, 0, 0, 0, 0}, centre = {0, 0, 0, 0, 27, 0, 0, 0, 0};
  EXPECT_EQ(still_of(still_run(3, first, even)), "tie");
  EXPECT_EQ(still_of(still_run(3, first_two, even)), "tie");
  EXPECT_EQ(still_of(still_run(3, first, uneven)), "unmoved");
  EXPECT_EQ(still_of(still_run(3, drawn, even)), "unmoved") << "as logits drawn at random, at a high temperature";
  EXPECT_EQ(still_of(still_run(3, centre, even)), "unmoved");
  EXPECT_EQ(still_of(still_run(3, {27, 26, 0, 0, 0, 0, 0, 0, 0}, even)), "unmoved");
  EXPECT_TRUE(still_of(still_run(2, first, even)).is_null()) << "two records say little";

  ReportRun run = still_run(4, first, even);
  run.attention[2].layers[1].kept = centre;
  EXPECT_TRUE(still_of(run).is_null()) << "an agreement of 0.999999 is recorded as 1";
  run = still_run(4, first, even);
  run.attention[3].layers[0].agreement = 0.9;
  EXPECT_TRUE(still_of(run).is_null());
  run = still_run(4, first, even);
  run.attention[1].layers.pop_back();
  EXPECT_TRUE(still_of(run).is_null()) << "a layer without a record";
  run = still_run(4, first, even);
  run.attention[0].layers[0].kept = drawn;
  EXPECT_TRUE(still_of(run).is_null());
}

// 2 x 9e18 is more than an int64_t holds. By hand: the second layer has two thirds of all taps.
TEST(ReportPage, CountsBeyondAllNumbersAreAddedUp) {
  constexpr int64_t kHuge = 9'000'000'000'000'000'000;
  ReportRun run = sal_run();
  AttentionLine line = run.attention[1];
  line.layers = {layer("layer1.0.conv1", {kHuge, 0, 0, 0, 0, 0, 0, 0, 0}, 0.25, 2),
                 layer("layer1.0.conv2", {kHuge, kHuge, 0, 0, 0, 0, 0, 0, 0}, 1.0, 4)};
  run.attention = {line};
  const json attention = data_of({run}).at("runs").at(0).at("attention");
  EXPECT_EQ(attention.at("mean_agreement").at(0), 0.75);
  EXPECT_EQ(attention.at("mean_max_p").at(0).at(4), 0.6667);
}

// By hand: 10 taps agree fully, 30 taps by half, so 25 of 40; a quarter of the slices is in bin 2.
TEST(ReportPage, MeansOverLayersAreWeightedByTaps) {
  const json attention = data_of({sal_run()}).at("runs").at(0).at("attention");
  EXPECT_EQ(attention.at("epoch"), json({1, 2}));
  EXPECT_EQ(attention.at("layers").size(), 2u);
  EXPECT_TRUE(attention.at("mean_agreement").at(0).is_null());
  EXPECT_EQ(attention.at("mean_agreement").at(1), 0.625);
  EXPECT_EQ(attention.at("mean_max_p").at(0).at(2), 0.25);
  EXPECT_EQ(attention.at("mean_max_p").at(0).at(4), 0.75);
  EXPECT_EQ(attention.at("kept").at(0).at(0).at(4), 10);
}

TEST(ReportPage, HostileNamesStayData) {
  const std::string attack = "</script><script>alert(1)</script><!-- {{report.js}} \" ' \\ \xff";
  ReportRun run = sal_run();
  run.label = attack;
  run.attention[0].layers[0].name = attack;
  const std::string page = report_page({run}), plain = report_page({sal_run()});
  EXPECT_EQ(occurrences(page, "<script"), occurrences(plain, "<script"));
  EXPECT_EQ(occurrences(page, "</script"), occurrences(plain, "</script"));
  EXPECT_EQ(page.find("<!--"), std::string::npos);
  const json data = json::parse(data_text(page));
  EXPECT_EQ(data.at("runs").at(0).at("label"), attack.substr(0, attack.size() - 1) + "\xef\xbf\xbd");
}

TEST(ReportPage, DenseRunHasNoAttentionAndNoTemperature) {
  ReportRun run = sal_run();
  run.graph = network("resnet8", 4, Method{});
  run.attention.clear();
  const json data = data_of({run}).at("runs").at(0);
  EXPECT_EQ(data.at("method"), "dense");
  EXPECT_TRUE(data.at("attention").is_null());
  EXPECT_TRUE(data.at("curves").at("temperature").at(0).is_null());
}

TEST(ReportPage, ValuesThatAreNotNumbersAreLeftOut) {
  ReportRun run = sal_run();
  run.metrics[1].loss = std::numeric_limits<double>::quiet_NaN();
  run.metrics[3].acc_soft = std::numeric_limits<double>::infinity();
  run.metrics.pop_back();
  const json curves = data_of({run}).at("runs").at(0).at("curves");
  EXPECT_TRUE(curves.at("test_loss").at(0).is_null());
  EXPECT_TRUE(curves.at("soft").at(1).is_null());
  EXPECT_TRUE(curves.at("gap").at(1).is_null());
  EXPECT_TRUE(curves.at("hard").at(2).is_null());
  EXPECT_EQ(curves.at("epoch").size(), 3u);
}

TEST(ReportPage, LayersMayComeAndGo) {
  ReportRun run = sal_run();
  run.attention[1].layers.erase(run.attention[1].layers.begin());
  LayerAttention wide = layer("layer1.0.conv2", std::vector<int64_t>(9, 1), {}, 0);
  wide.kernel_w = 1;
  wide.kept.resize(3);
  wide.mean_p.resize(3);
  run.attention.push_back(run.attention[1]);
  run.attention[2].layers = {wide};
  const json attention = data_of({run}).at("runs").at(0).at("attention");
  EXPECT_TRUE(attention.at("kept").at(1).at(0).is_null());
  EXPECT_FALSE(attention.at("kept").at(1).at(1).is_null());
  EXPECT_TRUE(attention.at("kept").at(2).at(1).is_null()) << "another kernel under the same name";
  EXPECT_TRUE(attention.at("mean_max_p").at(2).is_null());
}

TEST(ReportPage, LargeNetworkListsEveryNode) {
  ReportRun run;
  run.graph = sal_network("resnet110", 16);
  const json data = data_of({run}).at("runs").at(0);
  ASSERT_GT(run.graph->nodes().size(), 330u);
  ASSERT_EQ(data.at("layers").size(), run.graph->nodes().size());
  double params = 0;
  for (const json& row : data.at("layers")) params += row.at("params").get<double>();
  EXPECT_EQ(params, data.at("params").get<double>());
}

TEST(ReadReportRun, ReadsADirectory) {
  const TempDir dir;
  const ReportRun made = sal_run();
  write_text(dir / "run/config.toml", recipe_text(*made.recipe));
  write_text(dir / "run/network.txt", network_text(*made.graph));
  const ReportRun fresh = read_report_run(dir / "run");
  EXPECT_TRUE(fresh.metrics.empty());
  EXPECT_TRUE(fresh.attention.empty());
  EXPECT_EQ(data_of({fresh}).at("runs").at(0).at("epochs_done"), 0);
  EXPECT_TRUE(data_of({fresh}).at("runs").at(0).at("final_hard").is_null());

  std::string metrics, attention;
  for (const MetricLine& line : made.metrics) metrics += line.json() + "\n";
  for (const AttentionLine& line : made.attention) attention += line.json() + "\n";
  write_text(dir / "run/metrics.jsonl", metrics + "{\"step\": 4, \"ep");  // a run going on
  write_text(dir / "run/attention.jsonl", attention);
  const ReportRun run = read_report_run(dir / "run");
  EXPECT_EQ(run.label, (dir / "run").string());
  EXPECT_EQ(run.metrics.size(), made.metrics.size());
  EXPECT_EQ(run.attention.size(), made.attention.size());
  EXPECT_TRUE(run.graph == made.graph);

  EXPECT_TRUE(run.notices.empty());
  expect_error(ErrorKind::kData, "expected a run directory", [&] { read_report_run(dir / "elsewhere"); });
}

TEST(ReadReportRun, RemarksThatAFileIsFromAnotherStep) {
  const TempDir dir;
  const ReportRun made = sal_run();
  write_text(dir / "run/config.toml", recipe_text(*made.recipe));
  write_text(dir / "run/network.txt", network_text(*made.graph));
  MetricLine last = metric(3, "test", 0.8, 0.7);
  last.step = 30;
  write_text(dir / "run/metrics.jsonl", last.json() + "\n");
  TapNet net = random_tap_net(parse_network("onetap-net 1\nx = input 3x8x8\nc = conv x out=4\n"), 1);
  const auto remarks = [&](const char* step) {
    net.facts["step"] = step;
    write_tap(dir / "run/model.tap", net);
    return read_report_run(dir / "run").remarks;
  };
  EXPECT_TRUE(remarks("30").empty());
  ASSERT_EQ(remarks("10").size(), 1u);
  EXPECT_EQ(remarks("10").at(0),
            (dir / "run/model.tap").string() + " was frozen at step 10, the run's last test was at step 30");
  write_text(dir / "run/model.tap", "damaged");
  const ReportRun run = read_report_run(dir / "run");
  EXPECT_TRUE(run.remarks.empty());
  EXPECT_EQ(run.file_bytes, 7u);
}

class DamagedRun : public ::testing::Test {
 protected:
  DamagedRun() {
    const ReportRun made = sal_run();
    write_text(dir_ / "run/config.toml", recipe_text(*made.recipe));
    write_text(dir_ / "run/network.txt", network_text(*made.graph));
    for (const MetricLine& line : made.metrics) metrics_ += line.json() + "\n";
    for (const AttentionLine& line : made.attention) attention_ += line.json() + "\n";
    write("metrics.jsonl", metrics_);
    write("attention.jsonl", attention_);
  }

  void write(const std::string& name, const std::string& text) { write_text(dir_ / ("run/" + name), text); }
  // The run's part of the page, after a look at its only notice.
  json page(const std::string& notice) {
    const ReportRun run = read_report_run(dir_ / "run");
    EXPECT_EQ(run.notices.size(), 1u);
    EXPECT_NE(run.notices.at(0).find(notice), std::string::npos) << run.notices.at(0);
    const json data = data_of({run}).at("runs").at(0);
    EXPECT_EQ(data.at("notices").size(), run.notices.size());
    return data;
  }

  TempDir dir_;
  std::string metrics_, attention_;
};

TEST_F(DamagedRun, ALineOfMetricsCostsItself) {
  write("metrics.jsonl", "nonsense\n" + metrics_ + "{\"epoch\": 1}\n[]\n");
  const json run = page("metrics.jsonl:1");
  EXPECT_NE(run.at("notices").at(0).get<std::string>().find("; 2 more lines are left out"), std::string::npos);
  EXPECT_EQ(run.at("epochs_done"), 3);
  EXPECT_EQ(run.at("attention").at("epoch").size(), 2u);
}

TEST_F(DamagedRun, ALineOfAttentionCostsItself) {
  write("attention.jsonl", attention_ + "{\"epoch\": 1}\n");
  const json run = page("attention.jsonl:3");
  EXPECT_EQ(run.at("attention").at("epoch").size(), 2u);
  EXPECT_EQ(run.at("epochs_done"), 3);
}

TEST_F(DamagedRun, WithoutItsRecipe) {
  write("config.toml", "epochs = = 3\n");
  const json run = page("config.toml");
  EXPECT_TRUE(run.at("epochs_total").is_null());
  EXPECT_TRUE(run.at("data").is_null());
  EXPECT_EQ(run.at("epochs_done"), 3);
  EXPECT_EQ(run.at("network"), "resnet8");
}

TEST_F(DamagedRun, WithoutItsNetwork) {
  write("network.txt", "onetap-net 1\nx = nonsense\n");
  const json run = page("nonsense");
  EXPECT_TRUE(run.at("network").is_null());
  EXPECT_TRUE(run.at("params").is_null());
  EXPECT_TRUE(run.at("layers").empty());
  EXPECT_EQ(run.at("sal"), true) << "its attention says so";
  EXPECT_EQ(run.at("curves").at("temperature").at(0), 2);
  EXPECT_EQ(run.at("epochs_total"), 3);
}

TEST_F(DamagedRun, WithNothingLeftIsNone) {
  for (const char* name : {"config.toml", "network.txt", "metrics.jsonl", "attention.jsonl"}) write(name, "\x01\n");
  expect_error(ErrorKind::kData, "nothing that can be read", [&] { read_report_run(dir_ / "run"); });
}

// The figure's parameters and activations are those of the networks it names.
TEST(PaperPoints, AgreeWithTheCountsOfTheZoo) {
  const std::map<std::string, Graph (*)(int64_t)> networks = {
      {"Resnet20", [](int64_t width) { return network("resnet20", width, Method{}); }},
      {"Resnet20+SAL", [](int64_t width) { return sal_network("resnet20", width); }},
      {"Resnet20+SAL2", [](int64_t width) { return sal_network("resnet20", width, 2); }}};
  int checked = 0;
  for (const PaperPoint& point : paper_points()) {
    const auto build = networks.find(point.curve);
    if (build == networks.end()) continue;
    ASSERT_TRUE(point.width.has_value());
    const NetworkCount count = count_network(build->second(*point.width), CountRules::kPaper);
    EXPECT_EQ(count.params, point.params) << point.curve << " " << *point.width;
    EXPECT_EQ(count.activations, point.activations) << point.curve << " " << *point.width;
    ++checked;
  }
  EXPECT_EQ(checked, 16);
}

// Binary weights: (1054 w^2 + 67 w) / 32 + 98 w + 10 words, and the activations of the dense network.
TEST(PaperPoints, BinaryCurvesFollowTheirFormula) {
  int checked = 0;
  for (const PaperPoint& point : paper_points()) {
    if (point.curve != "Resnet20+BC" && point.curve != "Resnet20+BWN") continue;
    const auto w = static_cast<double>(point.width.value());
    EXPECT_EQ(point.params, (1054 * w * w + 67 * w) / 32 + 98 * w + 10);
    EXPECT_EQ(point.activations, 25092 * w + 3082);
    ++checked;
  }
  EXPECT_EQ(checked, 8);
}

TEST(PaperPoints, AreAllOnThePage) {
  const json paper = data_of({sal_run()}).at("paper");
  ASSERT_EQ(paper.size(), paper_points().size());
  EXPECT_EQ(paper.size(), 26u);
  for (const json& point : paper) {
    EXPECT_GT(point.at("accuracy").get<double>(), 80);
    EXPECT_LT(point.at("accuracy").get<double>(), 96);
  }
  EXPECT_EQ(paper.back().at("curve"), "SqueezeNet");
  EXPECT_EQ(paper.back().at("memory"), 1469364);
}

}  // namespace
}  // namespace onetap
