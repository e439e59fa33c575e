#include "onetap/journal/attention_log.h"
#include "onetap/journal/class_scores.h"
#include "onetap/journal/event_file.h"
#include "onetap/journal/good_lines.h"
#include "onetap/journal/line_file.h"
#include "onetap/journal/metrics.h"
#include "onetap/journal/run_files.h"
#include "onetap/journal/run_journal.h"
#include "onetap/journal/run_state.h"
#include "onetap/journal/run_sums.h"
#include "tests/support/protobuf.h"
#include "tests/support/support.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>

namespace fs = std::filesystem;

namespace onetap {
namespace {

using testing::expect_error;
using testing::fields;
using testing::read_text;
using testing::TempDir;
using testing::write_text;

MetricLine line(int64_t step) {
  MetricLine metrics;
  metrics.step = step;
  metrics.epoch = 1;
  metrics.split = "test";
  metrics.loss = 1.0 / 3.0;
  metrics.acc_soft = 0.5;
  metrics.acc_hard = 0.25;
  metrics.temperature = 6.7;
  return metrics;
}

TEST(Metrics, LinesRoundTripExactly) {
  const MetricLine back = MetricLine::parse(line(7).json(), "test");
  EXPECT_EQ(back.json(), line(7).json());
  EXPECT_EQ(back.loss, 1.0 / 3.0);
  MetricLine train = line(1);
  train.acc_hard.reset();
  EXPECT_NE(train.json().find("\"acc_hard\":null"), std::string::npos);
  EXPECT_FALSE(MetricLine::parse(train.json(), "test").acc_hard.has_value());
  EXPECT_FALSE(MetricLine::parse(train.json(), "test").data_wait.has_value()) << "as in files of before";
  train.data_wait = 0.375;
  EXPECT_EQ(MetricLine::parse(train.json(), "test").data_wait, 0.375);
}

TEST(RunFiles, FinishedOnceTheLastTestIsInACheckpoint) {
  const TempDir dir;
  const RunFiles files(dir.path());
  const auto write_state = [&](int64_t step, bool epoch_logged) {
    RunState state;
    state.step = step;
    state.epoch_logged = epoch_logged;
    write_text(files.checkpoints() / "last" / "state.json", state.json());
  };
  fs::create_directories(files.checkpoints() / "last");
  EXPECT_FALSE(files.finished());
  write_text(files.config(), "epochs = 1\n\n[provenance]\n");
  write_text(files.metrics(), line(7).json() + "\n");
  EXPECT_FALSE(files.finished()) << "no checkpoint yet";
  write_state(7, false);
  EXPECT_FALSE(files.finished()) << "killed between the test and its checkpoint";
  write_state(7, true);
  EXPECT_TRUE(files.finished());
  write_text(files.config(), "epochs = 2\n\n[provenance]\n");
  EXPECT_FALSE(files.finished()) << "an epoch is left";
  write_text(files.checkpoints() / "last" / "state.json", "{}");
  EXPECT_FALSE(files.finished());
}

TEST(RunFiles, RecipeAndNetworkAreCheckedAgainstTheirSums) {
  const TempDir dir;
  const RunFiles files(dir.path());
  const std::string config = "seed = 3\n\n[provenance]\n", network = "onetap-net 1\nx = input 3x8x8\ng = gap x\n";
  write_text(files.config(), config);
  write_text(files.network(), network);
  EXPECT_EQ(files.read_config().seed, 3u) << "a run of a version without sums";
  write_text(files.sums(), sums_text({{"config.toml", config}, {"network.txt", network}}));
  EXPECT_EQ(files.read_config().seed, 3u);
  EXPECT_EQ(files.read_graph().nodes().size(), 2u);

  write_text(files.config(), "seed = 2\n\n[provenance]\n");
  expect_error(ErrorKind::kData, "expected config.toml as it was", [&] { files.read_config(); });
  write_text(files.network(), "onetap-net 1\nx = input 3x9x8\ng = gap x\n");
  expect_error(ErrorKind::kData, "expected network.txt as it was", [&] { files.read_graph(); });
  write_text(files.config(), config);
  write_text(files.network(), network);
  for (const std::string& sums : {std::string(), sums_text({{"config.toml", network}, {"network.txt", config}}),
                                  sums_text({{"config.tom", config}, {"network.text", network}})}) {
    write_text(files.sums(), sums);
    expect_error(ErrorKind::kData, "SHA256SUMS", [&] { files.read_config(); });
    expect_error(ErrorKind::kData, "SHA256SUMS", [&] { files.read_graph(); });
  }
}

// By sha256sum of coreutils.
TEST(RunSums, AreThoseOfTheUsualTool) {
  EXPECT_EQ(sums_text({{"abc.txt", "abc"}, {"empty", ""}}),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  abc.txt\n"
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  empty\n");
}

TEST(RunFiles, ANetworkThatIsNoneIsBadData) {
  const TempDir dir;
  const RunFiles files(dir.path());
  write_text(files.config(), "\n[provenance]\n");
  write_text(files.network(), "nonsense\n");
  expect_error(ErrorKind::kData, "network.txt", [&] { files.read_graph(); });
}

TEST(GoodLines, BadOnesAreCountedInOneNotice) {
  const TempDir dir;
  const auto read = [&](const std::string& text, std::vector<std::string>& notices) {
    write_text(dir / "m.jsonl", text);
    std::vector<int64_t> steps;
    for (const MetricLine& each : read_good_lines<MetricLine>(dir / "m.jsonl", notices)) steps.push_back(each.step);
    return steps;
  };
  std::vector<std::string> notices;
  EXPECT_TRUE(read_good_lines<MetricLine>(dir / "missing", notices).empty());
  const std::string good = line(3).json() + "\n" + line(6).json() + "\n";
  EXPECT_EQ(read(good, notices), (std::vector<int64_t>{3, 6}));
  EXPECT_EQ(read(good + "{\"cut", notices), (std::vector<int64_t>{3, 6})) << "a run that goes on";
  EXPECT_TRUE(notices.empty());

  EXPECT_EQ(read("nonsense\n" + good, notices), (std::vector<int64_t>{3, 6}));
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_EQ(notices[0],
            fmt::format("[metrics] not a line of metrics: expected a JSON object, got text that is not JSON "
                        "({}:1)",
                        (dir / "m.jsonl").string()));
  notices.clear();
  std::string many = good;
  for (int i = 0; i < 1000; ++i) many += "{}\n";
  EXPECT_EQ(read(many, notices), (std::vector<int64_t>{3, 6}));
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_EQ(notices[0],
            fmt::format("[metrics] not a line of metrics: expected the key 'step', got none ({}:3); 999 more "
                        "lines are left out",
                        (dir / "m.jsonl").string()));
  fs::remove(dir / "m.jsonl");
  fs::create_directory(dir / "m.jsonl");
  notices.clear();
  EXPECT_TRUE(read_good_lines<MetricLine>(dir / "m.jsonl", notices).empty());
  EXPECT_EQ(notices.size(), 1u) << "a file that cannot be read";
}

// config.toml is written whole; cut anywhere before its last part it is no recipe of defaults.
TEST(RunFiles, ARecipeThatIsNotWholeIsRefused) {
  const TempDir dir;
  const RunFiles files(dir.path());
  Recipe recipe;
  recipe.width = 8;
  const std::string fields = recipe_text(recipe);
  const std::string whole = fields + "\n[provenance]\nonetap = \"1\"\ncommand = \"onetap train\"\n";
  write_text(files.config(), whole);
  EXPECT_TRUE(files.read_config() == recipe);
  for (size_t bytes = 0; bytes + 40 < fields.size(); bytes += 7) {
    write_text(files.config(), whole.substr(0, bytes));
    expect_error(ErrorKind::kData, "config.toml", [&] { files.read_config(); });
  }
  write_text(files.config(), "");
  expect_error(ErrorKind::kData, "expected a whole recipe", [&] { files.read_config(); });
  write_text(files.config(), "arch = \"resnet20\"\n[provenance]\n");  // of a version with fewer keys
  EXPECT_EQ(files.read_config().arch, "resnet20");
}

TEST(Metrics, ALossOfNullIsMissing) {
  MetricLine diverged = line(3);
  diverged.loss = std::numeric_limits<double>::quiet_NaN();
  ASSERT_NE(diverged.json().find("\"loss\":null"), std::string::npos) << "as versions before wrote it";
  const auto lines = parse_metrics(line(1).json() + "\n" + diverged.json() + "\n", "test");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].loss, 1.0 / 3.0);
  EXPECT_TRUE(std::isnan(lines[1].loss));
  EXPECT_EQ(lines[1].acc_hard, 0.25);
}

// A journal of three tested epochs, of 10 steps each, and the state after the second.
struct DamagedJournal : ::testing::Test {
  DamagedJournal() : files(dir.path()) {
    for (int64_t step : {10, 20, 30}) {
      metrics.push_back(line(step).json() + "\n");
      if (step == 20) state.metrics_bytes = metrics[0].size() + metrics[1].size();
    }
    state.step = 20;
  }
  std::string all() const { return metrics[0] + metrics[1] + metrics[2]; }
  // What a resumed run finds on record, having written a line of its own.
  std::vector<int64_t> resume(const std::string& text) {
    write_text(files.metrics(), text);
    notices.clear();
    RunJournal journal(files, state, [&](const std::string& notice) { notices.push_back(notice); });
    RunJournal::Epoch epoch;
    epoch.train = line(40);
    journal.write(epoch);
    journal.sync(state);
    EXPECT_EQ(state.metrics_bytes, fs::file_size(files.metrics()));
    std::vector<int64_t> steps;
    for (const MetricLine& each : read_metrics(files.metrics())) steps.push_back(each.step);
    return steps;
  }

