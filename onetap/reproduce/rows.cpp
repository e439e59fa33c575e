#include "onetap/reproduce/rows.h"

#include <fmt/format.h>

#include <algorithm>

namespace onetap {
namespace {

// 64,000 steps of 128 images, with a tenth of the learning rate after half of them and after three quarters.
Settings shift_training(const char* milestones) {
  return {
      {"epochs", "164"}, {"batch_size", "128"}, {"lr", "0.1"}, {"lr_milestones", milestones}, {"weight_decay", "5e-4"}};
}

}  // namespace

Settings with(Settings base, const Settings& more) {
  for (const auto& [key, value] : more) {
    const auto found =
        std::find_if(base.begin(), base.end(), [&key = key](const auto& known) { return known.first == key; });
    if (found != base.end()) {
      found->second = value;
    } else {
      base.emplace_back(key, value);
    }
  }
  return base;
}

Settings cifar_training(int64_t epochs) {
  return {{"epochs", fmt::format("{}", epochs)},
          {"batch_size", "128"},
          {"lr", "0.1"},
          {"lr_every", "100"},
          {"weight_decay", "5e-4"},
          {"restart_momentum", "true"}};
}

RunSpec cifar_run(const char* data, const char* arch, int64_t width, const char* method, int64_t epochs,
                  const Settings& more) {
  Settings settings = {{"arch", arch}};
  if (width > 0) settings.emplace_back("width", fmt::format("{}", width));
  settings.emplace_back("method", method);
  RunSpec run;
  run.data = data;
  run.settings = with(with(settings, cifar_training(epochs)), more);
  return run;
}

RunSpec sanet_resnet20(const char* data, int64_t width, const Settings& more) {
  // On CIFAR-100 the figure of temperatures has Table 1's accuracy at 1/70.
  const char* t1 = std::string_view(data) == "cifar100" ? "0.0142857" : "0.02";
  return cifar_run(data, "resnet20", width, "sal", 300, with({{"t0", "6.7"}, {"t1", t1}}, more));
}

RunSpec sanet_resnet56(const Settings& more) {
  return cifar_run("cifar10", "resnet56", 29, "sal", 400, with({{"t0", "6.7"}, {"t1", "0.02"}}, more));
}

RunSpec sanet_resnet50(const Settings& more) {
  return cifar_run("cifar100", "resnet50-cifar", 34, "sal", 400, with({{"t0", "6.7"}, {"t1", "0.0142857"}}, more));
}

RunSpec shiftresnet110(const char* data) {
  RunSpec run;
  run.data = data;
  run.settings = with({{"arch", "shiftresnet110"}, {"expansion", "6"}, {"method", "conv"}},
                      with(shift_training("81,122"), {{"restart_momentum", "true"}}));
  return run;
}

RunSpec asresnet(const char* data) {
  RunSpec run;
  run.data = data;
  run.settings = with({{"arch", "asresnet"}, {"width", "88"}, {"expansion", "1"}, {"method", "conv"}},
                      with(shift_training("81.84,122.76"),
                           {{"weight_init", "fan-out"}, {"nesterov", "true"}, {"decay_norms", "false"}}));
  return run;
}

RunSpec cosine_run(const char* data, const char* arch, int64_t width, const char* method, const Settings& more) {
  Settings settings = {{"arch", arch}};
  if (width > 0) settings.emplace_back("width", std::to_string(width));
  settings.emplace_back("method", method);
  RunSpec run;
  run.data = data;
  run.settings = with(with(std::move(settings), {{"epochs", "60"},
                                                 {"batch_size", "128"},
                                                 {"lr", "0.1"},
                                                 {"schedule", "cosine"},
                                                 {"nesterov", "true"},
                                                 {"weight_decay", "5e-4"},
                                                 {"label_smoothing", "0.1"}}),
                      more);
  return run;
}

RunSpec cut_from(const RunSpec& source, const CutSpec& cut) {
  RunSpec run;
  run.data = source.data;
  run.settings = {{"method", "conv"}, {"epochs", "40"},   {"batch_size", "64"},
                  {"lr", "0.001"},    {"lr_every", "40"}, {"weight_decay", "1e-4"}};
  run.cut = cut;
  return starting_from(source, RunSpec::Takes::kChannels, std::move(run));
}

RunSpec starting_from(const RunSpec& source, RunSpec::Takes takes, RunSpec run) {
  run.source = std::make_shared<const RunSpec>(source);
  run.takes = takes;
  return run;
}

RunSpec taught_by(const RunSpec& teacher, RunSpec run) {
  run.teacher = std::make_shared<const RunSpec>(teacher);
  return run;
}

}  // namespace onetap
