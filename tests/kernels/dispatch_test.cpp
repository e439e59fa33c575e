#include "onetap/kernels/kernel_set.h"
#include "tests/support/support.h"

#include <cstdlib>
#include <set>

namespace onetap {
namespace {

class ForcedTarget {
 public:
  explicit ForcedTarget(const char* name) {
    if (const char* old = std::getenv("ONETAP_TARGET")) old_ = old;
    ::setenv("ONETAP_TARGET", name, 1);
  }
  ~ForcedTarget() { old_.empty() ? ::unsetenv("ONETAP_TARGET") : ::setenv("ONETAP_TARGET", old_.c_str(), 1); }

 private:
  std::string old_;
};

TEST(Dispatch, SetsAreCompleteAndNamedOnce) {
  std::set<std::string> names;
  for (const KernelSet* set : kernel_sets()) {
    EXPECT_TRUE(names.insert(set->name).second) << set->name;
    EXPECT_TRUE(set->linear && set->affine && set->add && set->relu && set->global_mean && set->pool &&
                set->pack_shifted && set->take_apart && set->fma_rounds)
        << set->name;
  }
  EXPECT_STREQ(kernel_sets().back()->name, "plain");
}

#if defined(ONETAP_HAVE_HIGHWAY)
TEST(Dispatch, TheBestSetIsOfThisArchitecture) {
#if defined(__aarch64__)
  EXPECT_STREQ(kernel_sets().front()->name, "neon");
#else
  EXPECT_STRNE(kernel_sets().front()->name, "plain");
#endif
}
#endif

TEST(Dispatch, TheVariableForcesATarget) {
  for (const KernelSet* set : kernel_sets()) {
    const ForcedTarget forced(set->name);
    EXPECT_EQ(&find_kernels(), set);
  }
  const ForcedTarget none("");
  EXPECT_EQ(&find_kernels(), kernel_sets().front());
}

TEST(Dispatch, AnUnknownTargetIsRefusedWithTheList) {
  const ForcedTarget forced("abacus");
  testing::expect_error(ErrorKind::kUsage, "plain", [] { find_kernels(); });
  testing::expect_error(ErrorKind::kUsage, "'avx9'", [] { find_kernels("avx9"); });
}

}  // namespace
}  // namespace onetap
