// onetap bench data: how fast training images come, by what is done to them.
#include "onetap/base/cpus.h"
#include "onetap/base/fail.h"
#include "onetap/base/json.h"
#include "onetap/data/read_view.h"
#include "onetap/data/source.h"
#include "tools/onetap/console.h"
#include "tools/onetap/number_range.h"
#include "tools/onetap/offered_words.h"
#include "tools/onetap/opened_data.h"
#include "tools/onetap/table.h"
#include "tools/onetap/verbs.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <atomic>
#include <chrono>
#include <future>
#include <iostream>
#include <memory>

namespace onetap::tool {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

struct DataBench {
  std::string data;
  std::vector<int64_t> workers;
  int64_t image_size = 224;
  double seconds = 2;
  bool json = false;
};

// What a worker does with an image.
struct Way {
  const char* name;
  const char* what;
  bool reduced, cropped;
};
constexpr Way kWays[] = {
    {"whole", "decoded whole, cropped here", false, true},
    {"reduced", "decoded as small as the view allows, cropped here", true, true},
    {"bytes", "decoded as small as the view allows, cropped by a GPU", true, false},
};

// Random images by threads, for a time.
class Runner {
 public:
  Runner(const Dataset& data, const View& view) : data_(data), view_(view) {
    augment_.kind = Augment::kResizedCrop;
    order_ = permutation(static_cast<uint32_t>(data.size()), Random(0, Purpose::kShuffle));
  }

  // Images and the seconds that they took.
  std::pair<int64_t, double> run(const Way& way, int64_t workers, double seconds) {
    std::atomic<int64_t> done{0};
    const auto start = Clock::now();
    const auto since = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
    const auto work = [&] {
      Image image;
      std::vector<float> out(static_cast<size_t>(view_.floats()));
      while (since() < seconds) {
        read(way, next_++, image, out.data());
        ++done;
      }
    };
    std::vector<std::future<void>> threads;
    for (int64_t i = 0; i < workers; ++i) threads.push_back(std::async(std::launch::async, work));
    for (auto& thread : threads) thread.get();
    return {done, since()};
  }

 private:
  void read(const Way& way, uint64_t number, Image& image, float* out) const {
    const uint32_t index = order_[static_cast<size_t>(number % order_.size())];
    const Random random(0, Purpose::kAugment, static_cast<uint32_t>(number / order_.size()), index);
    Crop crop;
    const auto choose = [&](int64_t height, int64_t width) {
      return train_crop(height, width, view_, augment_, random);
    };
    if (way.reduced) {
      crop = read_for_view(data_, index, view_, choose, image);
    } else {
      data_.read(index, image);
      crop = choose(image.height, image.width);
    }
    if (way.cropped) crop_view(image, view_, crop, out);
  }

  const Dataset& data_;
  const View view_;
  AugmentOptions augment_;
  std::vector<uint32_t> order_;
  std::atomic<uint64_t> next_{0};
};

int run_bench_data(const DataBench& bench) {
  const DataSource source = open_data(bench.data);
  warn_of_skipped(source);
  View view;
  view.size = bench.image_size;
  view.normalisation = source.normalisation;
  std::vector<int64_t> counts = bench.workers;
  if (counts.empty()) {
    counts = {1};
    if (available_cpus() > 1) counts.push_back(available_cpus());
  }
  Runner runner(*source.train, view);
  // In turns, so that a busy machine is busy for all.
  constexpr int kTurns = 8;
  Json list = Json::array();
  Table table({{"workers", Table::Align::kRight},
               {"images"},
               {"img/s", Table::Align::kRight},
               {"times whole", Table::Align::kRight}});
  for (const int64_t workers : counts) {
    int64_t images[std::size(kWays)] = {};
    double seconds[std::size(kWays)] = {};
    for (int turn = 0; turn < kTurns; ++turn) {
      for (size_t i = 0; i < std::size(kWays); ++i) {
        const auto [done, took] = runner.run(kWays[i], workers, bench.seconds / kTurns);
        images[i] += done;
        seconds[i] += took;
      }
      console().progress(fmt::format("measuring {} worker(s): {} of {}", workers, turn + 1, kTurns));
    }
    Json row = {{"workers", workers}};
    const auto rate = [&](size_t i) { return static_cast<double>(images[i]) / seconds[i]; };
    for (size_t i = 0; i < std::size(kWays); ++i) {
      row[std::string(kWays[i].name) + "_img_per_s"] = rate(i);
      table.add({i == 0 ? std::to_string(workers) : "", kWays[i].what, fmt::format("{:.0f}", rate(i)),
                 fmt::format("{:.2f}", rate(i) / rate(0))});
    }
    list.push_back(std::move(row));
  }
  console().clear_progress();
  warn_of_unreadable(source);
  if (bench.json) {
    std::cout << json_text(Json{{"data", bench.data}, {"image_size", bench.image_size}, {"by_workers", list}}, 2)
              << '\n';
  } else {
    console().print(fmt::format("{}: random resized crops of {}x{}", bench.data, view.size, view.size));
    std::cout << '\n' << table.text();
  }
  return 0;
}

}  // namespace

void add_bench_data(CLI::App& bench, Action& action) {
  auto options = std::make_shared<DataBench>();
  CLI::App* verb = bench.add_subcommand("data", "time how fast training images are decoded and cropped");
  verb->add_option("--data", options->data, "shapes, cifar10[:DIR], cifar100[:DIR] or folder:DIR")
      ->required()
      ->check(offered(data_words()))
      ->option_text("SPEC");
  verb->add_option("--workers", options->workers, "numbers of threads to try (default: 1 and all CPUs)")
      ->delimiter(',')
      ->check(CLI::Range(1, 1024))
      ->option_text("N,...");
  verb->add_option("--image-size", options->image_size, "side of the view")
      ->check(CLI::Range(1, 4096))
      ->option_text("N [224]");
  verb->add_option("--seconds", options->seconds, "measuring time for each row")
      ->check(number_from(0.01, 3600))
      ->option_text("S [2]");
  verb->add_flag("--json", options->json, "print JSON");
  verb->footer(
      "Examples:\n"
      "  onetap bench data --data folder:imagenet\n"
      "  onetap bench data --data folder:imagenet --workers 1,8,16 --image-size 176 --json\n"
      "\nNothing is trained. Compare with the img/s of a run: if that is lower, reading images is not the bottleneck.");
  verb->callback([options, &action] { action = [options] { return run_bench_data(*options); }; });
}

}  // namespace onetap::tool
