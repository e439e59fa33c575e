#include "onetap/kernels/kernel_set.h"

#include "onetap/base/fail.h"
#include "onetap/kernels/targets.h"

#include <cstdlib>

namespace onetap {

int KernelSet::max_vectors(int outputs) const {
  int vectors = 0;
  while (vectors < kMaxVectors && conv[outputs - 1][vectors] != nullptr) ++vectors;
  return vectors;
}

const std::vector<const KernelSet*>& kernel_sets() {
  static const std::vector<const KernelSet*> sets = [] {
    std::vector<const KernelSet*> all;
#ifdef ONETAP_HAVE_HIGHWAY
    all = simd_kernels();
#endif
    all.push_back(&plain_kernels());
    return all;
  }();
  return sets;
}

const KernelSet& find_kernels(std::string_view name) {
  if (name.empty()) {
    const char* forced = std::getenv("ONETAP_TARGET");
    if (forced == nullptr || *forced == '\0') return *kernel_sets().front();
    name = forced;
  }
  std::string names;
  for (const KernelSet* set : kernel_sets()) {
    if (name == set->name) return *set;
    names += std::string(names.empty() ? "" : ", ") + set->name;
  }
  fail_usage("[kernels] expected a target of {} (what this build has and this CPU runs), got '{}'", names, name);
}

}  // namespace onetap
