// Through libonetap.so, as a C program would: what it computes is compared with the C++ classes linked beside it.
#include "onetap/base/utf8.h"
#include "onetap/base/version.h"
#include "onetap/onetap.h"
#include "onetap/runtime/session.h"
#include "onetap/tap/tap_file.h"
#include "tests/quant/random_int8_net.h"
#include "tests/runtime/allocations.h"
#include "tests/support/support.h"
#include "tests/tap/random_net.h"

#include <cmath>
#include <cstddef>
#include <cstring>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>

namespace onetap {
namespace {

constexpr const char* kSmallTap = ONETAP_CORPUS "/tap/all-ops";

// Of onetap_options when it ended with `reserved`.
constexpr size_t kFirstSize = offsetof(onetap_options, reserved) + sizeof(int32_t);

struct Closer {
  void operator()(onetap_session* session) const { onetap_close(session); }
};
using Handle = std::unique_ptr<onetap_session, Closer>;

Handle open_tap(const std::string& path, const onetap_options* options = nullptr) {
  onetap_session* session = nullptr;
  EXPECT_EQ(onetap_open(path.c_str(), options, &session), ONETAP_OK) << onetap_last_error();
  return Handle(session);
}

// The call has failed with this code and left a message of one line that holds `part`.
void expect_refused(int code, int expected, const std::string& part) {
  EXPECT_EQ(code, expected);
  const std::string text = onetap_last_error();
  EXPECT_EQ(text[0], '[') << text;
  EXPECT_NE(text.find(part), std::string::npos) << text;
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
}

void expect_open_refused(const onetap_options& options, int expected, const std::string& part) {
  int nowhere = 0;
  auto* session = reinterpret_cast<onetap_session*>(&nowhere);
  expect_refused(onetap_open(kSmallTap, &options, &session), expected, part);
  EXPECT_EQ(session, nullptr);
}

TEST(CApi, CodesAreTheExitCodesOfErrors) {
  EXPECT_EQ(ONETAP_FAILURE, Error(ErrorKind::kFailure, "").exit_code());
  EXPECT_EQ(ONETAP_USAGE, Error(ErrorKind::kUsage, "").exit_code());
  EXPECT_EQ(ONETAP_CHECK, Error(ErrorKind::kCheck, "").exit_code());
  EXPECT_EQ(ONETAP_DATA, Error(ErrorKind::kData, "").exit_code());
  EXPECT_STREQ(onetap_version(), ONETAP_VERSION);
}

TEST(CApi, ComputesWhatASessionComputes) {
  const testing::TempDir folder;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const TapNet net = testing::random_net(seed);
    const std::string path = (folder / "net.tap").string();
    write_tap(path, net);
    onetap_options options = ONETAP_OPTIONS_INIT;
    options.threads = 1 + static_cast<int32_t>(seed % 3);
    options.batch = static_cast<int32_t>(seed % 5);
    options.target = kernel_sets()[seed % kernel_sets().size()]->name;
    const Handle session = open_tap(path, &options);

    Session expected(Model::open(path, {options.target, false, false}));
    const Model& model = expected.model();
    int64_t shape[3] = {}, outputs = 0;
    ASSERT_EQ(onetap_input_shape(session.get(), shape), ONETAP_OK);
    ASSERT_EQ(onetap_output_count(session.get(), &outputs), ONETAP_OK);
    EXPECT_EQ(shape[0] * shape[1] * shape[2], model.input_floats());
    EXPECT_EQ(outputs, model.output_floats());
    ASSERT_EQ(onetap_output_shape(session.get(), shape), ONETAP_OK);
    EXPECT_EQ(shape[0] * shape[1] * shape[2], outputs);
    EXPECT_EQ(shape[0], model.output_shape()[0]);

    const int64_t count = 3;
    Random random(seed, Purpose::kTest);
    const auto images = testing::random_floats(static_cast<size_t>(count * model.input_floats()), random);
    std::vector<float> got(static_cast<size_t>(count * outputs), -1.0f), wanted(got);
    expected.run(images.data(), count, wanted.data());
    const int64_t before = testing::allocations();
    const int code = onetap_run(session.get(), images.data(), count, got.data());
    EXPECT_EQ(testing::allocations(), before);
    ASSERT_EQ(code, ONETAP_OK) << onetap_last_error();
    EXPECT_EQ(std::memcmp(got.data(), wanted.data(), got.size() * sizeof(float)), 0) << "seed " << seed;
  }
}

TEST(CApi, TakesPixelsAndSaysWhatItComputesIn) {
  const testing::TempDir folder;
  const TapNet floats = testing::random_net(3), bytes = testing::random_int8_net(3);
  for (const TapNet* net : {&floats, &bytes}) {
    const std::string path = (folder / "net.tap").string();
    write_tap(path, *net);
    const Handle session = open_tap(path);
    EXPECT_STREQ(onetap_number_type(session.get()), net->is_int8() ? "int8" : "f32");
    Session expected(Model::open(path));
    std::vector<uint8_t> pixels;
    for (int64_t i = 0; i < 2 * expected.model().input_floats(); ++i) pixels.push_back(static_cast<uint8_t>(i * 37));
    std::vector<float> got(static_cast<size_t>(2 * expected.model().output_floats())), wanted(got);
    expected.run_pixels(pixels.data(), 2, wanted.data());
    ASSERT_EQ(onetap_run_u8(session.get(), pixels.data(), 2, got.data()), ONETAP_OK) << onetap_last_error();
    EXPECT_EQ(got, wanted);
    expect_refused(onetap_run_u8(session.get(), nullptr, 1, got.data()), ONETAP_USAGE, "onetap_run_u8");
  }
  EXPECT_EQ(onetap_number_type(nullptr), nullptr);
}

TEST(CApi, SaysWhatTheFileSays) {
  const Handle session = open_tap(kSmallTap);
  int64_t shape[3] = {}, outputs = 0;
  EXPECT_EQ(onetap_input_shape(session.get(), shape), ONETAP_OK);
  EXPECT_EQ(std::vector<int64_t>(shape, shape + 3), (std::vector<int64_t>{3, 32, 32}));
  EXPECT_EQ(onetap_output_count(session.get(), &outputs), ONETAP_OK);
  EXPECT_EQ(outputs, 10);
  EXPECT_EQ(onetap_output_shape(session.get(), shape), ONETAP_OK);
  EXPECT_EQ(std::vector<int64_t>(shape, shape + 3), (std::vector<int64_t>{10, 1, 1}));
  EXPECT_STREQ(onetap_class_name(session.get(), 0), "disc");
  EXPECT_STREQ(onetap_class_name(session.get(), 9), "ell");
  float mean[3] = {}, sd[3] = {};
  EXPECT_EQ(onetap_pixel_scale(session.get(), mean, sd), ONETAP_OK);
  EXPECT_EQ(mean[2], 0.5f);
  EXPECT_EQ(sd[0], 0.25f);
}

TEST(CApi, AVectorIsAnImageOfOnePixelAndClassesMayBeUnknown) {
  const testing::TempDir folder;
  Graph graph("vector");
  graph.add(testing::input_node({7}));
  Node linear;
  linear.name = "fc";
  linear.op = Op::kLinear;
  linear.inputs = {"x"};
  linear.out = 2;
  linear.bias = true;
  graph.add(linear);
  write_tap(folder / "vector.tap", random_tap_net(graph, 1));
  const Handle session = open_tap((folder / "vector.tap").string());
  int64_t shape[3] = {};
  EXPECT_EQ(onetap_input_shape(session.get(), shape), ONETAP_OK);
  EXPECT_EQ(std::vector<int64_t>(shape, shape + 3), (std::vector<int64_t>{7, 1, 1}));
  EXPECT_EQ(onetap_class_name(session.get(), 0), nullptr);
}

TEST(CApi, NullIsRefused) {
  const Handle session = open_tap(kSmallTap);
  onetap_session* none = nullptr;
  int64_t shape[3], count;
  float floats[3] = {};
  expect_refused(onetap_open(nullptr, nullptr, &none), ONETAP_USAGE, "path");
  expect_refused(onetap_open(kSmallTap, nullptr, nullptr), ONETAP_USAGE, "session");
  expect_refused(onetap_input_shape(nullptr, shape), ONETAP_USAGE, "onetap_input_shape");
  expect_refused(onetap_input_shape(session.get(), nullptr), ONETAP_USAGE, "onetap_input_shape");
  expect_refused(onetap_output_count(nullptr, &count), ONETAP_USAGE, "onetap_output_count");
  expect_refused(onetap_output_count(session.get(), nullptr), ONETAP_USAGE, "onetap_output_count");
  expect_refused(onetap_output_shape(nullptr, shape), ONETAP_USAGE, "onetap_output_shape");
  expect_refused(onetap_output_shape(session.get(), nullptr), ONETAP_USAGE, "onetap_output_shape");
  expect_refused(onetap_pixel_scale(nullptr, floats, floats), ONETAP_USAGE, "onetap_pixel_scale");
  expect_refused(onetap_pixel_scale(session.get(), nullptr, floats), ONETAP_USAGE, "means");
  expect_refused(onetap_pixel_scale(session.get(), floats, nullptr), ONETAP_USAGE, "deviations");
  expect_refused(onetap_run(nullptr, floats, 1, floats), ONETAP_USAGE, "session");
  expect_refused(onetap_run(session.get(), nullptr, 1, floats), ONETAP_USAGE, "images");
  expect_refused(onetap_run(session.get(), floats, 1, nullptr), ONETAP_USAGE, "outputs");
  EXPECT_EQ(onetap_class_name(nullptr, 0), nullptr);
  expect_refused(ONETAP_USAGE, ONETAP_USAGE, "onetap_class_name");
  onetap_close(nullptr);
}

TEST(CApi, NumbersOutOfRangeAreRefused) {
  const Handle session = open_tap(kSmallTap);
  float floats[3] = {};
  expect_refused(onetap_run(session.get(), floats, -1, floats), ONETAP_USAGE, "got -1");
  expect_refused(onetap_run(session.get(), floats, INT64_MAX, floats), ONETAP_USAGE, "images");
  EXPECT_EQ(onetap_run(session.get(), floats, 0, floats), ONETAP_OK);
  for (const int64_t index : {int64_t{-1}, int64_t{10}, INT64_MAX}) {
    EXPECT_EQ(onetap_class_name(session.get(), index), nullptr);
    expect_refused(ONETAP_USAGE, ONETAP_USAGE, std::to_string(index));
  }
}

TEST(CApi, BadOptionsAreRefused) {
  onetap_options options = ONETAP_OPTIONS_INIT;
  options.target = "abacus";
  expect_open_refused(options, ONETAP_USAGE, "'abacus'");
  options = ONETAP_OPTIONS_INIT;
  options.threads = -1;
  expect_open_refused(options, ONETAP_USAGE, "threads");
  options.threads = 1025;
  expect_open_refused(options, ONETAP_USAGE, "threads");
  options = ONETAP_OPTIONS_INIT;
  options.batch = -1;
  expect_open_refused(options, ONETAP_USAGE, "batch");
  options = ONETAP_OPTIONS_INIT;
  options.reserved = 1;
  expect_open_refused(options, ONETAP_USAGE, "newer");
  options = ONETAP_OPTIONS_INIT;
  options.memory_limit = -1;
  expect_open_refused(options, ONETAP_USAGE, "memory limit");
  for (const size_t size : {size_t{0}, kFirstSize - 1, kFirstSize + 1, sizeof(options) - 1, SIZE_MAX}) {
    options = ONETAP_OPTIONS_INIT;
    options.size = size;
    expect_open_refused(options, ONETAP_USAGE, "sizeof");
  }
}

// One that was compiled before options had a memory limit: what lies behind them is not ours.
TEST(CApi, OptionsOfAnOlderProgramAreTaken) {
  onetap_options options = ONETAP_OPTIONS_INIT;
  options.size = kFirstSize;
  options.threads = 1;
  options.memory_limit = 1;
  open_tap(kSmallTap, &options);
}

TEST(CApi, ANetworkThatNeedsMoreThanTheLimitIsRefused) {
  onetap_options options = ONETAP_OPTIONS_INIT;
  options.threads = 1;
  options.memory_limit = 10000;
  expect_open_refused(options, ONETAP_USAGE, "runs in 9.76 KiB of memory");
  options.memory_limit = 0;
  open_tap(kSmallTap, &options);
  const testing::Variable little("ONETAP_MEMORY", "10000");
  expect_open_refused(options, ONETAP_USAGE, "runs in 9.76 KiB of memory");
  options.memory_limit = 1 << 30;
  open_tap(kSmallTap, &options);
}

TEST(CApi, OptionsOfANewerProgramAreTakenIfTheyAskForNothingNew) {
  struct Newer {
    onetap_options known;
    int64_t unknown;
  };
  Newer newer{ONETAP_OPTIONS_INIT, 0};
  newer.known.size = sizeof(newer);
  open_tap(kSmallTap, &newer.known);
  newer.unknown = 1;
  expect_open_refused(newer.known, ONETAP_USAGE, "newer");
}

TEST(CApi, BadFilesAreRefused) {
  const testing::TempDir folder;
  const std::string whole = testing::read_text(kSmallTap);
  testing::write_text(folder / "cut.tap", whole.substr(0, whole.size() / 2));
  testing::write_text(folder / "text.tap", "onetap-net 1\n");
  testing::write_text(folder / "empty.tap", "");
  for (const char* name : {"cut.tap", "text.tap", "empty.tap", "missing.tap", ""}) {
    onetap_session* session = nullptr;
    expect_refused(onetap_open((folder / name).c_str(), nullptr, &session), ONETAP_DATA, (folder / name).string());
    EXPECT_EQ(session, nullptr);
  }
}

TEST(CApi, MessagesBelongToThreadsAndOutliveSuccess) {
  expect_refused(onetap_run(nullptr, nullptr, 0, nullptr), ONETAP_USAGE, "session");
  open_tap(kSmallTap);
  EXPECT_STRNE(onetap_last_error(), "");
  std::thread([] {
    EXPECT_STREQ(onetap_last_error(), "");
    const std::string long_path(5000, 'x');
    onetap_session* session = nullptr;
    expect_refused(onetap_open(long_path.c_str(), nullptr, &session), ONETAP_DATA, "xxx");
  }).join();
  EXPECT_NE(std::string(onetap_last_error()).find("session"), std::string::npos) << onetap_last_error();
}

TEST(CApi, MessagesArePrintableAndCutBetweenCharacters) {
  onetap_session* session = nullptr;
  expect_refused(onetap_open("no\n\x1b[31mfile\xff", nullptr, &session), ONETAP_DATA, R"(no\n\x1b[31mfile\xff)");
  for (const char* front : {"", "x"}) {  // one of them puts the limit inside a character
    std::string path = front;
    for (int i = 0; i < 1000; ++i) path += u8"ä";
    EXPECT_EQ(onetap_open(path.c_str(), nullptr, &session), ONETAP_DATA);
    const std::string text = onetap_last_error();
    EXPECT_GT(text.size(), 1000u);
    EXPECT_EQ(decode_utf8(text).find(U'\uFFFD'), std::u32string::npos);
  }
}

// Many callers of one session: each call is either right or refused.
TEST(CApi, ASecondCallerIsRefused) {
  onetap_options options = ONETAP_OPTIONS_INIT;
  options.threads = 1;
  const Handle session = open_tap(kSmallTap, &options);
  std::vector<float> images(16 * 3 * 32 * 32, 0.25f), expected(16 * 10);
  ASSERT_EQ(onetap_run(session.get(), images.data(), 16, expected.data()), ONETAP_OK);
  std::atomic<int> done{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      std::vector<float> got(16 * 10);
      for (int i = 0; i < 50; ++i) {
        const int code = onetap_run(session.get(), images.data(), 16, got.data());
        if (code == ONETAP_OK) {
          EXPECT_EQ(got, expected);
          ++done;
        } else {
          expect_refused(code, ONETAP_USAGE, "one caller");
        }
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_GT(done, 0);
}

#if !defined(ONETAP_ADDRESS_SANITIZER) && !defined(ONETAP_THREAD_SANITIZER)  // they need more address space than that
TEST(CApiDeathTest, AMachineWithoutThreadsIsAFailureNotACrash) {
  const auto starve = [] {
    ::alarm(60);                                                // a thread that is never joined waits for ever
    const rlimit little{rlim_t{256} << 20, rlim_t{256} << 20};  // of 1000 stacks
    ::setrlimit(RLIMIT_AS, &little);
    onetap_options options = ONETAP_OPTIONS_INIT;
    options.threads = 1000;
    onetap_session* session = nullptr;
    const int code = onetap_open(kSmallTap, &options, &session);
    std::_Exit(code == ONETAP_FAILURE && session == nullptr && *onetap_last_error() != '\0' ? 0 : 1);
  };
  EXPECT_EXIT(starve(), ::testing::ExitedWithCode(0), "");
}
#endif

}  // namespace
}  // namespace onetap
