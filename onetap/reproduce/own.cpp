// Experiments that are not in the paper: against other methods, and a small one to try the command.
#include "onetap/reproduce/rows.h"

namespace onetap {
namespace {

using Takes = RunSpec::Takes;

// Every method at about a million parameters, all in one schedule.
std::vector<ExperimentRow> rival_rows(const char* data) {
  const auto resnet20 = [&](int64_t width, const char* method, const Settings& more = {}) {
    return cosine_run(data, "resnet20", width, method, more);
  };
  const auto sanet = [&](int64_t width, const Settings& more = {}) {
    return resnet20(width, "sal", with({{"t0", "6.7"}, {"t1", "0.02"}, {"harden", "0.8"}}, more));
  };
  const RunSpec wide = resnet20(83, "conv"), cut = resnet20(40, "conv");
  const RunSpec magnitude = resnet20(83, "magnitude", {{"epochs", "20"}, {"lr", "0.05"}});
  const char* cut_note = "from a dense network of width 40, fine-tuned for 40 epochs more";
  return {
      {"Dense", "conv", resnet20(31, "conv")},
      {"One tap", "sal", sanet(83)},
      {"One tap", "sal, share 4", sanet(88, {{"share", "4"}})},
      {"One tap", "sal, share 4x4", sanet(88, {{"share", "4x4"}})},
      {"Two taps", "sal, 2 taps", sanet(60, {{"taps", "2"}})},
      {"One tap", "random-taps", resnet20(83, "random-taps")},
      {"One tap",
       "magnitude",
       starting_from(wide, Takes::kWeights, magnitude),
       {},
       "the dense network of that width, trained in the whole schedule, then fine-tuned for 20 epochs"},
      {"Shift", "shift", resnet20(88, "shift")},
      {"Shift",
       "shift, uneven",
       starting_from(sanet(83), Takes::kShifts, resnet20(88, "shift")),
       {},
       "in the proportions of the sal run"},
      {"Shift", "shiftresnet110", cosine_run(data, "shiftresnet110", 0, "conv", {{"expansion", "6"}})},
      {"Active shift", "active-shift", resnet20(88, "active-shift", {{"decay_norms", "false"}})},
      {"Active shift", "asresnet",
       cosine_run(data, "asresnet", 88, "conv",
                  {{"expansion", "1"}, {"weight_init", "fan-out"}, {"decay_norms", "false"}})},
      {"Binary", "bc", resnet20(160, "bc", kBinaryConnect), {}, "learning rate 0.01: at 0.1 it hardly learns"},
      {"Binary", "bwn", resnet20(160, "bwn")},
      {"Binary", "bwn, per filter", resnet20(160, "bwn", {{"bwn_scale", "filter"}})},
      {"Channels", "l1", cut_from(cut, {"l1", "0.4", ""}), {}, cut_note},
      {"Channels", "nisp", cut_from(cut, {"nisp", "0.4", ""}), {}, cut_note},
      {"Channels", "pcas", cut_from(cut, {"pcas", "0.4", ""}), {}, cut_note},
      {"Architecture", "squeezenet", cosine_run(data, "squeezenet", 0, "conv")},
      {"Architecture", "mobilenetv2", cosine_run(data, "mobilenetv2", 0, "conv"), {}, "it has no smaller form"},
  };
}

Experiment rivals() {
  Experiment table;
  table.name = "rivals";
  table.title = "Every method at about a million parameters, CIFAR-10 and CIFAR-100";
  table.freezes = true;
  table.times = true;
  for (const char* data : {"cifar10", "cifar100"}) {
    for (ExperimentRow& row : rival_rows(data)) table.rows.push_back(std::move(row));
  }
  return table;
}

// Seconds on a CPU, without a data set: how a reproduction goes.
Experiment demo() {
  const auto run = [](const char* method, const Settings& more = {}) {
    RunSpec spec;
    spec.data = "shapes";
    spec.settings = with({{"arch", "resnet8"},
                          {"width", "8"},
                          {"method", method},
                          {"epochs", "6"},
                          {"batch_size", "20"},
                          {"lr", "0.05"},
                          {"schedule", "cosine"}},
                         more);
    return spec;
  };
  Experiment table;
  table.name = "demo";
  table.title = "A small network on the built-in shapes";
  table.in_all = false;
  table.freezes = true;
  table.times = true;
  table.rounds = true;
  table.rows = {
      {"CLs", "Baseline", run("conv")},
      {"SLs", "SANet", run("sal", {{"t0", "2"}, {"t1", "0.02"}})},
  };
  return table;
}

}  // namespace

std::vector<Experiment> own_experiments() {
  return {rivals(), learning(), depth_and_width(), density(), demo()};
}

}  // namespace onetap
