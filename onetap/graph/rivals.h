// Rows of the table of methods for the rivals of Shift Attention Layers.
#pragma once

#include "onetap/graph/method_table.h"

namespace onetap {

// A tap of every slice drawn before training: the control that learned taps must beat.
MethodInfo random_taps_row();
// The taps with the largest weights of a trained dense network, by sum of |w| over the slices that share.
MethodInfo magnitude_row();
// Every k x k convolution as a fixed shift of its inputs and a 1x1 convolution (Wu et al.).
MethodInfo fixed_shift_row();
// ... as an active shift and a 1x1 convolution (Jeon & Kim).
MethodInfo active_shift_row();
// Weights of one bit: BinaryConnect (+-1), and BWN (+- their mean magnitude, per layer or per filter).
MethodInfo bc_row();
MethodInfo bwn_row();

}  // namespace onetap
