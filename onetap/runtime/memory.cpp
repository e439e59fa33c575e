#include "onetap/runtime/memory.h"

#include "onetap/base/fail.h"
#include "onetap/base/text.h"

#include <cstdlib>
#include <limits>

namespace onetap {
namespace {

constexpr int64_t kDefaultLimit = int64_t{1} << 30;

// In whole numbers: formatting floating-point ones makes a static program larger.
std::string size_text(int64_t bytes) {
  const char* const units[] = {"bytes", "KiB", "MiB", "GiB"};
  int unit = 0;
  while (unit < 3 && bytes >= int64_t{1024} << 10 * unit) ++unit;
  if (unit == 0) return fmt::format("{} bytes", bytes);
  const int64_t hundredths = ((bytes >> 10 * (unit - 1)) * 100) >> 10;
  return fmt::format("{}.{:02} {}", hundredths / 100, hundredths % 100, units[unit]);
}

}  // namespace

int64_t memory_limit(int64_t asked) {
  if (asked < 0) fail_usage("[runtime] expected a memory limit of at least 0 bytes, got {}", asked);
  if (asked > 0) return asked;
  const char* given = std::getenv("ONETAP_MEMORY");
  return given != nullptr && *given != '\0' ? parse_memory(given, "ONETAP_MEMORY") : kDefaultLimit;
}

int64_t parse_memory(std::string_view text, std::string_view name) {
  constexpr std::string_view kUnits = "KMG";
  std::string_view digits = text;
  for (const std::string_view end : {"iB", "B"}) {  // 64KiB and 64KB are 64K
    if (digits.size() > end.size() && digits.substr(digits.size() - end.size()) == end) {
      digits.remove_suffix(end.size());
      break;
    }
  }
  int shift = 0;
  if (!digits.empty() && kUnits.find(digits.back()) != std::string_view::npos) {
    shift = 10 * (static_cast<int>(kUnits.find(digits.back())) + 1);
    digits.remove_suffix(1);
  }
  const auto count = parse_int(digits);
  if (!count || *count < 1 || *count > std::numeric_limits<int64_t>::max() >> shift) {
    fail_usage("[runtime] expected a size such as 1500000, 64K, 512M or 2G for {}, got '{}'", name, text);
  }
  return *count << shift;
}

void MemoryNeed::add(int64_t bytes, const std::string& part) {
  // A hostile file may ask for more than a number holds.
  if (__builtin_add_overflow(bytes_, bytes, &bytes_)) bytes_ = std::numeric_limits<int64_t>::max();
  if (bytes <= largest_bytes_) return;
  largest_bytes_ = bytes;
  largest_part_ = part;
}

void MemoryNeed::check() const {
  if (bytes_ <= limit_) return;
  fail_usage(
      "[runtime] expected a network that runs in {} of memory, got one that needs {}, of which {} for {} ({}; "
      "--memory, ONETAP_MEMORY or memory_limit of the options allow more)",
      size_text(limit_), size_text(bytes_), size_text(largest_bytes_), largest_part_, network_);
}

}  // namespace onetap
