// The second half of a packed batch's way: crop, flip, normalise, on the device where it is.
#pragma once

#include "onetap/batches/packed.h"

namespace onetap {

// The view of every image into `out`: [N, channels, size, size] in channels-last memory, 32-bit or bfloat16, on the
// batch's device. Channels beyond the image's three become zero. By a kernel on a GPU where crops_on_gpu(), else by
// data/transform.h on the host.
void crop_packed(const PackedBatch& batch, const View& view, const torch::Tensor& out);

// Whether this build has that kernel.
bool crops_on_gpu();

namespace detail {
// Launches the kernel; only where crops_on_gpu().
void crop_on_gpu(const PackedBatch& batch, const View& view, const torch::Tensor& out);
}  // namespace detail

}  // namespace onetap
