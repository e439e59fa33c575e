// onetap bench: how fast a frozen network runs here, alone and against others.
#include "tools/onetap/bench.h"

#include "onetap/base/fail.h"
#include "onetap/base/json.h"
#include "onetap/base/text.h"
#include "onetap/graph/op.h"
#include "onetap/tap/fold.h"
#include "onetap/tap/random_net.h"
#include "onetap/tap/tap_file.h"
#include "tools/onetap/bench_model.h"
#include "tools/onetap/console.h"
#include "tools/onetap/memory_option.h"
#include "tools/onetap/network_argument.h"
#include "tools/onetap/table.h"
#include "tools/onetap/verbs.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <sys/resource.h>

namespace onetap::tool {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

struct BenchArguments {
  NetworkArgument network;
  std::vector<std::string> more;
  ModelOptions model;
  int64_t threads = 1;
  int64_t batch = 1;
  double seconds = 1.0;
  std::vector<std::string> against;
  bool layers = false;
  bool json = false;
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

using Ours = ModelBenchmark;

// Multiply-adds in registers on every thread: what the machine can do at all, in the same weather.
class Peak : public Benchmark {
 public:
  Peak(const KernelSet& kernels, int64_t threads) : kernels_(kernels), pool_(threads) {}

  void run(int64_t times, std::vector<double>& seconds) override {
    for (int64_t i = 0; i < times; ++i) {
      std::atomic<double> sink{0};
      const auto start = Clock::now();
      pool_.run(pool_.size(), [&](int64_t, int64_t) { sink = kernels_.fma_rounds(kRounds, 0.5f); });
      seconds.push_back(seconds_since(start));
    }
  }

  double gflops(double seconds) const {
    return static_cast<double>(kRounds * kernels_.flops_per_round * pool_.size()) / seconds / 1e9;
  }

 private:
  static constexpr int64_t kRounds = 20000;

  const KernelSet& kernels_;
  ThreadPool pool_;
};

// One row of the result.
struct Entry {
  std::string network, name, detail;
  Benchmark* benchmark = nullptr;
  Ours* ours = nullptr;  // where it is our runtime
  double macs = 0;       // of a batch
  Quantiles seconds;

