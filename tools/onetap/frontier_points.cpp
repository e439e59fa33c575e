#include "tools/onetap/frontier_points.h"

#include "onetap/base/cpus.h"
#include "onetap/base/fail.h"
#include "onetap/base/text.h"
#include "onetap/count/count.h"
#include "onetap/data/source.h"
#include "onetap/graph/method.h"
#include "onetap/tap/tap_file.h"
#include "onetap/tap/test_fact.h"
#include "tools/onetap/bench_model.h"
#include "tools/onetap/console.h"
#include "tools/onetap/eval.h"
#include "tools/onetap/frontier_freeze.h"
#include "tools/onetap/sweep_results.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace fs = std::filesystem;

namespace onetap::tool {
namespace {

// A network that is a point soon.
struct Opened {
  FrontierPoint point;
  TapNet net;
  std::optional<Recipe> recipe;     // of the run that it is, or that it lies in
  std::optional<RunScores> scores;  // of a run
  BenchSetting images;
  std::unique_ptr<ModelBenchmark> ours;
  std::unique_ptr<Benchmark> onnxruntime;
  std::string onnxruntime_version, calibrated_on;
};

// What is left of the paths without the directories that all of them have in common.
std::vector<std::string> short_names(const std::vector<fs::path>& paths) {
  std::vector<std::vector<fs::path>> parts;
  for (const fs::path& path : paths) {
    const fs::path whole = (fs::absolute(path) / "").lexically_normal().parent_path();
    parts.emplace_back(whole.begin(), whole.end());
  }
  size_t common = 0;
  const auto is_common = [&](size_t at) {
    return std::all_of(parts.begin(), parts.end(),
                       [&](const auto& p) { return at + 1 < p.size() && p[at] == parts[0][at]; });
  };
  while (is_common(common)) ++common;
  std::vector<std::string> names;
  for (const auto& path : parts) {
    fs::path rest;
    for (size_t i = common; i < path.size(); ++i) rest /= path[i];
    names.push_back(rest.string());
  }
  return names;
}

double kept_weights(const TapNet& net) {
  double sum = 0;
  for (const Node& node : net.graph.nodes()) {
    const auto layer = net.layers.find(node.name);
    if (layer == net.layers.end()) continue;
    if (node.op == Op::kTapConv) {
      for (const int64_t slices : kept_counts(net, node)) sum += static_cast<double>(slices);
    } else {
      sum += static_cast<double>(layer->second.weight.count());
    }
  }
  return sum;
}

std::string network_name(const Recipe& recipe) {
  const std::string arch = fs::path(recipe.arch).stem().string();
  return recipe.width ? fmt::format("{} w{}", arch, *recipe.width) : arch;
}

// A file says how it was trained if `freeze` made it; others have the kind of the run that they lie in, if any.
std::string kind_of_file(const TapNet& net, const std::string& kind_of_run) {
  if (const auto fact = net.facts.find("method"); fact != net.facts.end()) return fact->second;
  return kind_of_run.empty() ? method_summary(net.graph) : kind_of_run;
}

void warn_of_another_step(const Opened& opened) {
  if (!opened.scores) return;
  const auto text = other_step_text(opened.point.file.string(), opened.net, opened.scores->step);
  if (text) console().warn("[frontier] " + *text);
}

// By what was typed; the run's own where that names no set of its kind.
std::string data_of_run(const std::string& own, const std::vector<std::string>& given) {
  const std::string kind = parse_data_spec(own).kind;
  for (const std::string& spec : given) {
    if (parse_data_spec(spec).kind == kind) return spec;
  }
  return own;
}

// The first that has as many classes as the network has outputs.
std::string data_of_file(const TapNet& net, const std::vector<std::string>& given, OpenedData& data,
                         const fs::path& path) {
  const Shape& output = net.graph.node(net.graph.output()).shape;
  for (const std::string& spec : given) {
    if (Shape{static_cast<int64_t>(data.open(spec)->classes.size())} == output) return spec;
  }
  fail_usage("[frontier] expected --data with {} classes for a file without a run, got {} ({})", shape_text(output),
             given.empty() ? "none" : join(given, ", "), path.string());
}

// CIFAR is the same wherever it lies.
std::string data_name(const std::string& spec) {
  const std::string kind = parse_data_spec(spec).kind;
  if (kind == "cifar10") return "CIFAR-10";
  if (kind == "cifar100") return "CIFAR-100";
  return absolute_data_spec(spec);
}

class Measuring {
 public:
  explicit Measuring(const FrontierOptions& options) : options_(options) {}