  TempDir dir;
  RunFiles files;
  RunState state;
  std::vector<std::string> metrics;
  std::vector<std::string> notices;
};
using Steps = std::vector<int64_t>;

TEST_F(DamagedJournal, IsCutBackWhereItIsNot) {
  EXPECT_EQ(resume(all() + "{\"step\":35,"), (Steps{10, 20, 40}));
  EXPECT_TRUE(notices.empty());
  EXPECT_FALSE(fs::exists(dir / "metrics.jsonl.damaged"));
}

TEST_F(DamagedJournal, LosesItsDamagedLineAloneAndSaysSo) {
  std::string text = all();
  text[2] = 'S';  // "Step"
  EXPECT_EQ(resume(text), (Steps{20, 40}));
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_NE(notices[0].find("metrics.jsonl is damaged (line 1)"), std::string::npos) << notices[0];
  EXPECT_NE(notices[0].find("metrics.jsonl.damaged"), std::string::npos) << notices[0];
  EXPECT_EQ(read_text(dir / "metrics.jsonl.damaged"), text);
}

TEST_F(DamagedJournal, ThatGrewOrShrankIsKeptByTheStepsOfItsLines) {
  EXPECT_EQ(resume(" " + all()), (Steps{10, 20, 40}));  // lines no longer end where the state says
  EXPECT_EQ(notices.size(), 1u);
  state.metrics_bytes = metrics[0].size() + metrics[1].size();
  EXPECT_EQ(resume(metrics[0] + "\n" + metrics[1]), (Steps{10, 20, 40}));
  EXPECT_EQ(notices.size(), 1u);
  EXPECT_TRUE(fs::exists(dir / "metrics.jsonl.damaged-2")) << "never over another";
}

TEST_F(DamagedJournal, ThatIsGoneIsBegunAgain) {
  EXPECT_EQ(resume(""), (Steps{40}));
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_NE(notices[0].find("does not fit its checkpoint: expected at least"), std::string::npos) << notices[0];
  EXPECT_FALSE(fs::exists(dir / "metrics.jsonl.damaged")) << "nothing to keep";
}

TEST_F(DamagedJournal, OfAttentionLikewise) {
  AttentionLine attention;
  attention.step = 10;
  state.attention_bytes = attention.json().size() + 1;
  write_text(files.attention(), "x" + attention.json() + "\n");
  EXPECT_EQ(resume(all()), (Steps{10, 20, 40}));
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_NE(notices[0].find("attention.jsonl is damaged"), std::string::npos) << notices[0];
  EXPECT_TRUE(read_attention(files.attention()).empty());
}

TEST(Metrics, ResumeCutsBackToTheCheckpoint) {
  const TempDir dir;
  uint64_t kept = 0;
  {
    LineFile file(dir / "m.jsonl", 0);
    file.write(line(1).json());
    kept = file.bytes();
    file.write(line(2).json());
  }
  {
    LineFile file(dir / "m.jsonl", kept);
    file.write(line(3).json());
  }
  const auto lines = read_metrics(dir / "m.jsonl");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].step, 1);
  EXPECT_EQ(lines[1].step, 3);
  expect_error(ErrorKind::kData, "expected at least 99999 bytes", [&] { LineFile(dir / "m.jsonl", 99999); });
}

