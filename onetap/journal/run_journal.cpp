#include "onetap/journal/run_journal.h"

namespace onetap {

RunJournal::RunJournal(const RunFiles& files, const RunState& state, const JournalNotice& notice)
    : metrics_(files.metrics(), kept_lines<MetricLine>(files.metrics(), state, state.metrics_bytes, notice)),
      attention_(files.attention(), kept_lines<AttentionLine>(files.attention(), state, state.attention_bytes, notice)),
      root_(files.root),
      first_step_(state.step) {}

void RunJournal::write(const Epoch& epoch) {
  const MetricLine& train = epoch.train;
  metrics_.write(train.json());
  std::vector<std::pair<std::string, double>> scalars = {{"loss/train", train.loss},
                                                         {"accuracy/train", train.acc_soft},
                                                         {"schedule/learning_rate", train.lr},
                                                         {"schedule/temperature", train.temperature},
                                                         {"speed/images_per_second", train.img_per_s}};
  if (train.data_wait) scalars.emplace_back("speed/data_wait", *train.data_wait);
  if (epoch.test) {
    metrics_.write(epoch.test->json());
    scalars.insert(scalars.end(), {{"loss/test", epoch.test->loss}, {"accuracy/test_soft", epoch.test->acc_soft}});
    if (epoch.test->acc_hard) scalars.emplace_back("accuracy/test_hard", *epoch.test->acc_hard);
  }
  if (epoch.attention) attention_.write(epoch.attention->json());
  if (!tensorboard_) tensorboard_.emplace(root_, first_step_);
  tensorboard_->write_scalars(train.step, scalars);
}

void RunJournal::sync(RunState& state) {
  metrics_.sync();
  attention_.sync();
  state.metrics_bytes = metrics_.bytes();
  state.attention_bytes = attention_.bytes();
}

}  // namespace onetap
