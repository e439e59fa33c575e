#include "onetap/runtime/session_pool.h"

namespace onetap {

std::vector<float> SessionPool::run(const float* image) {
  std::unique_ptr<Session> session = take();
  std::vector<float> outputs(static_cast<size_t>(model_->output_floats()));
  session->run(image, 1, outputs.data());
  const std::lock_guard<std::mutex> lock(mutex_);
  idle_.push_back(std::move(session));
  return outputs;
}

std::unique_ptr<Session> SessionPool::take() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Session> session = std::move(idle_.back());
      idle_.pop_back();
      return session;
    }
  }
  return std::make_unique<Session>(model_);
}

}  // namespace onetap
