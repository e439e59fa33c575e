// Shift Attention Layers as a method: their row of the table, and their keys by name for C++ code.
#pragma once

#include "onetap/graph/graph.h"

namespace onetap {

// How the logits of a Shift Attention Layer start: the paper's default and its ablation.
enum class TapInit { kUniform, kCentre };

MethodInfo sal_row();

// `taps` weights per kernel slice, at positions that `share` consecutive outputs have in common.
Method sal_method(int64_t taps = 1, int64_t share = 1, TapInit init = TapInit::kUniform);

TapInit tap_init(const Method& sal);

}  // namespace onetap
