// Tables 1 to 4 of the paper, and the sentence about uneven shifts.
#include "onetap/reproduce/rows.h"

namespace onetap {
namespace {

using Takes = RunSpec::Takes;
constexpr double kMillion = 1e6;

Experiment table1() {
  Experiment table;
  table.name = "table1";
  table.title = "Table 1: baseline, ShiftNet, SANet and ASNet on CIFAR-10 and CIFAR-100";
  table.freezes = true;
  const char* shiftnet_note = "the paper quotes Wu et al.'s ShiftResNet-110 with E = 6";
  table.rows = {
      {"CLs", "Baseline", cifar_run("cifar10", "resnet20", 34, "conv"), {94.66, 1.22 * kMillion, {}}},
      {"SLs", "ShiftNet", shiftresnet110("cifar10"), {93.17, 1.2 * kMillion, {}}, shiftnet_note},
      {"SLs", "SANet", sanet_resnet20("cifar10"), {95.52, 0.98 * kMillion, {}}},
      {"Interpolate", "ASNet", asresnet("cifar10"), {94.53, 0.99 * kMillion, {}}},
      {"CLs", "Baseline", cifar_run("cifar100", "resnet20", 34, "conv"), {73.7, 1.24 * kMillion, {}}},
      {"SLs", "ShiftNet", shiftresnet110("cifar100"), {72.56, 1.23 * kMillion, {}}, shiftnet_note},
      {"SLs", "SANet", sanet_resnet20("cifar100"), {77.39, 1.01 * kMillion, {}}},
      {"Interpolate", "ASNet", asresnet("cifar100"), {76.73, 1.02 * kMillion, {}}},
  };
  return table;
}

Experiment table2() {
  Experiment table;
  table.name = "table2";
  table.title = "Table 2: ResNet-56 on CIFAR-10, pruned";
  const RunSpec cut = cifar_run("cifar10", "resnet56", 16, "conv", 400, {{"shortcut", "A"}});
  table.rows = {
      {"Baseline",
       "ResNet-56",
       cifar_run("cifar10", "resnet56", 16, "conv", 400),
       {93.04, 0.85 * kMillion, 126 * kMillion},
       "1x1 convolutions as shortcuts, as SANet has them"},
      {"Baseline",
       "ResNet-56 A",
       cut,
       {93.04, 0.85 * kMillion, 126 * kMillion},
       "shortcuts without weights: the network that is pruned"},
      {"Pruning", "Pruned-B", cut_from(cut, {"l1", "", "pruned-b"}), {93.06, 0.73 * kMillion, 91 * kMillion}},
      {"Pruning", "NISP", cut_from(cut, {"nisp", "0.42", ""}), {93.01, 0.49 * kMillion, 71 * kMillion}},
      {"Pruning", "PCAS", cut_from(cut, {"pcas", "0.54", ""}), {93.58, 0.39 * kMillion, 56 * kMillion}},
      {"Pruning",
       "SANet",
       sanet_resnet56(),
       {94, 0.36 * kMillion, 42 * kMillion},
       "the paper's 42 M is not what its network takes"},
  };
  return table;
}

Experiment table3() {
  Experiment table;
  table.name = "table3";
  table.title = "Table 3: ResNet-50 on CIFAR-100, pruned";
  const RunSpec cut = cifar_run("cifar100", "resnet50-cifar", 54, "conv", 400);
  table.rows = {
      {"Baseline",
       "ResNet-50, 16.9 M",
       cut,
       {78, 16.9 * kMillion, 1308 * kMillion},
       "width 54 has the paper's parameters and not its FLOPs"},
      {"Baseline",
       "ResNet-50, 1308 M",
       cifar_run("cifar100", "resnet50-cifar", 64, "conv", 400),
       {78, 16.9 * kMillion, 1308 * kMillion},
       "width 64 has the paper's FLOPs and not its parameters"},
      {"Pruning",
       "Pruned-B",
       cut_from(cut, {"l1", "0.48", ""}),
       {73.6, 7.83 * kMillion, 616 * kMillion},
       "published from another baseline (74.46 %); ours from width 54"},
      {"Pruning",
       "PCAS",
       cut_from(cut, {"pcas", "0.78", ""}),
       {73.84, 4.02 * kMillion, 475 * kMillion},
       "published from another baseline (74.46 %); ours from width 54"},
      {"Pruning",
       "SANet",
       sanet_resnet50(),
       {77.6, 3.9 * kMillion, 251 * kMillion},
       "the paper's 251 M may be a swap of digits"},
  };
  return table;
}

RunSpec imagenet_run(const char* arch, int64_t width, const char* method) {
  Settings settings = {{"arch", arch}};
  if (width > 0) settings.emplace_back("width", std::to_string(width));
  settings.emplace_back("method", method);
  if (std::string_view(method) == "sal") settings = with(settings, {{"t0", "6.7"}, {"t1", "0.016"}});
  RunSpec run;
  run.data = "imagenet";
  run.settings = with(settings, {{"weight_init", "fan-out"},
                                 {"epochs", "90"},
                                 {"batch_size", "1024"},
                                 {"lr", "0.1"},
                                 {"lr_every", "30"},
                                 {"weight_decay", "1e-4"}});
  return run;
}

Experiment table_imagenet() {
  Experiment table;
  table.name = "table-imagenet";
  table.title = "Table 4: standard convolutions, ShiftNet and SAL on ImageNet";
  table.rows = {
      {"Large budget",
       "ResNet-w24 (CLs)",
       imagenet_run("resnet-w", 24, "conv"),
       {63.47, 3.2 * kMillion, 664 * kMillion}},
      {"Large budget", "ShiftNet-A", imagenet_run("shiftnet-a", 0, "conv"), {70.1, 4.1 * kMillion, 1400 * kMillion}},
      {"Large budget", "ResNet-w64 + SAL", imagenet_run("resnet-w", 64, "sal"), {71, 3.3 * kMillion, 538 * kMillion}},
      {"Small budget",
       "ResNet-w16 (CLs)",
       imagenet_run("resnet-w", 16, "conv"),
       {56.6, 1.4 * kMillion, 295 * kMillion}},
      {"Small budget", "ShiftNet-B", imagenet_run("shiftnet-b", 0, "conv"), {61.2, 1.1 * kMillion, 371 * kMillion}},
      {"Small budget",
       "ResNet-w32 + SAL",
       imagenet_run("resnet-w", 32, "sal"),
       {62.7, 0.97 * kMillion, 136 * kMillion}},
  };
  return table;
}

// Fixed shifts in a ResNet-20 of Table 1's size: as many of each, or as many as SANet has learned.
Experiment uneven_shifts() {
  Experiment table;
  table.name = "uneven-shifts";
  table.title = "Shifts in the proportions that SANet has learned, CIFAR-10";
  const RunSpec shifts = cifar_run("cifar10", "resnet20", 97, "shift");
  table.rows = {
      {"Fixed",
       "as many of each shift",
       shifts,
       {93.17, 1.2 * kMillion, {}},
       "the paper quotes Wu et al.'s ShiftResNet-110; ours is a ResNet-20 of that size"},
      {"Fixed",
       "in SANet's proportions",
       starting_from(sanet_resnet20("cifar10"), Takes::kShifts, shifts),
       {94.8, {}, {}}},
      {"Learned", "SANet", sanet_resnet20("cifar10"), {95.52, 0.98 * kMillion, {}}},
  };
  return table;
}

}  // namespace

std::vector<Experiment> paper_tables() {
  return {table1(), table2(), table3(), table_imagenet(), uneven_shifts()};
}

}  // namespace onetap
