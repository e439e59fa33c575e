#include "onetap/journal/run_journal.h"

#include "onetap/base/text.h"

namespace onetap {
namespace {

using Scalars = std::vector<std::pair<std::string, double>>;
using Histograms = std::vector<std::pair<std::string, EventHistogram>>;

void add_scores(const MetricLine& line, Scalars& scalars) {
  scalars.emplace_back("loss/" + line.split, line.loss);
  scalars.emplace_back("accuracy/" + line.split + "_soft", line.acc_soft);
  if (line.acc_hard) scalars.emplace_back("accuracy/" + line.split + "_hard", *line.acc_hard);
}

// `count` buckets of one width from `first` on.
EventHistogram even_buckets(double first, double width, std::vector<double> counts) {
  EventHistogram histogram;
  for (size_t i = 0; i <= counts.size(); ++i) histogram.limits.push_back(first + width * static_cast<double>(i));
  histogram.counts = std::move(counts);
  return histogram;
}

// Of every layer: the positions that are kept, numbered row by row from 0, and how sure slices are of theirs.
Histograms tap_histograms(const AttentionLine& attention) {
  Histograms histograms;
  for (const LayerAttention& layer : attention.layers) {
    double taps = 0;
    for (const int64_t kept : layer.kept) taps += static_cast<double>(kept);
    std::vector<double> largest = layer.max_p;
    for (double& share : largest) share *= taps;
    histograms.emplace_back("taps/" + layer.name,
                            even_buckets(-0.5, 1, std::vector<double>(layer.kept.begin(), layer.kept.end())));
    if (!largest.empty()) {
      const double width = 1.0 / static_cast<double>(largest.size());
      histograms.emplace_back("largest_attention/" + layer.name, even_buckets(0, width, std::move(largest)));
    }
  }
  return histograms;
}

std::vector<std::pair<std::string, EventSetting>> recipe_settings(const Recipe& recipe) {
  std::vector<std::pair<std::string, EventSetting>> settings;
  for (const RecipeField& field : recipe_fields()) {
    const std::string text = recipe_field_text(recipe, field);
    if (text.empty()) continue;
    const auto number = field.is_quoted(text) ? std::nullopt : parse_double(text);
    if (number) {
      settings.emplace_back(field.key, *number);
    } else if (!field.is_quoted(text)) {
      settings.emplace_back(field.key, text == "true");
    } else {
      settings.emplace_back(field.key, text);
    }
  }
  return settings;
}

}  // namespace

RunJournal::RunJournal(const RunFiles& files, const RunState& state, const JournalNotice& notice, const Recipe* recipe)
    : metrics_(files.metrics(), kept_lines<MetricLine>(files.metrics(), state, state.metrics_bytes, notice)),
      attention_(files.attention(), kept_lines<AttentionLine>(files.attention(), state, state.attention_bytes, notice)),
      recipe_(recipe),
      root_(files.root),
      first_step_(state.step) {}

void RunJournal::write(const Epoch& epoch) {
  const MetricLine& train = epoch.train;
  metrics_.write(train.json());
  Scalars scalars = {{"loss/train", train.loss},
                     {"accuracy/train", train.acc_soft},
                     {"schedule/learning_rate", train.lr},
                     {"schedule/temperature", train.temperature},
                     {"speed/images_per_second", train.img_per_s}};
  if (train.data_wait) scalars.emplace_back("speed/data_wait", *train.data_wait);
  for (const auto& scores : {epoch.validation, epoch.test}) {
    if (!scores) continue;
    metrics_.write(scores->json());
    add_scores(*scores, scalars);
  }
  if (epoch.attention) attention_.write(epoch.attention->json());
  if (!tensorboard_) {
    tensorboard_.emplace(root_, first_step_);
    if (recipe_ != nullptr) tensorboard_->write_settings(recipe_settings(*recipe_));
  }
  tensorboard_->write_scalars(train.step, scalars);
  if (epoch.attention) tensorboard_->write_histograms(train.step, tap_histograms(*epoch.attention));
}

void RunJournal::sync(RunState& state) {
  metrics_.sync();
  attention_.sync();
  state.metrics_bytes = metrics_.bytes();
  state.attention_bytes = attention_.bytes();
}

}  // namespace onetap
