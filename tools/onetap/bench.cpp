// onetap bench: how fast a frozen network runs here, alone and against others.
#include "tools/onetap/bench.h"

#include "onetap/base/fail.h"
#include "onetap/base/json.h"
#include "onetap/base/naming_file.h"
#include "onetap/base/text.h"
#include "onetap/graph/op.h"
#include "onetap/journal/run_files.h"
#include "onetap/quant/float_net.h"
#include "onetap/runtime/int8_model.h"
#include "onetap/tap/fold.h"
#include "onetap/tap/random_net.h"
#include "onetap/tap/tap_file.h"
#include "tools/onetap/bench_model.h"
#include "tools/onetap/console.h"
#include "tools/onetap/frozen_argument.h"
#include "tools/onetap/memory_option.h"
#include "tools/onetap/network_argument.h"
#include "tools/onetap/number_range.h"
#include "tools/onetap/opened_data.h"
#include "tools/onetap/table.h"
#include "tools/onetap/target_option.h"
#include "tools/onetap/training.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>
#include <map>
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
  std::string data;  // to calibrate onnxruntime's int8 with; else random images
  int64_t images = kCalibrationImages;
  bool layers = false;
  bool json = false;
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

using Ours = ModelBenchmark;

// Multiply-adds in registers on every thread, of floats or as dot products of bytes: what the machine can do at all, in
// the same weather.
class Peak : public Benchmark {
 public:
  Peak(const KernelSet& kernels, int64_t threads) : kernels_(kernels), pool_(threads) {}

  const KernelSet& kernels() const { return kernels_; }

  void run(int64_t times, std::vector<double>& seconds) override {
    for (int64_t i = 0; i < times; ++i) {
      std::atomic<double> sink{0};
      const auto start = Clock::now();
      pool_.run(pool_.size(), [&](int64_t, int64_t) {
        sink = kernels_.int8 != nullptr ? kernels_.int8->dot_rounds(kRounds, 3) : kernels_.fma_rounds(kRounds, 0.5f);
      });
      seconds.push_back(seconds_since(start));
    }
  }