  double gflops() const { return 2 * macs / seconds.median / 1e9; }
};

struct Bench {
  std::string network;
  TapNet net;
  BenchSetting setting;
  std::vector<std::unique_ptr<Benchmark>> benchmarks;
  std::vector<Entry> entries;  // ours first
  std::vector<double> layer_seconds;
};

TapNet open_network(const BenchArguments& options, const std::string& name, bool takes_flags) {
  if (looks_like_tap(name)) {
    if (options.network.has_flags())
      fail_usage("[bench] {} is a frozen network: flags that shape one have no place", name);
    return read_tap(name);
  }
  if (!takes_flags) fail_usage("[bench] expected .tap files where there are several networks, got '{}'", name);
  return random_tap_net(frozen_form(options.network.build()).graph, 1);
}

void add_entry(Bench& bench, const std::string& name, const std::string& detail, std::unique_ptr<Benchmark> benchmark,
               int64_t macs) {
  Entry entry;
  entry.network = bench.network;
  entry.name = name;
  entry.detail = detail;
  entry.benchmark = benchmark.get();
  entry.ours = dynamic_cast<Ours*>(benchmark.get());
  entry.macs = static_cast<double>(macs * bench.setting.batch);
  bench.entries.push_back(std::move(entry));
  bench.benchmarks.push_back(std::move(benchmark));
}

void prepare(const BenchArguments& options, Bench& bench) {
  const auto model = std::make_shared<const Model>(bench.net, options.model);
  bench.setting = random_images(bench.net.graph, options.threads, options.batch);
  const std::string target = model->kernels().name;
  const int64_t dense_macs = model->dense_macs();
  add_entry(bench, "onetap", target, std::make_unique<Ours>(model, bench.setting, options.threads), model->macs());
  for (const std::string& rival : options.against) {
    std::string version;
    if (rival == "dense") {
      ModelOptions every_tap = options.model;
      every_tap.dense = true;
      const auto dense = std::make_shared<const Model>(bench.net, every_tap);
      add_entry(bench, "dense", target + ", every tap", std::make_unique<Ours>(dense, bench.setting, options.threads),
                dense_macs);
    } else if (rival == "one-thread") {
      add_entry(bench, "one-thread", target + ", one thread", std::make_unique<Ours>(model, bench.setting, 1),
                model->macs());
    } else if (rival == "onnxruntime") {
      auto benchmark = onnxruntime_benchmark(bench.net, bench.setting, version);
      add_entry(bench, "onnxruntime", version, std::move(benchmark), dense_macs);
    } else {
      auto benchmark = libtorch_benchmark(bench.net, bench.setting, version);
      add_entry(bench, "libtorch", version, std::move(benchmark), dense_macs);
    }
  }
}

void time_layers(Bench& bench) {
  Session& session = bench.entries.front().ours->session();
  std::vector<float> outputs(static_cast<size_t>(session.model().output_floats()));
  std::vector<std::vector<double>> runs;
  const auto start = Clock::now();
  constexpr size_t kFewest = 10;
  while (runs.size() < kFewest || seconds_since(start) < 0.5) {
    runs.emplace_back();
    session.run_timed(bench.setting.images.data(), outputs.data(), runs.back());
  }
  for (size_t step = 0; step < runs.front().size(); ++step) {
    std::vector<double> of_step;
    for (const auto& run : runs) of_step.push_back(run[step]);
    bench.layer_seconds.push_back(quantiles(of_step).median);
  }
}

int64_t peak_resident_bytes() {
  struct rusage usage {};
  return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_maxrss * 1024 : 0;
}

std::string step_label(const PlannedStep& step) {
  return std::string(op_info(step.node->op).name) + (step.residual >= 0 ? "+add" : "") + (step.relu ? "+relu" : "");
}

std::string walk_text(const Model::Layer& layer) {
  if (layer.planes != nullptr) return fmt::format("{} planes at a time", layer.planes->planes_at_once());
  const ConvPlan* conv = layer.conv.get();
  if (conv == nullptr) return "";
  const ConvBlocking& b = conv->blocking();
  return fmt::format("{}{} outputs x {} vectors, {} channels", b.dense && conv->shape().taps > 0 ? "dense, " : "",
                     b.outputs, b.vectors, b.channels);
}

Json numbers(const Entry& entry, double peak) {
  return {{"median_ms", entry.seconds.median * 1e3},
          {"p10_ms", entry.seconds.p10 * 1e3},
          {"p90_ms", entry.seconds.p90 * 1e3},
          {"gflops", entry.gflops()},
          {"fma_peak_fraction", entry.gflops() / peak}};
}

Json bench_json(const BenchArguments& options, const Bench& bench, double peak) {
  const Entry& ours = bench.entries.front();
  const Model& model = ours.ours->model();
  Json object = {{"network", bench.network},
                 {"target", model.kernels().name},
                 {"threads", options.threads},
                 {"batch", options.batch}};
  object.update(numbers(ours, peak));
  object["images_per_s"] = static_cast<double>(options.batch) / ours.seconds.median;
  object["fma_peak_gflops"] = peak;
  object["macs"] = model.macs();
  object["weight_bytes"] = model.weight_bytes();
  object["session_bytes"] = ours.ours->session().memory_bytes();
  object["peak_resident_bytes"] = peak_resident_bytes();
  Json layers = Json::array();
  for (size_t i = 0; i < bench.layer_seconds.size(); ++i) {
    const PlannedStep& step = model.plan().steps[i];
    const double gflops = 2 * static_cast<double>(model.step_macs(i)) / bench.layer_seconds[i] / 1e9;
    layers.push_back({{"name", step.node->name},
                      {"op", step_label(step)},
                      {"ms", bench.layer_seconds[i] * 1e3},
                      {"macs", model.step_macs(i)},
                      {"gflops", gflops},
                      {"fma_peak_fraction", gflops / peak},
                      {"walk", walk_text(model.layer(i))}});
  }
  object["layers"] = std::move(layers);
  Json peers = Json::object();
  for (size_t i = 1; i < bench.entries.size(); ++i) {
    Json peer = numbers(bench.entries[i], peak);
    peer["version"] = bench.entries[i].detail;
    peer["times_onetap"] = bench.entries[i].seconds.median / ours.seconds.median;
    peers[bench.entries[i].name] = std::move(peer);
  }
  object["peers"] = std::move(peers);
  return object;
}

void print_tables(const BenchArguments& options, const std::vector<Bench>& benches, double peak) {
  using A = Table::Align;
  Table table({{"network"},
               {"run by"},
               {""},
               {"median ms", A::kRight},
               {"p10", A::kRight},
               {"p90", A::kRight},
               {"GFLOP/s", A::kRight},
               {"of peak", A::kRight},
               {"time / onetap's", A::kRight}});
  for (const Bench& bench : benches) {
    for (const Entry& entry : bench.entries) {
      table.add({&entry == &bench.entries.front() ? bench.network : "", entry.name, entry.detail,
                 fmt::format("{:.3f}", entry.seconds.median * 1e3), fmt::format("{:.3f}", entry.seconds.p10 * 1e3),
                 fmt::format("{:.3f}", entry.seconds.p90 * 1e3), fmt::format("{:.1f}", entry.gflops()),
                 fmt::format("{:.0f} %", 100 * entry.gflops() / peak),
                 fmt::format("{:.2f}", entry.seconds.median / bench.entries.front().seconds.median)});
    }
  }
  std::cout << table.text() << '\n';
  std::cout << fmt::format("{} thread{}, batch {}, f32; in turns within one run; FMA peak of {} here: {:.1f} GFLOP/s\n",
                           options.threads, options.threads == 1 ? "" : "s", options.batch,
                           benches.front().entries.front().detail, peak);
  for (const Bench& bench : benches) {
    const Ours& ours = *bench.entries.front().ours;
    console().print(fmt::format("{}: {} MACs an image, {} of weights, {} of activations and scratch", bench.network,
                                with_thousands(static_cast<double>(ours.model().macs())),
                                bytes_text(static_cast<double>(ours.model().weight_bytes())),
                                bytes_text(static_cast<double>(bench.entries.front().ours->session().memory_bytes()))));
  }
  std::cout << fmt::format("process at its largest: {}\n", bytes_text(static_cast<double>(peak_resident_bytes())));
  if (!options.layers) return;
  for (const Bench& bench : benches) {
    const Model& model = bench.entries.front().ours->model();
    Table layers({{"layer of " + bench.network},
                  {"does"},
                  {"output"},
                  {"us", A::kRight},
                  {"GFLOP/s", A::kRight},
                  {"of peak", A::kRight},
                  {"how"}});
    for (size_t i = 0; i < bench.layer_seconds.size(); ++i) {
      const PlannedStep& step = model.plan().steps[i];
      const double gflops = 2 * static_cast<double>(model.step_macs(i)) / bench.layer_seconds[i] / 1e9;
      const bool counts = model.step_macs(i) > 0;
      layers.add({step.node->name, step_label(step), shape_text(step.node->shape),
                  fmt::format("{:.1f}", bench.layer_seconds[i] * 1e6), counts ? fmt::format("{:.1f}", gflops) : "",
                  counts ? fmt::format("{:.0f} %", 100 * gflops / peak) : "", walk_text(model.layer(i))});
    }
    std::cout << '\n' << layers.text();
  }
}

int run_bench(const BenchArguments& options) {
  std::vector<std::string> names = {options.network.name};
  names.insert(names.end(), options.more.begin(), options.more.end());
  std::vector<Bench> benches(names.size());
  std::vector<Benchmark*> benchmarks;
  std::vector<Entry*> rows;
  for (size_t i = 0; i < names.size(); ++i) {
    Bench& bench = benches[i];
    bench.network = names[i];
    bench.net = open_network(options, names[i], names.size() == 1);
    prepare(options, bench);
    for (Entry& entry : bench.entries) {
      benchmarks.push_back(entry.benchmark);
      rows.push_back(&entry);
    }
  }
  Peak peak(benches.front().entries.front().ours->model().kernels(), options.threads);
  benchmarks.push_back(&peak);
  TurnOptions turns;
  turns.seconds = options.seconds;
  turns.progress = [](double done) { console().progress(fmt::format("measuring: {:.0f} %", done * 100)); };
  const auto seconds = time_in_turns(benchmarks, turns);
  for (size_t i = 0; i < rows.size(); ++i) rows[i]->seconds = quantiles(seconds[i]);
  if (options.layers || options.json) {
    for (Bench& bench : benches) time_layers(bench);
  }
  console().clear_progress();
  const double peak_gflops = peak.gflops(quantiles(seconds.back()).median);
  if (options.json) {
    Json list = Json::array();
    for (const Bench& bench : benches) list.push_back(bench_json(options, bench, peak_gflops));
    std::cout << json_text(list.size() == 1 ? list.front() : list, 2) << '\n';
  } else {
    print_tables(options, benches, peak_gflops);
  }
  return 0;
}

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  auto options = std::make_shared<BenchArguments>();
  CLI::App* verb = app.add_subcommand("bench", "how fast a frozen network runs on this CPU, alone and against others");
  options->network.add(*verb, "a .tap file; or an architecture or network text file, with random weights",
                       /*with_layers=*/false);
  verb->add_option("MORE", options->more, "more .tap files, in turns with the first");
  verb->add_option("--threads", options->threads, "CPU threads")->check(CLI::Range(1, 1024))->option_text("N [1]");
  verb->add_option("--batch", options->batch, "images a call")->check(CLI::Range(1, 65536))->option_text("N [1]");
  verb->add_option("--against", options->against,
                   "dense (the same network, every tap), one-thread, onnxruntime, libtorch")
      ->delimiter(',')
      ->check(CLI::IsMember({"dense", "one-thread", "onnxruntime", "libtorch"}))
      ->option_text("NAME,...");
  verb->add_option("--target", options->model.target, "kernels to use (default: ONETAP_TARGET, or the best here)")
      ->option_text("avx512|avx2|sse4|neon|plain");
  verb->add_flag("--tune", options->model.tune, "try alternatives for every layer, and remember the best");
  add_memory_option(*verb, options->model.memory_limit);
  verb->add_option("--seconds", options->seconds, "measuring time for each")
      ->check(CLI::Range(0.01, 3600.0))
      ->option_text("S [1]");
  verb->add_flag("--layers", options->layers, "every layer's time");
  verb->add_flag("--json", options->json, "for programs");
  verb->footer(
      "Examples:\n"
      "  onetap bench model.tap --layers\n"
      "  onetap bench model.tap --against dense,onnxruntime\n"
      "  onetap bench model.tap --threads 2 --against one-thread\n"
      "  onetap bench resnet20 --width 80 --method sal --share 4 --against dense\n"
      "  onetap bench sal.tap dense.tap --against onnxruntime --json\n"
      "  onetap bench train --help                     what a training step costs\n"
      "  onetap bench data --help                      how fast training images come\n"
      "\nAll of them take turns of some milliseconds in one run, so that a busy machine is busy for all; times are\n"
      "medians. GFLOP/s counts two for each multiplication that is done: kept taps for onetap, every tap\n"
      "for the others. 'of peak' compares with multiply-adds in registers, measured in the same run.");
  add_bench_train(*verb, action);
  add_bench_data(*verb, action);
  verb->callback([options, verb, &action] {
    if (!verb->get_subcommands().empty()) return;
    if (options->network.name.empty()) throw CLI::RequiredError("NETWORK");
    action = [options] { return run_bench(*options); };
  });
}

}  // namespace onetap::tool
