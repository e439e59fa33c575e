#include "onetap/kernels/kernel_set.h"
#include "onetap/kernels/x86_features.h"
#include "tests/support/support.h"

#include <algorithm>
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
    EXPECT_EQ(set->type, DType::kF32);
    EXPECT_TRUE(set->linear && set->affine && set->add && set->relu && set->global_mean && set->pool &&
                set->pack_shifted && set->take_apart && set->fma_rounds)
        << set->name;
  }
  EXPECT_STREQ(kernel_sets().back()->name, "plain");
}

TEST(Dispatch, EveryRowHasANameThatIsOffered) {
  const std::vector<std::string>& names = target_names();
  for (const DType type : {DType::kF32, DType::kI8}) {
    for (const KernelSet* set : kernel_sets(type)) {
      EXPECT_EQ(std::count(names.begin(), names.end(), set->name), 1) << set->name;
    }
  }
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

TEST(Dispatch, ATypeWithoutKernelsIsRefusedByName) {
  EXPECT_TRUE(kernel_sets(DType::kI64).empty());
  testing::expect_error(ErrorKind::kUsage, "got I64 (target 'plain')", [] { find_kernels("plain", DType::kI64); });
}

// A row that has only some of the kernels: what is there runs, the rest is an error that says what is missing.
TEST(Dispatch, AMissingKernelIsAnErrorWithOpTargetAndType) {
  KernelSet row({"abacus", DType::kI8});
  row.relu = +[](int64_t, const float*, float* to) { *to = 3; };
  float y = 0;
  row.relu(1, &y, &y);
  EXPECT_EQ(y, 3);
  testing::expect_error(ErrorKind::kFailure, "a kernel for add, got none (target abacus, type I8)",
                        [&] { row.add(1, &y, &y, &y, false); });
  testing::expect_error(ErrorKind::kFailure, "a kernel for linear", [&] { row.linear(1, 1, &y, &y, &y, &y, false); });
  testing::expect_error(ErrorKind::kFailure, "a kernel for conv", [&] { row.conv_tile(1, 1); });
  EXPECT_EQ(row.max_vectors(1), 0);
}

// What Highway compiles each target with (HWY_TARGET_STR_*).
TEST(Dispatch, ATargetNeedsAllThatItIsCompiledWith) {
  X86Features cpu;
  EXPECT_FALSE(runs_sse4(cpu));
  cpu.sse42 = cpu.pclmul = cpu.aes = true;
  EXPECT_TRUE(runs_sse4(cpu));
  cpu.avx2 = cpu.fma = cpu.bmi = cpu.bmi2 = true;
  EXPECT_FALSE(runs_avx2(cpu)) << "without F16C";
  cpu.f16c = true;
  EXPECT_TRUE(runs_avx2(cpu));
  cpu.avx512f = cpu.avx512vl = cpu.avx512dq = cpu.avx512bw = cpu.avx512cd = true;
  EXPECT_TRUE(runs_avx512(cpu));
  cpu.f16c = false;
  EXPECT_FALSE(runs_avx512(cpu));
}

}  // namespace
}  // namespace onetap
