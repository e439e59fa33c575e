// Shift Attention Layers as a method: their row of the table, and their keys by name for C++ code.
#pragma once

#include "onetap/base/tap_layout.h"
#include "onetap/graph/graph.h"

namespace onetap {

// How the logits of a Shift Attention Layer start: the paper's default, its ablation, and the magnitudes of the
// weights.
enum class TapInit { kUniform, kCentre, kMagnitude };

// What the forward pass has while the layer is trained: P, or its hard max with the gradients of P (docs/layer.md).
enum class Relax { kSoftmax, kStraightThrough };

MethodInfo sal_row();

// `taps` weights per kernel slice, at positions that the slices of a block have in common.
Method sal_method(int64_t taps = 1, BlockShare share = {}, TapInit init = TapInit::kUniform);

TapInit tap_init(const Method& sal);

// Sets that a layer of this density keeps: at least one.
int64_t kept_sets(const TapLayout& layout, double density);
// `auto` is straight-through with share=all and share=allxN, else softmax: the word decides, so that a network with one
// number for all of its layers has one forward pass (docs/layer.md).
Relax tap_relax(const Method& sal);

// Whether the forward pass of training is that of the hard network: all layers with a soft form are straight-through.
bool trains_hard(const Graph& graph);

}  // namespace onetap
