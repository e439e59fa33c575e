#include "onetap/kernels/kernel_set.h"

#include "onetap/base/fail.h"
#include "onetap/kernels/targets.h"

#include <cstdlib>
#include <map>

namespace onetap {

int KernelSet::max_vectors(int outputs) const {
  int vectors = 0;
  while (vectors < kMaxVectors && conv[outputs - 1][vectors] != nullptr) ++vectors;
  return vectors;
}

void fail_missing_kernel(const KernelKey& key, const char* op) {
  fail("[kernels] expected a kernel for {}, got none (target {}, type {})", op, key.name, dtype_name(key.type));
}

KernelSet int8_kernel_set(const char* target, const Int8Kernels& kernels) {
  KernelSet set({target, DType::kI8});
  set.lanes = static_cast<int>(kernels.lanes);
  set.int8 = &kernels;
  return set;
}

const std::vector<const KernelSet*>& kernel_sets(DType type) {
  static const std::map<DType, std::vector<const KernelSet*>> table = [] {
    std::map<DType, std::vector<const KernelSet*>> rows;
#ifdef ONETAP_HAVE_HIGHWAY
    for (const KernelSet* row : simd_kernels()) rows[row->type].push_back(row);
    for (const KernelSet* row : simd_int8_kernels()) rows[row->type].push_back(row);
#endif
    for (const KernelSet* row : plain_kernels()) rows[row->type].push_back(row);
    rows[DType::kI8].push_back(&plain_int8_kernels());
    return rows;
  }();
  static const std::vector<const KernelSet*> none;
  const auto found = table.find(type);
  return found == table.end() ? none : found->second;
}

const std::vector<std::string>& target_names() {
  static const std::vector<std::string> names = {"avx512vnni", "avxvnni", "avx512", "avx2", "sse4",
                                                 "sse2",       "neondot", "neon",   "plain"};
  return names;
}

const KernelSet& find_kernels(std::string_view target, DType type) {
  const std::vector<const KernelSet*>& rows = kernel_sets(type);
  if (target.empty()) {
    const char* forced = std::getenv("ONETAP_TARGET");
    if (forced != nullptr) target = forced;
  }
  if (rows.empty()) {
    fail_usage("[kernels] expected a type that there are kernels for, got {} (target '{}')", dtype_name(type), target);
  }
  if (target.empty()) return *rows.front();
  std::string names;
  for (const KernelSet* row : rows) {
    if (target == row->name) return *row;
    names += std::string(names.empty() ? "" : ", ") + row->name;
  }
  fail_usage("[kernels] expected a target of {} (what this build has for {} and this CPU runs), got '{}'", names,
             dtype_name(type), target);
}

}  // namespace onetap
