#include "tools/onetap/freeze_report.h"

#include "onetap/base/text.h"
#include "tools/onetap/console.h"
#include "tools/onetap/table.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iterator>

namespace onetap::tool {
namespace {

std::string counted(int64_t count) {
  return with_thousands(static_cast<double>(count));
}

// "4,183 of 799,124 tap weights dropped (0.5 %)", and what else could go.
std::string drop_note(const DropResult& drop) {
  std::string note = fmt::format("{} of {} tap weights dropped ({})", counted(drop.dropped), counted(drop.weights),
                                 percent_text(drop.share()));
  if (drop.faint > 0) {
    note += fmt::format("; {} more ({}) have a score below {:g} (--drop-below {:g})", counted(drop.faint),
                        percent_text(static_cast<double>(drop.faint) / static_cast<double>(drop.weights)),
                        DropResult::kFaint, DropResult::kFaint);
  }
  return note;
}

std::string size_note(const FreezeReport& report) {
  const auto bytes = [](uint64_t count) { return with_thousands(static_cast<double>(count)) + " bytes"; };
  const std::string file = fmt::format("{} {}", report.out.string(), bytes(report.file));
  if (report.given) {
    const double less = 1 - static_cast<double>(report.file) / static_cast<double>(*report.given);
    return fmt::format("before: {}, now: {}{}", bytes(*report.given), file,
                       less > 0 ? fmt::format(" ({} less)", percent_text(less)) : "");
  }
  // A toy's header outweighs its weights.
  const double ratio = static_cast<double>(report.dense.value_or(0)) / static_cast<double>(report.file);
  return fmt::format("checkpoint {}, dense network {}, {}{}", bytes(report.checkpoint.value_or(0)),
                     bytes(report.dense.value_or(0)), file,
                     ratio > 1 ? fmt::format(" ({:.1f}x smaller than dense)", ratio) : "");
}

}  // namespace

nlohmann::ordered_json freeze_json(const FreezeReport& report) {
  using Json = nlohmann::ordered_json;
  Json stages = Json::array(), layers = Json::array();
  for (const Stage& stage : report.stages) {
    stages.push_back({{"stage", stage.name},
                      {"images", stage.predictions.images()},
                      {"accuracy", stage.predictions.accuracy()},
                      {"loss", stage.predictions.loss()},
                      {"largest_difference", stage.from_before.largest},
                      {"relative_difference", stage.from_before.relative()}});
  }
  for (const LayerDrop& layer : report.drop.layers) {
    layers.push_back({{"name", layer.name}, {"weights", layer.weights}, {"dropped", layer.dropped}});
  }
  Json object = {{"file", report.out.string()}, {"stages", std::move(stages)}};
  if (report.checkpoint) object["checkpoint_bytes"] = *report.checkpoint;
  if (report.dense) object["dense_bytes"] = *report.dense;
  if (report.given) object["given_bytes"] = *report.given;
  object["file_bytes"] = report.file;
  object["tap_weights"] = report.drop.weights;
  object["dropped"] = report.drop.dropped;
  object["drop_below"] = report.drop.below;
  object["layers"] = std::move(layers);
  object["warnings"] = report.warnings;
  return object;
}

std::string freeze_table(const FreezeReport& report) {
  using A = Table::Align;
  Table table({{"stage"},
               {"images", A::kRight},
               {"accuracy", A::kRight},
               {"loss", A::kRight},
               {"largest difference from the previous stage", A::kRight}});
  for (const Stage& stage : report.stages) {
    const bool first = &stage == &report.stages.front();
    table.add({stage.name, counted(stage.predictions.images()), percent_text(stage.predictions.accuracy()),
               fmt::format("{:.4f}", stage.predictions.loss()),
               first ? "" : fmt::format("{:.3g} of {:.3g}", stage.from_before.largest, stage.from_before.scale)});
  }
  return table.text();
}

std::vector<std::string> freeze_notes(const FreezeReport& report) {
  std::vector<std::string> notes = {size_note(report)};
  if (report.drop.weights > 0) notes.push_back(drop_note(report.drop));
  return notes;
}

std::optional<std::string> hardening_warning(const std::vector<Stage>& stages, int64_t images) {
  constexpr double kFarApart = 0.01;
  const auto find = [&](const char* name) {
    return std::find_if(stages.begin(), stages.end(), [&](const Stage& stage) { return stage.name == name; });
  };
  const auto soft = find("soft"), hard = find("hard"), recalibrated = find("recalibrated");
  if (soft == stages.end() || hard == stages.end()) return std::nullopt;
  const double trained = soft->predictions.accuracy(), hardened = hard->predictions.accuracy();
  const bool hard_is_worse = trained - hardened >= kFarApart;
  const std::string harden = "A run with --harden 0.8 trains only the kept taps at its end";
  std::string advice =
      fmt::format("--recalibrate {} recomputes batch norm's statistics with the kept taps; compare the accuracy. {}",
                  images, harden);
  double kept = hardened;
  if (recalibrated != stages.end()) {
    // "hard", or "dropped" where weights were dropped.
    const double before = std::prev(recalibrated)->predictions.accuracy();
    kept = recalibrated->predictions.accuracy();
    if (kept < before) {
      advice = fmt::format("Recalibration lowered it from {}: omit --recalibrate{}", percent_text(before),
                           hard_is_worse ? ". " + harden : "");
    } else if (hard_is_worse) {
      advice = "The attention has not converged: train with --harden 0.8";
    } else {
      return std::nullopt;  // dropping weights cost it, which the table shows
    }
  }
  const double lost = trained - kept;
  if (lost < kFarApart) return std::nullopt;
  return fmt::format(
      "the accuracy with the kept taps only is {}, {:.2f} points less than that of the network in training ({}). {}",
      percent_text(kept), 100 * lost, percent_text(trained), advice);
}

}  // namespace onetap::tool
