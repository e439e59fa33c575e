#include "onetap/fused/side_stream.h"

#ifdef ONETAP_CUDA
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <deque>
#endif

namespace onetap::fused {

#ifdef ONETAP_CUDA
struct SideStream::Stream {
  // Pieces of work that may be under way: their inputs take memory.
  static constexpr size_t kMaxPieces = 4;

  struct Piece {
    at::cuda::CUDAEvent done;
    std::vector<torch::Tensor> inputs;
  };

  void run(std::vector<torch::Tensor> inputs, const std::function<void()>& work) {
    at::cuda::CUDAEvent start;
    start.record();
    Piece piece;
    {
      const c10::cuda::CUDAStreamGuard guard(stream);
      start.block(stream);
      work();
      piece.done.record(stream);
    }
    piece.inputs = std::move(inputs);
    pieces.push_back(std::move(piece));
    while (pieces.size() > kMaxPieces) finish_first();
  }

  // The allocator hands memory out again in the order of the main stream: it must have waited before an input goes.
  void finish_first() {
    pieces.front().done.block(c10::cuda::getCurrentCUDAStream());
    pieces.pop_front();
  }

  c10::cuda::CUDAStream stream = c10::cuda::getStreamFromPool();
  std::deque<Piece> pieces;
};

void SideStream::run(std::vector<torch::Tensor> inputs, const std::function<void()>& work) {
  if (!inputs.front().is_cuda()) return work();
  if (stream_ == nullptr) stream_ = std::make_unique<Stream>();
  stream_->run(std::move(inputs), work);
}

void SideStream::join() {
  while (stream_ != nullptr && !stream_->pieces.empty()) stream_->finish_first();
}
#else
struct SideStream::Stream {};

void SideStream::run(std::vector<torch::Tensor>, const std::function<void()>& work) {
  work();
}

void SideStream::join() {}
#endif

SideStream::SideStream() = default;
SideStream::~SideStream() = default;

}  // namespace onetap::fused