TEST(Metrics, ALineWithoutItsEndIsNotThereYet) {
  const std::string text = line(1).json() + "\n" + line(2).json().substr(0, 20);
  EXPECT_EQ(parse_metrics(text, "test").size(), 1u);
  expect_error(ErrorKind::kData, "test:1", [] { parse_metrics("{}\n", "test"); });
  expect_error(ErrorKind::kData, "test:2", [] { parse_metrics(line(1).json() + "\nnot json\n", "test"); });
}

AttentionLine attention_line() {
  LayerAttention layer;
  layer.name = "layer1.0.conv1";
  layer.kernel_h = 1;
  layer.kernel_w = 3;
  layer.mean_p = {0.25, 0.5, 0.25};
  layer.kept = {1, 2, 3};
  layer.max_p.assign(LayerAttention::kBins, 0.05);
  AttentionLine line;
  line.step = 79;
  line.epoch = 1;
  line.temperature = 1.5;
  line.layers = {layer, layer};
  line.layers[1].agreement = 0.75;
  return line;
}

TEST(AttentionLog, LinesRoundTrip) {
  const AttentionLine back = AttentionLine::parse(attention_line().json(), "test");
  EXPECT_EQ(back.json(), attention_line().json());
  EXPECT_FALSE(back.layers[0].agreement.has_value());
  EXPECT_EQ(back.layers[1].agreement, 0.75);
  EXPECT_EQ(back.layers[0].kept, (std::vector<int64_t>{1, 2, 3}));
}

