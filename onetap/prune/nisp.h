// Yu et al., "NISP: Pruning Networks using Neuron Importance Score Propagation".
//
// The features that the classifier reads are scored by inf_fs(). A neuron before them is worth what the neurons after
// it are worth, each in proportion to the |weight| between the two: s_k = |W_k+1|^T s_k+1, down to the first layer.
#pragma once

#include "onetap/data/dataset.h"
#include "onetap/nn/graph_module.h"
#include "onetap/prune/image_options.h"
#include "onetap/prune/select.h"

#include <optional>
#include <string>
#include <vector>

namespace onetap {

// The value that the last layer with weights reads; of a flattened image the image. kUsage if several ways lead there.
const Node& response_node(const Graph& graph);

// `scores` of the channels of response_node(), carried back to the outputs of `convs`: a channel has the sum over its
// pixels. Batch norms and ReLUs pass scores on as they are, means spread them, shortcuts add them up.
std::vector<LayerScores> propagate_scores(const nn::GraphModule& module, const torch::Tensor& scores,
                                          const std::vector<std::string>& convs);

// Responses of training images without augmentation, their scores and those of `convs`. Nothing if it was stopped. The
// module is left in training mode.
std::optional<std::vector<LayerScores>> score_nisp(nn::GraphModule& module, const Dataset& train,
                                                   const std::vector<std::string>& convs,
                                                   const ImageScoreOptions& options);

}  // namespace onetap
