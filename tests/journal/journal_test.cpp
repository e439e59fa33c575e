#include "onetap/journal/attention_log.h"
#include "onetap/journal/event_file.h"
#include "onetap/journal/line_file.h"
#include "onetap/journal/metrics.h"
#include "onetap/journal/run_files.h"
#include "onetap/journal/run_state.h"
#include "tests/support/protobuf.h"
#include "tests/support/support.h"

#include <cstring>
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
  write_text(files.config(), "epochs = 1\n");
  write_text(files.metrics(), line(7).json() + "\n");
  EXPECT_FALSE(files.finished()) << "no checkpoint yet";
  write_state(7, false);
  EXPECT_FALSE(files.finished()) << "killed between the test and its checkpoint";
  write_state(7, true);
  EXPECT_TRUE(files.finished());
  write_text(files.config(), "epochs = 2\n");
  EXPECT_FALSE(files.finished()) << "an epoch is left";
  write_text(files.checkpoints() / "last" / "state.json", "{}");
  EXPECT_FALSE(files.finished());
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
  expect_error(ErrorKind::kData, "not a state file", [] { RunState::parse("{", "x"); });
  expect_error(ErrorKind::kData, "expected format 1, got 2", [] { RunState::parse(R"({"format":2})", "x"); });
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

TEST(EventFile, EverySittingHasItsOwnFile) {
  const TempDir dir;
  const EventFile a(dir.path(), 0), b(dir.path(), 5);
  EXPECT_EQ(std::distance(fs::directory_iterator(dir.path()), fs::directory_iterator()), 2);
}

}  // namespace
}  // namespace onetap