TEST(AttentionLog, ListsMustFitTheKernel) {
  AttentionLine line = attention_line();
  line.layers[1].kept.pop_back();
  expect_error(ErrorKind::kData, "'layer1.0.conv1' do not fit", [&] { AttentionLine::parse(line.json(), "test"); });
  line = attention_line();
  line.layers[0].kernel_h = 1000;
  expect_error(ErrorKind::kData, "do not fit", [&] { AttentionLine::parse(line.json(), "test"); });
  expect_error(ErrorKind::kData, "not a line of attention", [] { AttentionLine::parse("{}", "test"); });
}

TEST(AttentionLog, AMissingFileHasNoLines) {
  const TempDir dir;
  EXPECT_TRUE(read_attention(dir / "attention.jsonl").empty());
}

TEST(RunState, RoundTripsExactly) {
  RunState state;
  state.step = 123;
  state.epoch_logged = false;
  state.loss_sum = 1.0 / 3.0;
  state.best_accuracy = 0.1 + 0.2;
  EXPECT_EQ(RunState::parse(state.json(), "x").json(), state.json());
  EXPECT_EQ(RunState::parse(state.json(), "x").loss_sum, 1.0 / 3.0);
  state.checksums = {{"model.safetensors", 0xE3069283u}, {"taps.safetensors", 7}};
  state.teacher = "0123456789abcdef";
  EXPECT_EQ(RunState::parse(state.json(), "x").teacher, state.teacher);
  EXPECT_EQ(RunState::parse(state.json(), "x").json(), state.json());
  EXPECT_EQ(RunState::parse(state.json(), "x").checksums, state.checksums);
  expect_error(ErrorKind::kData, "not a state file", [] { RunState::parse("{", "x"); });
  expect_error(ErrorKind::kData, "expected format 1, got 2", [] { RunState::parse(R"({"format":2})", "x"); });
}

