// How the tables of experiments are put together. For the sources of this module alone.
#pragma once

#include "onetap/reproduce/experiment.h"

namespace onetap {

// `more` over `base`: a key that is there takes the new value at its old place.
Settings with(Settings base, const Settings& more);

// The authors' training on CIFAR: 300 epochs, or 400 for ResNet-50 and -56, learning rate 0.1 divided by 10 every 100.
Settings cifar_training(int64_t epochs = 300);

RunSpec cifar_run(const char* data, const char* arch, int64_t width, const char* method, int64_t epochs = 300,
                  const Settings& more = {});
// Table 1's, Table 2's and Table 3's networks with Shift Attention Layers.
RunSpec sanet_resnet20(const char* data, int64_t width = 83, const Settings& more = {});
RunSpec sanet_resnet56(const Settings& more = {});
RunSpec sanet_resnet50(const Settings& more = {});

// Wu et al.: ShiftResNet-110 with E = 6 in their own schedule. Jeon and Kim: AS-ResNet [88x1] in theirs.
RunSpec shiftresnet110(const char* data);
RunSpec asresnet(const char* data);

// 60 epochs of a cosine schedule, in which all methods come close to their best in a few minutes: the paper's takes
// five times as long, and shortened to that it leaves each of them unfinished in its own way.
RunSpec cosine_run(const char* data, const char* arch, int64_t width, const char* method, const Settings& more = {});

// BinaryConnect's networks hardly learn at the others' learning rate of 0.1: one step flips many weights of +-1, and
// the last layer's outputs jump with each of them.
inline const Settings kBinaryConnect = {{"lr", "0.01"}};

// What is cut out of `source` and fine-tuned for 40 epochs at a constant learning rate of 0.001, as Li et al. do.
RunSpec cut_from(const RunSpec& source, const CutSpec& cut);
RunSpec starting_from(const RunSpec& source, RunSpec::Takes takes, RunSpec run);
RunSpec taught_by(const RunSpec& teacher, RunSpec run);

std::vector<Experiment> paper_tables();
std::vector<Experiment> paper_figures();
std::vector<Experiment> own_experiments();
// How Shift Attention networks learn best, how deep they should be, and whether empty slices beat fewer channels.
Experiment learning();
Experiment depth_and_width();
Experiment density();

}  // namespace onetap
