// Yamamoto and Maeno, "PCAS: Pruning Channels with Attention Statistics".
//
// A branch beside each convolution looks at the mean of every channel and gives each a factor in 0..1. The branches are
// trained, the network under them stays as it is; channels that get small factors on average can go.
#pragma once

#include "onetap/data/dataset.h"
#include "onetap/nn/graph_module.h"
#include "onetap/prune/image_options.h"
#include "onetap/prune/select.h"

#include <optional>
#include <string>
#include <vector>

namespace onetap {

struct PcasOptions {
  ImageScoreOptions score;  // images: those that factors are averaged over; all are trained on
  int64_t epochs = 1;       // of training the branches
  double lr = 0.01;         // of Adam
  int64_t reduce = 16;      // a branch has a hidden layer of channels / reduce, and at least 4
  uint64_t seed = 0;        // of the branches' weights
};

// The node whose value the branch of a conv scales: the last one of its own batch norm and ReLU.
const Node& gated_node(const Graph& graph, const std::string& conv);

// The mean factor of every channel. Nothing if it was stopped; kFailure if the loss became not finite. The module and
// its statistics do not change; it is left in training mode.
std::optional<std::vector<LayerScores>> score_pcas(nn::GraphModule& module, const Dataset& train,
                                                   const std::vector<std::string>& convs, const PcasOptions& options);

}  // namespace onetap
