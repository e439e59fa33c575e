// Sessions of one thread each, lent to whichever thread asks: for callers that bring their own threads.
#pragma once

#include "onetap/runtime/session.h"

#include <memory>
#include <mutex>
#include <vector>

namespace onetap {

class SessionPool {
 public:
  explicit SessionPool(std::shared_ptr<const Model> model) : model_(std::move(model)) {}

  // The outputs for one image, as Session::run takes it. Several threads may call it at once.
  std::vector<float> run(const float* image);

 private:
  std::unique_ptr<Session> take();

  std::shared_ptr<const Model> model_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Session>> idle_;
};

}  // namespace onetap
