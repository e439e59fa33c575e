// What freezing dropped, dropped from the module too: batch norm's statistics can then be taken anew without it.
#pragma once

#include "onetap/nn/graph_module.h"
#include "onetap/tap/tap_net.h"

namespace onetap {

// Sets the weights of the module to 0 where `net`, which was frozen from it, has no position: in every tap convolution
// that has dropped weights only the kept ones stay. The hard network is then what `net` computes, and freezing it again
// gives zeros where `net` is empty.
void clear_dropped(nn::GraphModule& module, const TapNet& net);

}  // namespace onetap