  // 2 for each multiply-add, as everywhere.
  double gflops(double seconds) const {
    const int64_t flops = kernels_.int8 != nullptr ? 2 * kernels_.int8->macs_per_round : kernels_.flops_per_round;
    return static_cast<double>(kRounds * flops * pool_.size()) / seconds / 1e9;
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
  bool int8 = false;     // else floats
  Quantiles seconds;

  double gflops() const { return 2 * macs / seconds.median / 1e9; }
};

struct Bench {
  std::string network;
  TapNet net;
  BenchSetting setting;
  std::vector<std::unique_ptr<Benchmark>> benchmarks;
  std::vector<Entry> entries;                   // ours first
  std::map<std::string, std::string> left_out;  // peers that are not installed, and why
  std::vector<double> layer_seconds;
};

TapNet open_network(const BenchArguments& options, const std::string& name, bool takes_flags) {
  if (names_tap(name) || RunFiles(name).holds_run() || holds_frozen(name)) {
    if (options.network.has_flags())
      fail_usage("[bench] {} is a frozen network: flags that define a network do not apply", name);
    return read_tap(frozen_file(name, "bench"));
  }
  if (!takes_flags) fail_usage("[bench] expected .tap files where there are several networks, got '{}'", name);
  return random_tap_net(frozen_form(options.network.build()).graph, 1);
}

void add_entry(Bench& bench, const std::string& name, const std::string& detail, std::unique_ptr<Benchmark> benchmark,
               int64_t macs, bool int8) {
  Entry entry;
  entry.network = bench.network;
  entry.name = name;
  entry.detail = detail;
  entry.benchmark = benchmark.get();
  entry.ours = dynamic_cast<Ours*>(benchmark.get());
  entry.macs = static_cast<double>(macs * bench.setting.batch);
  entry.int8 = int8;
  bench.entries.push_back(std::move(entry));
  bench.benchmarks.push_back(std::move(benchmark));
}

PeerImages images_of(const BenchArguments& options, const TapNet& net, OpenedData& data) {
  if (options.data.empty()) return random_peer_images(net.graph);
  return peer_images(net, *data.open(options.data), options.data, options.images, "bench");
}

// MissingPeer if it is not installed.
void add_rival(const BenchArguments& options, const std::shared_ptr<const Model>& model, const std::string& rival,
               OpenedData& data, Bench& bench) {
  const std::string target = model->kernels().name;
  const int64_t dense_macs = model->dense_macs();
  const bool int8 = model->is_int8();
  std::string version;
  if (rival == "dense") {
    ModelOptions every_tap = options.model;
    every_tap.dense = true;
    const auto dense = std::make_shared<const Model>(bench.net, every_tap);
    add_entry(bench, "dense", target + ", every tap", std::make_unique<Ours>(dense, bench.setting, options.threads),
              dense_macs, int8);
  } else if (rival == "one-thread") {
    add_entry(bench, "one-thread", target + ", one thread", std::make_unique<Ours>(model, bench.setting, 1),
              model->macs(), int8);
  } else if (rival == "float") {
    if (!int8) fail_usage("[bench] expected an int8 network for --against float, got floats ({})", bench.network);
    ModelOptions in_floats = options.model;
    in_floats.target = model->float_kernels().name;
    const auto floats = std::make_shared<const Model>(float_net(bench.net), in_floats);
    add_entry(bench, "float", in_floats.target + ", the network in floats",
              std::make_unique<Ours>(floats, bench.setting, options.threads), floats->macs(), false);
  } else if (rival == "onnxruntime") {
    const PeerImages images = int8 ? images_of(options, bench.net, data) : PeerImages();
    auto benchmark = onnxruntime_benchmark(bench.net, bench.setting, images, version);
    if (int8) version += fmt::format(", its own QDQ int8, {}", images.text());
    add_entry(bench, "onnxruntime", version, std::move(benchmark), dense_macs, int8);
  } else {
    if (!training_installed())
      throw MissingPeer("[bench] this onetap has no training module, which --against libtorch needs");
    auto benchmark =
        open_training("bench").libtorch_benchmark(int8 ? float_net(bench.net) : bench.net, bench.setting, version);
    add_entry(bench, "libtorch", version + (int8 ? ", floats" : ""), std::move(benchmark), dense_macs, false);
  }
}

void prepare(const BenchArguments& options, OpenedData& data, Bench& bench) {
  const auto model = std::make_shared<const Model>(bench.net, options.model);
  bench.setting = random_images(bench.net.graph, options.threads, options.batch);
  const std::string target = model->kernels().name;
  const bool int8 = model->is_int8();
  add_entry(bench, "onetap", target + (int8 ? ", int8" : ""),
            std::make_unique<Ours>(model, bench.setting, options.threads), model->macs(), int8);
  for (const std::string& rival : options.against) {
    try {
      add_rival(options, model, rival, data, bench);
    } catch (const MissingPeer& problem) {
      bench.left_out[rival] = problem.what();
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
  if (layer.int8 != nullptr && layer.int8->conv != nullptr) {
    const Int8ConvPlan& plan = *layer.int8->conv;
    return fmt::format("{}{} outputs x {} vectors", plan.is_dense() && plan.shape().taps > 0 ? "dense, " : "",
                       plan.outputs(), plan.vectors());
  }
  if (layer.planes != nullptr) return fmt::format("{} planes at a time", layer.planes->planes_at_once());
  const ConvPlan* conv = layer.conv.get();
  if (conv == nullptr) return "";
  const ConvBlocking& b = conv->blocking();
  return fmt::format("{}{} outputs x {} vectors, {} channels", b.dense && conv->shape().taps > 0 ? "dense, " : "",
                     b.outputs, b.vectors, b.channels);
}

// GFLOP/s of multiply-adds in registers: of floats, and of bytes where a network is one of int8.
struct Peaks {
  double fma = 0, dot = 0;

  double of(bool int8) const { return int8 ? dot : fma; }
};

// Rates of bytes are multiply-adds, of floats two for each.
void add_rates(Json& object, bool int8, double gflops, const Peaks& peaks) {
  if (int8) {
    object["gmacs"] = gflops / 2;
    object["dot_peak_fraction"] = gflops / peaks.dot;
  } else {
    object["gflops"] = gflops;
    object["fma_peak_fraction"] = gflops / peaks.fma;
  }
}

Json numbers(const Entry& entry, const Peaks& peaks) {
  Json object = {{"median_ms", entry.seconds.median * 1e3},
                 {"p10_ms", entry.seconds.p10 * 1e3},
                 {"p90_ms", entry.seconds.p90 * 1e3}};
  add_rates(object, entry.int8, entry.gflops(), peaks);
  return object;
}

Json bench_json(const BenchArguments& options, const Bench& bench, const Peaks& peaks) {
  const Entry& ours = bench.entries.front();
  const Model& model = ours.ours->model();
  Json object = {{"network", bench.network},
                 {"target", model.kernels().name},
                 {"type", ours.int8 ? "int8" : "f32"},
                 {"threads", options.threads},
                 {"batch", options.batch}};
  object.update(numbers(ours, peaks));
  object["images_per_s"] = static_cast<double>(options.batch) / ours.seconds.median;
  if (ours.int8) {
    object["dot_peak_gmacs"] = peaks.dot / 2;
  } else {
    object["fma_peak_gflops"] = peaks.fma;
  }
  object["macs"] = model.macs();
  object["weight_bytes"] = model.weight_bytes();
  object["session_bytes"] = ours.ours->session().memory_bytes();
  object["peak_resident_bytes"] = peak_resident_bytes();
  Json layers = Json::array();
  for (size_t i = 0; i < bench.layer_seconds.size(); ++i) {
    const PlannedStep& step = model.plan().steps[i];
    const double gflops = 2 * static_cast<double>(model.step_macs(i)) / bench.layer_seconds[i] / 1e9;
    Json layer = {{"name", step.node->name},
                  {"op", step_label(step)},
                  {"ms", bench.layer_seconds[i] * 1e3},
                  {"macs", model.step_macs(i)}};
    add_rates(layer, ours.int8, gflops, peaks);
    layer["walk"] = walk_text(model.layer(i));
    layers.push_back(std::move(layer));
  }
  object["layers"] = std::move(layers);
  Json peers = Json::object();
  for (size_t i = 1; i < bench.entries.size(); ++i) {
    Json peer = numbers(bench.entries[i], peaks);
    peer["version"] = bench.entries[i].detail;
    peer["times_onetap"] = bench.entries[i].seconds.median / ours.seconds.median;
    peers[bench.entries[i].name] = std::move(peer);
  }
  object["peers"] = std::move(peers);
  if (!bench.left_out.empty()) object["left_out"] = bench.left_out;
  return object;
}

void print_tables(const BenchArguments& options, const std::vector<Bench>& benches, const Peaks& peaks) {
  using A = Table::Align;
  Table table({{"network"},
               {"run by"},
               {""},
               {"median ms", A::kRight},
               {"p10", A::kRight},
               {"p90", A::kRight},
               {peaks.dot > 0 ? "GOP/s" : "GFLOP/s", A::kRight},
               {"of peak", A::kRight},
               {"time / onetap's", A::kRight}});
  for (const Bench& bench : benches) {
    for (const Entry& entry : bench.entries) {
      table.add({&entry == &bench.entries.front() ? bench.network : "", entry.name, entry.detail,
                 fmt::format("{:.3f}", entry.seconds.median * 1e3), fmt::format("{:.3f}", entry.seconds.p10 * 1e3),
                 fmt::format("{:.3f}", entry.seconds.p90 * 1e3), fmt::format("{:.1f}", entry.gflops()),
                 fmt::format("{:.0f} %", 100 * entry.gflops() / peaks.of(entry.int8)),
                 fmt::format("{:.2f}", entry.seconds.median / bench.entries.front().seconds.median)});
    }
  }
  std::cout << table.text() << '\n';
  std::cout << fmt::format("{} thread{}, batch {}; in turns within one run", options.threads,
                           options.threads == 1 ? "" : "s", options.batch);
  if (peaks.fma > 0) std::cout << fmt::format("; FMA peak here: {:.1f} GFLOP/s", peaks.fma);
  if (peaks.dot > 0) std::cout << fmt::format("; dot-product peak here: {:.1f} GMAC/s", peaks.dot / 2);
  std::cout << '\n';
  for (const Bench& bench : benches) {
    const Ours& ours = *bench.entries.front().ours;
    console().print(fmt::format("{}: {} MACs per image, {} of weights, {} of activations and scratch", bench.network,
                                with_thousands(static_cast<double>(ours.model().macs())),
                                bytes_text(static_cast<double>(ours.model().weight_bytes())),
                                bytes_text(static_cast<double>(bench.entries.front().ours->session().memory_bytes()))));
  }
  std::cout << fmt::format("peak memory of the process: {}\n", bytes_text(static_cast<double>(peak_resident_bytes())));
  if (!options.layers) return;
  for (const Bench& bench : benches) {
    const Model& model = bench.entries.front().ours->model();
    Table layers({{"layer of " + bench.network},
                  {"does"},
                  {"output"},
                  {"us", A::kRight},
                  {model.is_int8() ? "GOP/s" : "GFLOP/s", A::kRight},
                  {"of peak", A::kRight},
                  {"how"}});
    for (size_t i = 0; i < bench.layer_seconds.size(); ++i) {
      const PlannedStep& step = model.plan().steps[i];
      const double gflops = 2 * static_cast<double>(model.step_macs(i)) / bench.layer_seconds[i] / 1e9;
      const bool counts = model.step_macs(i) > 0;
      layers.add({step.node->name, step_label(step), shape_text(step.node->shape),
                  fmt::format("{:.1f}", bench.layer_seconds[i] * 1e6), counts ? fmt::format("{:.1f}", gflops) : "",
                  counts ? fmt::format("{:.0f} %", 100 * gflops / peaks.of(model.is_int8())) : "",
                  walk_text(model.layer(i))});
    }
    std::cout << '\n' << layers.text();
  }
}

// Networks of floats and of bytes may need different peers.
void warn_of_missing_peers(const std::vector<Bench>& benches) {
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> networks;  // by peer and reason
  for (const Bench& bench : benches) {
    for (const auto& missing : bench.left_out) networks[missing].push_back(bench.network);
  }
  for (const auto& [missing, names] : networks) {
    const std::string of = names.size() == benches.size() ? "" : " of " + join(names, ", ");
    console().warn(fmt::format("left out {}{}: {}", missing.first, of, missing.second));
  }
}

int run_bench(const BenchArguments& options) {
  const bool asks_onnxruntime =
      std::find(options.against.begin(), options.against.end(), "onnxruntime") != options.against.end();
  if (!options.data.empty() && !asks_onnxruntime) {
    fail_usage("[bench] expected --against onnxruntime with --data, got none");
  }
  std::vector<std::string> names = {options.network.name};
  names.insert(names.end(), options.more.begin(), options.more.end());
  OpenedData data;
  std::vector<Bench> benches(names.size());
  std::vector<Benchmark*> benchmarks;
  std::vector<Entry*> rows;
  for (size_t i = 0; i < names.size(); ++i) {
    Bench& bench = benches[i];
    bench.network = names[i];
    bench.net = open_network(options, names[i], names.size() == 1);
    naming_file(names[i], [&] { prepare(options, data, bench); });
    for (Entry& entry : bench.entries) {
      benchmarks.push_back(entry.benchmark);
      rows.push_back(&entry);
    }
  }
  const auto is_int8 = [](const Bench& bench) { return bench.entries.front().int8; };
  if (!options.data.empty() && std::none_of(benches.begin(), benches.end(), is_int8)) {
    fail_usage("[bench] expected an int8 network for --data, got floats ({})", names.front());
  }
  warn_of_missing_peers(benches);
  data.warn_of_unreadable();
  std::vector<std::unique_ptr<Peak>> machine;
  for (const bool int8 : {false, true}) {
    const auto entry = std::find_if(rows.begin(), rows.end(), [&](const Entry* row) { return row->int8 == int8; });
    if (entry == rows.end()) continue;
    // An entry of floats beside an int8 network is not always ours.
    const Model& model = benches.front().entries.front().ours->model();
    const KernelSet& own = int8 ? find_kernels(options.model.target, DType::kI8) : model.float_kernels();
    machine.push_back(std::make_unique<Peak>(own, options.threads));
    benchmarks.push_back(machine.back().get());
  }
  TurnOptions turns;
  turns.seconds = options.seconds;
  turns.progress = [](double done) { console().progress(fmt::format("measuring: {:.0f} %", done * 100)); };
  const auto seconds = time_in_turns(benchmarks, turns);
  for (size_t i = 0; i < rows.size(); ++i) rows[i]->seconds = quantiles(seconds[i]);
  if (options.layers || options.json) {
    for (Bench& bench : benches) time_layers(bench);
  }
  console().clear_progress();
  Peaks peaks;
  for (size_t i = 0; i < machine.size(); ++i) {
    const double gflops = machine[i]->gflops(quantiles(seconds[rows.size() + i]).median);
    (machine[i]->kernels().int8 != nullptr ? peaks.dot : peaks.fma) = gflops;
  }
  if (options.json) {
    Json list = Json::array();
    for (const Bench& bench : benches) list.push_back(bench_json(options, bench, peaks));
    std::cout << json_text(list.size() == 1 ? list.front() : list, 2) << '\n';
  } else {
    print_tables(options, benches, peaks);
  }
  return 0;
}

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  auto options = std::make_shared<BenchArguments>();
  CLI::App* verb = app.add_subcommand("bench", "time frozen networks on this CPU, alone or in turns with peers");
  options->network.add(
      *verb,
      "a .tap file or a run directory with model.tap; or an architecture or network text file, with random weights",
      /*with_layers=*/false);
  verb->add_option("MORE", options->more, "more networks, timed in turns with the first");
  verb->add_option("--threads", options->threads, "CPU threads")->check(CLI::Range(1, 1024))->option_text("N [1]");
  verb->add_option("--batch", options->batch, "images per call")->check(CLI::Range(1, 65536))->option_text("N [1]");
  verb->add_option("--against", options->against,
                   "dense (the same network, every tap), one-thread, float (of an int8 network), onnxruntime, libtorch")
      ->delimiter(',')
      ->check(CLI::IsMember({"dense", "one-thread", "float", "onnxruntime", "libtorch"}))
      ->option_text("NAME,...");
  auto* data =
      verb->add_option("--data", options->data,
                       "calibrate ONNX Runtime's int8 with training images of this set: shapes, cifar10[:DIR], "
                       "cifar100[:DIR] or folder:DIR (default: random images)");
  data->option_text("TEXT");
  verb->add_option("--images", options->images,
                   "number of calibration images, spread evenly over the set as by 'quantize'")
      ->check(CLI::Range(1, 1 << 30))
      ->needs(data)
      ->option_text("N [512]");
  add_target_option(*verb, options->model.target);
  verb->add_flag("--tune", options->model.tune, "time alternatives for every layer, and store the fastest");
  add_memory_option(*verb, options->model.memory_limit);
  verb->add_option("--seconds", options->seconds, "time to measure each network")
      ->check(number_from(0.01, 3600))
      ->option_text("S [1]");
  verb->add_flag("--layers", options->layers, "print the time of every layer");
  verb->add_flag("--json", options->json, "print JSON");
  verb->footer(
      "Examples:\n"
      "  onetap bench model.tap --layers\n"
      "  onetap bench model.tap --against dense,onnxruntime\n"
      "  onetap bench model.tap --threads 2 --against one-thread\n"
      "  onetap bench resnet20 --width 80 --method sal --share 4 --against dense\n"
      "  onetap bench sal.tap dense.tap --against onnxruntime --json\n"
      "  onetap bench sal-int8.tap --against float,onnxruntime --data cifar10:DIR\n"
      "  onetap bench train --help                     the time of a training step\n"
      "  onetap bench data --help                      the speed of reading training images\n"
      "\nNetworks and peers take turns of some milliseconds in one run, so that other load on the machine affects all\n"
      "of them; times are medians. GFLOP/s counts two for each multiplication that is done: kept taps for onetap,\n"
      "every tap for the others. 'of peak' compares with multiply-adds of floats, or dot products of bytes, in "
      "registers,\n"
      "measured in the same run. ONNX Runtime quantizes an int8 network itself: QDQ, static, weights per output "
      "channel,\n"
      "calibrated on the images of --data, or on random ones. A peer that is not installed is left out with a "
      "warning.");
  add_training_verb(*verb, action, kBenchTrain);
  add_bench_data(*verb, action);
  verb->callback([options, verb, &action] {
    if (!verb->get_subcommands().empty()) return;
    if (options->network.name.empty()) throw CLI::RequiredError("NETWORK");
    action = [options] { return run_bench(*options); };
  });
}

}  // namespace onetap::tool