// With checksums, every flipped bit of a state shows, but for those between its members.
TEST(RunState, FlippedBitsShow) {
  RunState state;
  state.step = 123;
  state.loss_sum = 1.0 / 3.0;
  state.checksums = {{"model.safetensors", 0xE3069283u}};
  const std::string good = state.json();
  int64_t refused = 0, tried = 0;
  for (size_t at = 0; at < good.size(); ++at) {
    if (good[at] == ' ' || good[at] == '\n') continue;
    for (int bit = 0; bit < 7; ++bit) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ (1 << bit));
      ++tried;
      try {
        // What still reads must be the same state: another spelling of the same text.
        EXPECT_EQ(RunState::parse(bad, "x").json(), good) << bad;
      } catch (const Error& problem) {
        EXPECT_EQ(problem.kind(), ErrorKind::kData);
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, tried * 9 / 10);
}

// CRC-32C of "123456789" is 0xE3069283 (RFC 3720); TFRecord rotates it right by 15 and adds a constant.
TEST(EventFile, MaskedCrcFollowsTheStandardVector) {
  const uint32_t crc = 0xE3069283u;
  EXPECT_EQ(masked_crc32c("123456789"), ((crc >> 15) | (crc << 17)) + 0xA282EAD8u);
}

// A reader of our own, from the format's description.
std::vector<std::string> records(const std::string& file) {
  std::vector<std::string> payloads;
  const auto number = [&](size_t at, size_t width) {
    uint64_t value = 0;
    for (size_t i = 0; i < width; ++i) value |= uint64_t{static_cast<uint8_t>(file.at(at + i))} << (8 * i);
    return value;
  };
  for (size_t at = 0; at < file.size();) {
    const uint64_t length = number(at, 8);
    EXPECT_EQ(number(at + 8, 4), masked_crc32c(file.substr(at, 8)));
    payloads.push_back(file.substr(at + 12, length));
    EXPECT_EQ(number(at + 12 + length, 4), masked_crc32c(payloads.back()));
    at += length + 16;
  }
  return payloads;
}

TEST(EventFile, HoldsVersionSessionAndScalars) {
  const TempDir dir;
  EventFile events(dir.path(), 41);
  events.write_scalars(42, {{"loss/train", 0.5}, {"accuracy/test_hard", 0.75}});
  const fs::path path = fs::directory_iterator(dir.path())->path();
  EXPECT_EQ(path.filename().string().rfind("events.out.tfevents.", 0), 0u);
  const auto all = records(read_text(path));
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(fields(all[0]).find(3)->second, "brain.Event:2");
  EXPECT_EQ(fields(all[1]).find(2)->second, "42");  // events at step 41 stay, later ones are dropped
  EXPECT_EQ(fields(fields(all[1]).find(7)->second).find(1)->second, "1");
  const auto event = fields(all[2]);
  EXPECT_EQ(event.find(2)->second, "42");
  std::map<std::string, float> scalars;
  const auto summary = fields(event.find(5)->second);
  for (auto [at, end] = summary.equal_range(1); at != end; ++at) {
    const auto value = fields(at->second);
    float number = 0;
    std::memcpy(&number, value.find(2)->second.data(), 4);
    scalars[value.find(1)->second] = number;
  }
  EXPECT_EQ(scalars, (std::map<std::string, float>{{"loss/train", 0.5f}, {"accuracy/test_hard", 0.75f}}));
}

