#include "onetap/report/page_data.h"

#include "onetap/base/json.h"
#include "onetap/base/version.h"
#include "onetap/count/count.h"
#include "onetap/graph/method.h"
#include "onetap/graph/op.h"
#include "onetap/recipe/schedule.h"
#include "onetap/report/paper_points.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <unordered_map>

namespace onetap {
namespace {

using Json = nlohmann::ordered_json;

// JSON has no NaN and no infinity; the page draws nothing for null.
Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json number(const std::optional<double>& value) {
  return value ? number(*value) : Json(nullptr);
}

// None where the taps are fixed: that is no temperature of the schedule.
Json temperature_of(double value) {
  return value != Schedule::kHardTemperature ? number(value) : Json(nullptr);
}

// Four digits are more than a shade or a percent shows.
Json share(double value) {
  return number(std::round(value * 1e4) / 1e4);
}

Json shares(const std::vector<double>& values) {
  Json list = Json::array();
  for (const double value : values) list.push_back(share(value));
  return list;
}

// The lines of one epoch: training, and the set that the run watches (validation or test). Either may be missing.
struct Epoch {
  const MetricLine* train = nullptr;
  const MetricLine* test = nullptr;

  const MetricLine& any() const { return test != nullptr ? *test : *train; }
};

bool is_validation(const MetricLine& line) {
  return line.split == "validation";
}

bool has_validation(const std::vector<MetricLine>& metrics) {
  return std::any_of(metrics.begin(), metrics.end(), is_validation);
}

// The test line of a run with a validation set, after its last epoch, is no part of its curves.
std::map<int64_t, Epoch> by_epoch(const std::vector<MetricLine>& metrics) {
  const bool validated = has_validation(metrics);
  std::map<int64_t, Epoch> epochs;
  for (const MetricLine& line : metrics) {
    if (line.split == "train") {
      epochs[line.epoch].train = &line;
    } else if (is_validation(line) || !validated) {
      epochs[line.epoch].test = &line;
    }
  }
  return epochs;
}

// The test line that counts: the last one; of a run with a validation set, that after the last epoch.
const MetricLine* last_test_line(const std::vector<MetricLine>& metrics) {
  const auto found = std::find_if(metrics.rbegin(), metrics.rend(),
                                  [](const MetricLine& line) { return line.split != "train" && !is_validation(line); });
  return found == metrics.rend() ? nullptr : &*found;
}

Json curves(const std::map<int64_t, Epoch>& epochs, bool attention) {
  Json columns = {{"epoch", Json::array()},     {"train_loss", Json::array()}, {"test_loss", Json::array()},
                  {"soft", Json::array()},      {"hard", Json::array()},       {"gap", Json::array()},
                  {"train_acc", Json::array()}, {"lr", Json::array()},         {"temperature", Json::array()}};
  for (const auto& [number_of_epoch, epoch] : epochs) {
    const MetricLine* train = epoch.train;
    const MetricLine* test = epoch.test;
    const bool both = test != nullptr && test->acc_hard.has_value();
    columns["epoch"].push_back(number_of_epoch);
    columns["train_loss"].push_back(train != nullptr ? number(train->loss) : Json(nullptr));
    columns["train_acc"].push_back(train != nullptr ? number(train->acc_soft) : Json(nullptr));
    columns["test_loss"].push_back(test != nullptr ? number(test->loss) : Json(nullptr));
    columns["soft"].push_back(test != nullptr ? number(test->acc_soft) : Json(nullptr));
    columns["hard"].push_back(test != nullptr ? number(test->acc_hard) : Json(nullptr));
    columns["gap"].push_back(both ? number(test->acc_soft - *test->acc_hard) : Json(nullptr));
    columns["lr"].push_back(number(epoch.any().lr));
    // A dense network has no use for the temperature that its recipe carries along.
    columns["temperature"].push_back(attention ? temperature_of(epoch.any().temperature) : Json(nullptr));
  }
  return columns;
}

// The layers of all lines by name, in the order they first appear. One line normally has them all.
struct LayerIndex {
  std::vector<const LayerAttention*> first;
  std::unordered_map<std::string, size_t> place;

