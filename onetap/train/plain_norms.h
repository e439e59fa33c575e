// Batch norms that know nothing of the values they read, as `import` writes them for biases.
#pragma once

#include "onetap/nn/graph_module.h"

#include <functional>
#include <string>
#include <vector>

namespace onetap {

// The batch norms that only multiply and add (kPlainNormVariance) and would be trained by the statistics of batches.
std::vector<std::string> plain_norms(const nn::GraphModule& module);

// Gives them the statistics of what they read in the dense network, and weights and biases by which the module computes
// in evaluation what it did: in training a dense or soft network then computes nearly the same. `forward` takes one
// batch through the module, which is in evaluation, or returns false.
void give_statistics(nn::GraphModule& module, const std::vector<std::string>& norms,
                     const std::function<bool()>& forward);

}  // namespace onetap