std::vector<double> doubles(const std::string& bytes) {
  std::vector<double> values(bytes.size() / 8);
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

TEST(EventFile, HoldsHistogramsAndSettings) {
  const TempDir dir;
  EventFile events(dir.path(), 0);
  events.write_histograms(3, {{"taps/conv1", {{-0.5, 0.5, 1.5}, {3, 1}}}});
  events.write_settings({{"lr", 0.5}, {"flip", true}, {"method", std::string("sal")}});
  const auto all = records(read_text(fs::directory_iterator(dir.path())->path()));
  ASSERT_EQ(all.size(), 3u);
  const auto value_of = [](const std::string& record) {
    return fields(fields(fields(record).find(5)->second).find(1)->second);
  };
  const auto value = value_of(all[1]);
  EXPECT_EQ(value.find(1)->second, "taps/conv1");
  const auto histogram = fields(value.find(5)->second);  // HistogramProto
  const double expected[] = {-0.5, 1.5, 4, 1, 1};        // least, most, number, sum, squares of 0, 0, 0 and 1
  for (uint64_t i = 0; i < 5; ++i) EXPECT_EQ(doubles(histogram.find(i + 1)->second), std::vector<double>{expected[i]});
  EXPECT_EQ(doubles(histogram.find(6)->second), (std::vector<double>{0.5, 1.5}));
  EXPECT_EQ(doubles(histogram.find(7)->second), (std::vector<double>{3, 1}));

  const auto settings = value_of(all[2]);
  EXPECT_EQ(settings.find(1)->second, "_hparams_/session_start_info");
  const auto plugin = fields(fields(settings.find(9)->second).find(1)->second);
  EXPECT_EQ(plugin.find(1)->second, "hparams");
  const auto start = fields(fields(plugin.find(2)->second).find(3)->second);
  std::map<std::string, std::multimap<uint64_t, std::string>> by_name;
  for (auto [at, end] = start.equal_range(1); at != end; ++at) {
    const auto entry = fields(at->second);
    by_name[entry.find(1)->second] = fields(entry.find(2)->second);
  }
  EXPECT_EQ(doubles(by_name.at("lr").find(2)->second), std::vector<double>{0.5});
  EXPECT_EQ(by_name.at("method").find(3)->second, "sal");
  EXPECT_EQ(by_name.at("flip").find(4)->second, "1");
}

TEST(ClassScores, GoThereAndBack) {
  ClassScores scores;
  scores.step = 12;
  scores.form = "hard";
  scores.classes = {"ant", "b\"ee"};
  scores.confusion = {5, 2, 0, 3};
  scores.top5 = 1;
  EXPECT_EQ(scores.images(0), 7);
  EXPECT_EQ(scores.right(1), 3);
  EXPECT_EQ(scores.mistaken_for(0), 1u);
  EXPECT_EQ(scores.mistaken_for(1), 1u);
  const ClassScores back = ClassScores::parse(scores.json(), "x");
  EXPECT_EQ(back.classes, scores.classes);
  EXPECT_EQ(back.confusion, scores.confusion);
  EXPECT_EQ(back.json(), scores.json());
  const auto refused = [](const char* text) {
    expect_error(ErrorKind::kData, "(x)", [&] { ClassScores::parse(text, "x"); });
  };
  refused(R"({"step":1,"form":"hard","top5":1,"classes":["a","b"],"confusion":[1,2,3]})");
  refused(R"({"step":1,"form":"hard","top5":1,"classes":["a"],"confusion":[-1]})");
  refused(R"({"step":1,"form":"hard","top5":1,"classes":[],"confusion":[]})");
  refused(R"({"step":1,"form":"hard","top5":1,"classes":[1],"confusion":[1]})");
}

TEST(EventFile, EverySittingHasItsOwnFile) {
  const TempDir dir;
  const EventFile a(dir.path(), 0), b(dir.path(), 5);
  EXPECT_EQ(std::distance(fs::directory_iterator(dir.path()), fs::directory_iterator()), 2);
}

}  // namespace
}  // namespace onetap
