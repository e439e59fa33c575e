// Variants of Shift Attention networks against each other, in one schedule: what the paper leaves open.
#include "onetap/reproduce/rows.h"

#include <fmt/format.h>

namespace onetap {
namespace {

using Takes = RunSpec::Takes;

bool is_cifar100(const char* data) {
  return std::string_view(data) == "cifar100";
}

Settings with_cutout(const char* data, const Settings& more) {
  return with({{"cutout", is_cifar100(data) ? "8" : "12"}}, more);
}

RunSpec dense(const char* data, const char* arch, int64_t width, const Settings& more = {}) {
  return cosine_run(data, arch, width, "conv", with_cutout(data, more));
}

RunSpec one_tap(const char* data, const char* arch, int64_t width, const Settings& more = {}) {
  const Settings temperatures = {{"t0", "6.7"}, {"t1", is_cifar100(data) ? "0.0142857" : "0.02"}};
  return cosine_run(data, arch, width, "sal", with_cutout(data, with(temperatures, more)));
}

const Settings kHarden = {{"harden", "0.8"}};

Experiment of_ours(const char* name, const char* title) {
  Experiment experiment;
  experiment.name = name;
  experiment.title = title;
  experiment.in_all = false;  // `all` is the paper, and the methods beside it
  experiment.freezes = true;
  return experiment;
}

// Each help alone, then together, for one small network; and those that a dense network can have, for a dense network
// of about as many parameters.
std::vector<ExperimentRow> learning_rows(const char* data) {
  constexpr const char* kArch = "resnet20";
  constexpr int64_t kWidth = 56, kDenseWidth = 20;
  const Settings base = {{"share", "4x4"}};
  const auto student = [&](const Settings& more) { return one_tap(data, kArch, kWidth, with(base, more)); };
  const RunSpec teacher = dense(data, kArch, 128), same = dense(data, kArch, kWidth);
  const auto from_dense = [&](RunSpec run) { return starting_from(same, Takes::kWeights, std::move(run)); };
  const Settings average = {{"ema", "0.999"}}, mixed = {{"mixup", "0.2"}, {"cutmix", "1"}},
                 strong = {{"augment", "strong"}};
  const Settings recalibrated = {{"recalibrate", "10000"}}, no_decay = {{"logit_decay", "0"}};
  // A temperature that has fallen early is part of hardening.
  const Settings all = with(with(with(average, kHarden), with(strong, no_decay)), recalibrated);
  const char* teacher_note = "the teacher is a dense ResNet-20 of width 128, trained in the same schedule";
  const char* init_note = "from a dense network of the same width, trained in the same schedule";
  return {
      {"Alone", "nothing", student({})},
      {"Alone", "teacher", taught_by(teacher, student({})), {}, teacher_note},
      {"Alone", "from dense", from_dense(student({})), {}, init_note},
      {"Alone", "average (ema)", student(average)},
      {"Alone", "mixup", student({{"mixup", "0.2"}})},
      {"Alone", "cutmix", student({{"cutmix", "1"}})},
      {"Alone", "strong augmentation", student(strong)},
      {"Alone", "t_end 0.7", student({{"t_end", "0.7"}})},
      {"Alone", "harden 0.8", student(kHarden)},
      {"Alone", "no decay of logits", student(no_decay)},
      {"Alone", "recalibrate", student(recalibrated)},
      {"Together",
       "all, images not mixed",
       taught_by(teacher, from_dense(student(all))),
       {},
       "all but t_end, which harden contains"},
      {"Together",
       "all",
       taught_by(teacher, from_dense(student(with(all, mixed)))),
       {},
       "all but t_end, which harden contains"},
      {"Together", "all, from new weights", taught_by(teacher, student(with(all, mixed)))},
      {"Dense", "dense, nothing", dense(data, kArch, kDenseWidth)},
      {"Dense", "dense, teacher", taught_by(teacher, dense(data, kArch, kDenseWidth))},
      {"Dense",
       "dense, all",
       taught_by(teacher, dense(data, kArch, kDenseWidth, with(with(average, strong), mixed))),
       {},
       "all that a dense network can have, but no start from trained weights"},
  };
}

}  // namespace

Experiment learning() {
  Experiment table = of_ours("learning", "What helps a small Shift Attention network learn, CIFAR-10 and CIFAR-100");
  for (const char* data : {"cifar10", "cifar100"}) {
    for (ExperimentRow& row : learning_rows(data)) table.rows.push_back(std::move(row));
  }
  return table;
}

// Widths at which networks of each depth need the multiplications of ResNet-20 of width 80 with one tap, within 5 %.
Experiment depth_and_width() {
  Experiment table = of_ours("depth-width", "Depth against width at equal MACs, and one tap against two, CIFAR-10");
  table.times = true;
  struct Depth {
    const char *arch, *title;
    int64_t one_tap, two_taps, dense;
  };
  constexpr Depth kDepths[] = {
      {"resnet8", "ResNet-8", 138, 102, 50}, {"resnet14", "ResNet-14", 98, 71, 34},
      {"resnet20", "ResNet-20", 80, 58, 28}, {"resnet32", "ResNet-32", 62, 44, 21},
      {"resnet44", "ResNet-44", 53, 37, 18}, {"resnet56", "ResNet-56", 46, 33, 16},
  };
  for (const Depth& depth : kDepths) {
    const Settings share = with({{"share", "4"}}, kHarden);
    table.rows.push_back(
        {"One tap", depth.title + std::string(", one tap"), one_tap("cifar10", depth.arch, depth.one_tap, share)});
    table.rows.push_back({"Two taps", depth.title + std::string(", two taps"),
                          one_tap("cifar10", depth.arch, depth.two_taps, with({{"taps", "2"}}, share))});
    table.rows.push_back({"Dense", depth.title + std::string(", dense"), dense("cifar10", depth.arch, depth.dense)});
  }
  return table;
}

// A share of the slices or blocks empty, chosen in training, or as many multiplications less by fewer channels.
Experiment density() {
  Experiment table = of_ours("density", "Learned density against narrower networks of equal MACs, CIFAR-10");
  table.times = true;
  // What a density leaves of width 80, and the width that has as many multiplications.
  struct Pair {
    const char* density;
    int64_t narrow;
  };
  constexpr Pair kPairs[] = {{"0.7", 68}, {"0.5", 58}, {"0.3", 47}};
  constexpr int64_t kWidth = 80;
  for (const char* share : {"1", "4x4"}) {
    const Settings base = with({{"share", share}}, kHarden);
    const std::string group = fmt::format("share {}", share);
    table.rows.push_back(
        {group, fmt::format("share {}, width {}", share, kWidth), one_tap("cifar10", "resnet20", kWidth, base)});
    for (const Pair& pair : kPairs) {
      table.rows.push_back({group, fmt::format("share {}, width {}, density {}", share, kWidth, pair.density),
                            one_tap("cifar10", "resnet20", kWidth, with(base, {{"density", pair.density}}))});
      table.rows.push_back({group, fmt::format("share {}, width {}", share, pair.narrow),
                            one_tap("cifar10", "resnet20", pair.narrow, base)});
    }
  }
  return table;
}

}  // namespace onetap
