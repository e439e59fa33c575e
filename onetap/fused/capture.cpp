#include "onetap/fused/capture.h"

#ifdef ONETAP_CUDA
#include "onetap/nn/torch.h"

#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <memory>
#endif

namespace onetap::fused {

void warm_up(const Repeatable& work) {
  constexpr int kRuns = 3;
  for (int i = 0; i < kRuns; ++i) {
    work.rewind();
    work.run();
  }
}

#ifdef ONETAP_CUDA
std::function<void()> capture_graph(const Repeatable& work) {
  const auto stream = at::cuda::getStreamFromPool(/*isHighPriority=*/true);  // above the side stream's
  c10::cuda::getCurrentCUDAStream().synchronize();
  auto graph = std::make_shared<at::cuda::CUDAGraph>();
  {
    const c10::cuda::CUDAStreamGuard guard(stream);
    warm_up(work);
    stream.synchronize();
#if ONETAP_TORCH_AT_LEAST(2, 1)
    // Of this thread alone: others take pinned memory for batches meanwhile.
    graph->capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
#else
    graph->capture_begin();
#endif
    work.run();
    graph->capture_end();
  }
  stream.synchronize();
  return [graph] { graph->replay(); };  // on the stream that is current then
}
#else
std::function<void()> capture_graph(const Repeatable& work) {
  return work.run;
}
#endif

}  // namespace onetap::fused
