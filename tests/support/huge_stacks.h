// Makes the start of threads fail.
#pragma once

#include <cstddef>
#include <pthread.h>

namespace onetap::testing {

// While it lives, new threads have stacks of 16 TiB: the address space has room for a few (7 on x86-64), and then the
// system refuses to start another.
class HugeStacks {
 public:
#if defined(ONETAP_ADDRESS_SANITIZER) || defined(ONETAP_THREAD_SANITIZER)
  static constexpr bool kPossible = false;
#else
  static constexpr bool kPossible = true;
#endif

  HugeStacks() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t huge;
    pthread_getattr_default_np(&huge);
    pthread_attr_setstacksize(&huge, size_t{1} << 44);
    pthread_setattr_default_np(&huge);
    pthread_attr_destroy(&huge);
  }
  HugeStacks(const HugeStacks&) = delete;
  HugeStacks& operator=(const HugeStacks&) = delete;
  ~HugeStacks() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }

 private:
  pthread_attr_t before_;
};

}  // namespace onetap::testing