  // A signal's number, or 0.
  int open(const std::vector<fs::path>& paths) {
    const std::vector<std::string> names = short_names(paths);
    for (size_t i = 0; i < paths.size(); ++i) {
      try {
        auto opened = std::make_unique<Opened>();
        opened->point.name = names[i];
        if (const int signal = open_one(paths[i], *opened)) return signal;
        prepare(*opened);
        networks_.push_back(std::move(opened));
      } catch (const Error& problem) {
        console().warn(fmt::format("{} left out: {}", names[i], problem.what()));
      }
    }
    return 0;
  }

  void add_peers() {
    if (std::find(options_.against.begin(), options_.against.end(), "onnxruntime") == options_.against.end()) return;
    for (const auto& opened : networks_) {
      if (!opened->point.is_dense()) continue;
      console().progress(fmt::format("{}: loading it in ONNX Runtime", opened->point.name));
      try {
        const PeerImages images = opened->point.is_int8() ? images_for(*opened) : PeerImages();
        opened->calibrated_on = images.text();
        opened->onnxruntime = onnxruntime_benchmark(opened->net, opened->images, images, opened->onnxruntime_version);
      } catch (const MissingPeer&) {
        throw;  // nothing of what was asked for can be had
      } catch (const Error& problem) {
        console().warn(fmt::format("{} was not run by ONNX Runtime: {}", opened->point.name, problem.what()));
      }
    }
    console().clear_progress();
  }

