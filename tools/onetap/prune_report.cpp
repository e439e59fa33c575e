#include "tools/onetap/prune_report.h"

#include "onetap/base/text.h"
#include "onetap/count/count.h"
#include "tools/onetap/console.h"
#include "tools/onetap/shell_word.h"
#include "tools/onetap/table.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace onetap::tool {
namespace {

nlohmann::ordered_json side_json(const Graph& graph, const std::optional<EvalResult>& score) {
  const NetworkCount count = count_network(graph, CountRules::kPaper);
  nlohmann::ordered_json side = {{"params", count.params}, {"macs", count.macs}};
  if (score) {
    side["accuracy"] = score->hard.accuracy;
    side["loss"] = score->hard.loss;
    side["images"] = score->images;
  }
  return side;
}

// "12.3 %" less.
std::string change(double before, double after) {
  return fmt::format("{:+.1f} %", 100 * (after - before) / before);
}

}  // namespace

std::string fine_tune_command(const PruneReport& report) {
  return fmt::format(
      "onetap train --arch {} --init {} --method conv --data {} --epochs 40 --lr 0.001 --schedule step --lr-factor 1 "
      "--batch-size 64 --weight-decay 0.0001 --out {}",
      shell_word(report.network().string()), shell_word(report.weights().string()), shell_word(report.data),
      shell_word((report.directory / "tuned").string()));
}

nlohmann::ordered_json prune_json(const PruneReport& report) {
  nlohmann::ordered_json object = {{"by", report.by}};
  report.ratio ? object["ratio"] = *report.ratio : object["preset"] = report.preset;
  nlohmann::ordered_json layers = nlohmann::ordered_json::array();
  for (const Node& node : report.before.nodes()) {
    const auto planned = report.plan.find(node.name);
    if (planned == report.plan.end()) continue;
    layers.push_back({{"name", node.name},
                      {"channels", node.out},
                      {"kept", planned->second.size()},
                      {"kept_channels", planned->second}});
  }
  object["layers"] = layers;
  object["before"] = side_json(report.before, report.score_before);
  object["after"] = side_json(report.after, report.score_after);
  object["network"] = report.network().string();
  object["weights"] = report.weights().string();
  object["fine_tune"] = fine_tune_command(report);
  return object;
}

std::string prune_tables(const PruneReport& report) {
  using A = Table::Align;
  Table layers({{"layer"}, {"channels", A::kRight}, {"kept", A::kRight}});
  for (const Node& node : report.before.nodes()) {
    const auto planned = report.plan.find(node.name);
    if (planned == report.plan.end()) continue;
    layers.add({node.name, std::to_string(node.out), std::to_string(planned->second.size())});
  }
  const NetworkCount before = count_network(report.before, CountRules::kPaper);
  const NetworkCount after = count_network(report.after, CountRules::kPaper);
  Table sums({{""}, {"before", A::kRight}, {"after", A::kRight}, {"change", A::kRight}});
  sums.add(
      {"params", with_thousands(before.params), with_thousands(after.params), change(before.params, after.params)});
  sums.add({"MACs", with_thousands(before.macs), with_thousands(after.macs), change(before.macs, after.macs)});
  if (report.score_before && report.score_after) {
    const Score &was = report.score_before->hard, &is = report.score_after->hard;
    sums.add({"accuracy", percent_text(was.accuracy), percent_text(is.accuracy),
              fmt::format("{:+.2f} points", 100 * (is.accuracy - was.accuracy))});
    sums.add({"loss", fmt::format("{:.4f}", was.loss), fmt::format("{:.4f}", is.loss),
              fmt::format("{:+.4f}", is.loss - was.loss)});
  }
  return layers.text() + "\n" + sums.text();
}

}  // namespace onetap::tool
