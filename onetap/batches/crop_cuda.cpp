// In a build with CUDA: from tensors to the kernel's plain pointers.
#include "onetap/batches/crop.h"
#include "onetap/batches/crop_kernel.h"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

namespace onetap {

bool crops_on_gpu() {
  return true;
}

void detail::crop_on_gpu(const PackedBatch& batch, const View& view, const torch::Tensor& out) {
  cuda::CropArguments a;
  a.bytes = batch.bytes.data_ptr<uint8_t>();
  a.entries = reinterpret_cast<const CropEntry*>(batch.entries.data_ptr<uint8_t>());
  a.count = batch.images();
  a.size = view.size;
  a.channels = out.size(1);
  a.wide = out.scalar_type() == torch::kFloat32;
  for (size_t c = 0; c < 3; ++c) {
    const Scale scale = scale_of(view.normalisation, c);
    a.multiply[c] = scale.multiply;
    a.add[c] = scale.add;
  }
  a.out = out.data_ptr();
  cuda::crop(a, c10::cuda::getCurrentCUDAStream().stream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

}  // namespace onetap