  void test() {
    for (size_t i = 0; i < networks_.size();) {
      Opened& opened = *networks_[i];
      try {
        test_one(opened);
        const double accuracy = opened.point.accuracy;
        if (!(accuracy >= 0 && accuracy <= 100)) {
          fail("[frontier] expected an accuracy from 0 to 100 %, got {} %", accuracy);
        }
        ++i;
      } catch (const Error& problem) {
        console().warn(fmt::format("{} left out: {}", opened.point.name, problem.what()));
        networks_.erase(networks_.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
    data_.warn_of_unreadable();
  }

  std::vector<FrontierPoint> time() {
    std::vector<Benchmark*> benchmarks;
    for (const auto& opened : networks_) {
      benchmarks.push_back(opened->ours.get());
      if (opened->onnxruntime) benchmarks.push_back(opened->onnxruntime.get());
    }
    TurnOptions turns;
    turns.seconds = options_.seconds;
    turns.progress = [&](double done) {
      console().progress(fmt::format("timing {} networks in turns: {:.0f} %", benchmarks.size(), done * 100));
    };
    const auto seconds = time_in_turns(benchmarks, turns);
    console().clear_progress();
    std::vector<FrontierPoint> points;
    size_t next = 0;
    const auto take_time = [&](FrontierPoint point) {
      const Quantiles q = quantiles(seconds[next++]);
      point.milliseconds = {q.p10 * 1e3, q.median * 1e3, q.p90 * 1e3};
      points.push_back(std::move(point));
    };
    for (const auto& opened : networks_) {
      take_time(opened->point);
      if (!opened->onnxruntime) continue;
      FrontierPoint peer = opened->point;
      peer.run_by = "ONNX Runtime " + opened->onnxruntime_version;
      peer.calibrated_on = opened->calibrated_on;
      peer.bytes = peer.macs = peer.weights = peer.memory = std::nullopt;
      take_time(std::move(peer));
    }
    return points;
  }

  bool is_empty() const { return networks_.empty(); }

 private:
  int open_one(const fs::path& path, Opened& opened) {
    FrontierPoint& point = opened.point;
    std::string kind_of_run;
    point.file = path;
    std::error_code ignored;
    if (fs::is_directory(path, ignored)) {
      const RunFiles run(path);
      take_recipe(run, opened);
      point.kind = method_summary(run.read_graph());
      opened.scores = read_scores(run);
      point.file = run.model();
      if (!fs::exists(point.file, ignored)) {
        FreezeRequest request;
        request.run = run;
        request.name = point.name;
        request.data = data_of_run(opened.recipe->data, options_.data);
        request.step = opened.scores ? std::optional(opened.scores->step) : std::nullopt;
        request.out = options_.out;
        request.program = options_.program;
        request.memory_limit = options_.memory_limit;
        const FrozenRun frozen = freeze_for_frontier(request);
        if (frozen.interrupted_by != 0) return frozen.interrupted_by;
        point.file = frozen.file;
      }
    } else if (const RunFiles run(path.parent_path()); run.holds_run()) {
      take_recipe(run, opened);
      kind_of_run = method_summary(run.read_graph());
      point.setting += path.filename().string();  // two files of a run are no two seeds
    }
    opened.net = read_tap(point.file);
    point.type = weight_type_name(opened.net);
    warn_of_another_step(opened);
    if (point.network.empty()) point.network = opened.net.graph.name();
    if (point.kind.empty()) point.kind = kind_of_file(opened.net, kind_of_run);
    return 0;
  }

  static void take_recipe(const RunFiles& run, Opened& opened) {
    opened.recipe = run.read_config();
    opened.point.network = network_name(*opened.recipe);
    Recipe setting = *opened.recipe;
    setting.seed = 0;
    opened.point.setting = recipe_text(setting);
  }

  void prepare(Opened& opened) {
    ModelOptions model_options;
    model_options.memory_limit = options_.memory_limit;
    const auto model = std::make_shared<const Model>(opened.net, model_options);
    opened.images = random_images(opened.net.graph, options_.threads, 1);
    opened.ours = std::make_unique<ModelBenchmark>(model, opened.images, options_.threads);
    FrontierPoint& point = opened.point;
    point.bytes = static_cast<double>(fs::file_size(point.file));
    point.macs = count_network(opened.net.graph, CountRules::kPaper).macs;
    point.weights = kept_weights(opened.net);
    point.memory = static_cast<double>(model->weight_bytes() + opened.ours->session().memory_bytes());
  }

  // What it is tested on. kUsage if that was not said.
  std::string data_of(const Opened& opened) {
    return opened.recipe ? data_of_run(opened.recipe->data, options_.data)
                         : data_of_file(opened.net, options_.data, data_, opened.point.file);
  }

  // Those that `quantize` takes of the point's data, if they are here.
  PeerImages images_for(const Opened& opened) {
    const std::string spec = data_of(opened);
    if (!is_here(spec)) return random_peer_images(opened.net.graph);
    return peer_images(opened.net, *data_.open(spec), data_name(spec), options_.images, "frontier");
  }

  void test_one(Opened& opened) {
    FrontierPoint& point = opened.point;
    const std::string spec = data_of(opened);
    point.data = data_name(spec);
    if (!options_.no_eval && is_here(spec)) {
      EvalArguments arguments;
      arguments.data = spec;
      arguments.memory_limit = options_.memory_limit;
      point.accuracy = percent(evaluate_tap(arguments, point.file.string(), data_).front().accuracy);
      point.accuracy_of = "file";
      return;
    }
    // A run tested its network of floats: that is no accuracy of an int8 file.
    if (const auto tested = test_fact(opened.net); tested && point.is_int8()) {
      if (tested->data == parse_data_spec(spec).kind) {
        point.accuracy = percent(tested->accuracy);
        point.accuracy_of = "quantize";
        return;
      }
    }
    if (!opened.scores || point.is_int8()) {
      fail_data("[frontier] expected data to test on or a recorded accuracy, got neither");
    }
    point.accuracy = percent(opened.scores->acc_hard.value_or(opened.scores->acc_soft));
    point.accuracy_of = "run";
  }

  // Said once of each set.
  bool is_here(const std::string& spec) {
    if (missing_.count(spec) > 0) return false;
    try {
      data_.open(spec);
      return true;
    } catch (const Error& problem) {
      missing_.insert(spec);
      console().warn(fmt::format("{}; accuracies are those that the runs recorded", problem.what()));
      return false;
    }
  }

  const FrontierOptions& options_;
  OpenedData data_;
  std::set<std::string> missing_;
  std::vector<std::unique_ptr<Opened>> networks_;  // benchmarks refer to their images
};

}  // namespace

bool FrontierPoint::is_dense() const {
  return kind == "dense";
}

bool FrontierPoint::is_int8() const {
  return type == "int8";
}

std::string FrontierPoint::kind_name() const {
  return kind + (is_int8() ? " int8" : "") + (run_by == "onetap" ? "" : " by " + run_by);
}

std::vector<FrontierPoint> measure_points(const FrontierOptions& options, int& interrupted_by) {
  Measuring measuring(options);
  interrupted_by = measuring.open(find_networks(options));
  if (interrupted_by != 0) return {};
  measuring.add_peers();
  measuring.test();
  if (measuring.is_empty()) fail_data("[frontier] expected a network with an accuracy, got none that can be used");
  return measuring.time();
}

}  // namespace onetap::tool