  explicit LayerIndex(const std::vector<AttentionLine>& lines) {
    for (const AttentionLine& line : lines) {
      for (const LayerAttention& layer : line.layers) {
        if (place.emplace(layer.name, first.size()).second) first.push_back(&layer);
      }
    }
  }

  // The line's layers, each at its place; null where the line has none of that name and kernel.
  std::vector<const LayerAttention*> sorted(const AttentionLine& line) const {
    std::vector<const LayerAttention*> layers(first.size(), nullptr);
    for (const LayerAttention& layer : line.layers) {
      const size_t at = place.at(layer.name);
      const bool same_kernel = layer.kernel_h == first[at]->kernel_h && layer.kernel_w == first[at]->kernel_w;
      if (same_kernel) layers[at] = &layer;
    }
    return layers;
  }
};

// In doubles: a damaged file may hold counts whose sum is no int64_t.
double kept_taps(const LayerAttention& layer) {
  return std::accumulate(layer.kept.begin(), layer.kept.end(), 0.0,
                         [](double sum, int64_t kept) { return sum + static_cast<double>(kept); });
}

// Over all layers, each weighted by its taps.
Json mean_agreement(const std::vector<const LayerAttention*>& layers) {
  double sum = 0, weight = 0;
  for (const LayerAttention* layer : layers) {
    if (layer == nullptr || !layer->agreement) continue;
    sum += *layer->agreement * kept_taps(*layer);
    weight += kept_taps(*layer);
  }
  return weight > 0 ? share(sum / weight) : Json(nullptr);
}

Json mean_max_p(const std::vector<const LayerAttention*>& layers) {
  std::vector<double> bins(LayerAttention::kBins, 0.0);
  double weight = 0;
  for (const LayerAttention* layer : layers) {
    if (layer == nullptr) continue;
    const double taps = kept_taps(*layer);
    for (size_t i = 0; i < bins.size(); ++i) bins[i] += layer->max_p.at(i) * taps;
    weight += taps;
  }
  if (weight <= 0) return nullptr;
  for (double& bin : bins) bin /= weight;
  return shares(bins);
}

// With equal logits every slice keeps the first positions (ties go to the lower one), and P is the same everywhere.
bool is_tie(const LayerAttention& layer) {
  constexpr double kRounding = 2e-5;  // records have five digits
  const auto last = std::find(layer.kept.begin(), layer.kept.end(), 0);
  const bool first_ones = last != layer.kept.begin() && last != layer.kept.end() &&
                          std::all_of(layer.kept.begin(), last, [&](int64_t n) { return n == layer.kept.front(); }) &&
                          std::all_of(last, layer.kept.end(), [](int64_t n) { return n == 0; });
  const auto [least, most] = std::minmax_element(layer.mean_p.begin(), layer.mean_p.end());
  return first_ones && *most - *least <= kRounding;
}

// Whether every record has the taps of the first: `tie` if all logits are equal, else `unmoved`; null if not. Two
// records say little. Agreement is rounded, so counts are compared, too.
Json still(const std::vector<AttentionLine>& lines, const LayerIndex& index) {
  if (lines.size() < 3) return nullptr;
  const auto first = index.sorted(lines.front());
  bool tie = true;
  for (const AttentionLine& line : lines) {
    const auto layers = index.sorted(line);
    for (size_t i = 0; i < layers.size(); ++i) {
      if (first[i] == nullptr || layers[i] == nullptr) return nullptr;
      const bool same = &line == &lines.front() || (layers[i]->agreement == 1.0 && layers[i]->kept == first[i]->kept);
      if (!same) return nullptr;
      tie = tie && is_tie(*layers[i]);
    }
  }
  return tie ? "tie" : "unmoved";
}

Json attention(const std::vector<AttentionLine>& lines) {
  const LayerIndex index(lines);
  if (index.first.empty()) return nullptr;
  Json object;
  for (const char* key :
       {"layers", "epoch", "temperature", "mean_agreement", "mean_max_p", "kept", "mean_p", "max_p", "agreement"}) {
    object[key] = Json::array();
  }
  for (const LayerAttention* layer : index.first) {
    object["layers"].push_back({{"name", layer->name}, {"h", layer->kernel_h}, {"w", layer->kernel_w}});
  }
  for (const AttentionLine& line : lines) {
    const auto layers = index.sorted(line);
    Json kept = Json::array(), mean_p = Json::array(), max_p = Json::array(), agreement = Json::array();
    for (const LayerAttention* layer : layers) {
      kept.push_back(layer != nullptr ? Json(layer->kept) : Json(nullptr));
      mean_p.push_back(layer != nullptr ? shares(layer->mean_p) : Json(nullptr));
      max_p.push_back(layer != nullptr ? shares(layer->max_p) : Json(nullptr));
      agreement.push_back(layer != nullptr && layer->agreement ? share(*layer->agreement) : Json(nullptr));
    }
    object["epoch"].push_back(line.epoch);
    object["temperature"].push_back(temperature_of(line.temperature));
    object["mean_agreement"].push_back(mean_agreement(layers));
    object["mean_max_p"].push_back(mean_max_p(layers));
    object["kept"].push_back(std::move(kept));
    object["mean_p"].push_back(std::move(mean_p));
    object["max_p"].push_back(std::move(max_p));
    object["agreement"].push_back(std::move(agreement));
  }
  object["still"] = still(lines, index);
  return object;
}

Json layer_counts(const Graph& graph, const NetworkCount& count) {
  Json rows = Json::array();
  for (size_t i = 0; i < count.layers.size(); ++i) {
    const Node& node = graph.nodes()[i];
    const LayerCount& layer = count.layers[i];
    rows.push_back({{"name", node.name},
                    {"op", op_info(node.op).name},
                    {"shape", shape_text(node.shape)},
                    {"method", method_text(node)},
                    {"params", layer.params},
                    {"macs", layer.macs},
                    {"activations", layer.activations}});
  }
  return rows;
}

Json recipe_words(const Recipe& recipe) {
  Json words = Json::object();
  for (const RecipeField& field : recipe_fields()) words[field.key] = recipe_field_text(recipe, field);
  return words;
}

Json class_data(const std::optional<ClassScores>& scores) {
  if (!scores) return nullptr;
  return {{"step", scores->step},
          {"form", scores->form},
          {"top5", number(scores->top5)},
          {"names", scores->classes},
          {"confusion", scores->confusion}};
}

// Words of the same network with every tap.
double dense_params(Graph graph) {
  apply_method(graph, Method{}, "");
  return count_network(graph, CountRules::kPaper).params;
}

// What decides which images a run is tested on: accuracies are compared only where it is the same.
std::string test_set(Recipe recipe) {
  recipe.validation = 0;  // those are training images
  recipe.strict = false;
  constexpr int64_t kCifarImages = 10000;
  if (recipe.data.rfind("cifar", 0) == 0 && recipe.limit >= kCifarImages) recipe.limit = 0;  // all of them
  return recipe_data(recipe);
}

// What the page shows of a run's start. The page may be mailed: the name of the machine is not in it.
Json provenance(const std::map<std::string, std::string>& facts) {
  Json object = Json::object();
  for (const char* key : {"command", "started", "onetap", "libtorch", "cpu"}) {
    if (const auto fact = facts.find(key); fact != facts.end()) object[key] = fact->second;
  }
  for (const auto& [key, command] : facts) {
    if (key.rfind("extended_", 0) == 0) object[key] = command;
  }
  return object;
}

// What config.toml says, or nulls.
void add_recipe(Json& object, const std::optional<Recipe>& recipe) {
  object["width"] = recipe && recipe->width ? Json(*recipe->width) : Json(nullptr);
  object["data"] = recipe ? Json(recipe->data) : Json(nullptr);
  object["test_set"] = recipe ? Json(test_set(*recipe)) : Json(nullptr);
  object["seed"] = recipe ? Json(recipe->seed) : Json(nullptr);
  object["epochs_total"] = recipe ? Json(recipe->all_epochs()) : Json(nullptr);
  object["recipe"] = recipe ? recipe_words(*recipe) : Json(nullptr);
}

// What network.txt says, or nulls.
void add_network(Json& object, const std::optional<Graph>& graph) {
  const NetworkCount count = graph ? count_network(*graph, CountRules::kPaper) : NetworkCount{};
  const auto known = [&](const auto& value) { return graph ? Json(value) : Json(nullptr); };
  object["network"] = graph ? Json(graph->name()) : Json(nullptr);
  object["method"] = graph ? Json(method_summary(*graph)) : Json(nullptr);
  object["params"] = known(count.params);
  object["dense_params"] =
      graph && !graph->nodes().empty() && has_methods(*graph) ? Json(dense_params(*graph)) : Json(nullptr);
  object["macs"] = known(count.macs);
  object["activations"] = known(count.activations);
  object["memory"] = known(count.params + count.activations);
  object["layers"] = graph ? layer_counts(*graph, count) : Json::array();
}

Json run_data(const ReportRun& run) {
  const auto epochs = by_epoch(run.metrics);
  const MetricLine *last_test = last_test_line(run.metrics), *best = nullptr;
  double wall_s = 0;
  for (const auto& [ignored, epoch] : epochs) {
    wall_s = std::max(wall_s, epoch.any().wall_s);
    if (epoch.test == nullptr) continue;
    if (last_test == nullptr || !has_validation(run.metrics)) last_test = epoch.test;
    const bool better = epoch.test->acc_hard && (best == nullptr || *epoch.test->acc_hard > *best->acc_hard);
    if (better) best = epoch.test;
  }
  const bool sal = run.graph ? has_soft_form(*run.graph) : !run.attention.empty();
  Json object;
  object["label"] = run.label;
  object["notices"] = run.notices;
  object["remarks"] = run.remarks;
  add_recipe(object, run.recipe);
  add_network(object, run.graph);
  object["sal"] = sal;
  object["epochs_done"] = epochs.empty() ? 0 : epochs.rbegin()->first;
  object["ended_early"] = run.ended_early;
  object["final_soft"] = last_test != nullptr ? number(last_test->acc_soft) : Json(nullptr);
  object["final_hard"] = last_test != nullptr ? number(last_test->acc_hard) : Json(nullptr);
  object["best_hard"] = best != nullptr ? number(best->acc_hard) : Json(nullptr);
  object["best_epoch"] = best != nullptr ? Json(best->epoch) : Json(nullptr);
  object["watched"] = has_validation(run.metrics) ? "validation" : "test";
  object["tested"] = last_test == nullptr || !is_validation(*last_test);
  object["wall_s"] = number(wall_s);
  object["provenance"] = provenance(run.provenance);
  object["file_bytes"] = run.file_bytes ? Json(*run.file_bytes) : Json(nullptr);
  object["latency_ms"] = number(run.latency_ms);
  object["int8_bytes"] = run.int8 ? Json(run.int8->bytes) : Json(nullptr);
  object["int8_accuracy"] = run.int8 ? number(run.int8->accuracy) : Json(nullptr);
  object["int8_latency_ms"] = run.int8 ? number(run.int8->latency_ms) : Json(nullptr);
  object["classes"] = class_data(run.classes);
  object["curves"] = curves(epochs, sal);
  object["attention"] = attention(run.attention);
  return object;
}

Json paper_data() {
  Json points = Json::array();
  for (const PaperPoint& point : paper_points()) {
    points.push_back({{"curve", point.curve},
                      {"width", point.width ? Json(*point.width) : Json(nullptr)},
                      {"params", point.params},
                      {"activations", point.activations},
                      {"memory", point.memory()},
                      {"accuracy", point.accuracy}});
  }
  return points;
}

}  // namespace

std::string page_data(const std::vector<ReportRun>& runs) {
  Json list = Json::array();
  for (const ReportRun& run : runs) list.push_back(run_data(run));
  const Json object = {{"version", ONETAP_VERSION},
                       {"runs", std::move(list)},
                       {"paper", paper_data()},
                       {"defaults", recipe_words(Recipe())}};
  const std::string text = json_text(object);
  std::string safe;
  safe.reserve(text.size());
  for (const char c : text) c == '<' ? safe += "\\u003c" : safe += c;
  return safe;
}

}  // namespace onetap
