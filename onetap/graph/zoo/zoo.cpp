#include "onetap/graph/zoo/zoo.h"

#include "onetap/base/fail.h"
#include "onetap/base/text.h"
#include "onetap/graph/zoo/architectures.h"

#include <algorithm>

namespace onetap {
namespace {

using Depth = ZooEntry::Depth;

// An architecture, and the depth that its name asks for.
struct Found {
  const ZooEntry* entry;
  int64_t depth = 20;
};

[[noreturn]] void unknown_architecture(std::string_view arch) {
  std::vector<std::string> names;
  for (const ZooEntry& entry : zoo()) {
    for (const std::string& spelling : entry.spellings) {
      if (entry.depth != Depth::kAppended) names.push_back(spelling);
      if (entry.depth == Depth::kNone) continue;
      for (const char* depth : {"20", "32", "44", "56", "110"}) names.push_back(spelling + depth);
    }
  }
  fail_usage("[zoo] unknown architecture '{}'{} ('onetap nets' lists them; a path to a network text file works too)",
             arch, did_you_mean(arch, names));
}

int64_t checked_depth(std::string_view arch, int64_t depth) {
  if (arch == "resnet50") {
    fail_usage("[zoo] 'resnet50' is ambiguous: the bottleneck network for CIFAR is 'resnet50-cifar'");
  }
  if (depth < 8 || depth > 1202 || (depth - 2) % 6 != 0) {
    fail_usage("[zoo] expected a depth of 6n+2 (8, 14, 20, ..., 1202), got '{}'", arch);
  }
  return depth;
}

Found find_by_name(std::string_view arch) {
  for (const ZooEntry& entry : zoo()) {
    for (const std::string& spelling : entry.spellings) {
      if (entry.depth != Depth::kAppended && arch == spelling) return {&entry};
      if (entry.depth == Depth::kNone || arch.substr(0, spelling.size()) != spelling) continue;
      const auto depth = parse_int(arch.substr(spelling.size()));
      if (depth) return {&entry, checked_depth(arch, *depth)};
    }
  }
  unknown_architecture(arch);
}

// Settings that an architecture lacks: the message names those that have them.
template <typename Has>
[[noreturn]] void not_a_setting(const std::string& arch, const char* setting, Has has) {
  std::vector<std::string> having;
  for (const ZooEntry& entry : zoo()) {
    if (has(entry)) having.push_back(entry.spellings.front() + (entry.depth == Depth::kAppended ? "N" : ""));
  }
  fail_usage("[zoo] {} has no {} to set ({} have)", arch, setting, join(having, ", "));
}

void check_settings(const NetSpec& spec, const ZooEntry& entry) {
  if (spec.kernel && !entry.default_kernel) {
    not_a_setting(spec.arch, "kernel", [](const ZooEntry& e) { return e.default_kernel.has_value(); });
  }
  if (spec.expansion && !entry.default_expansion) {
    not_a_setting(spec.arch, "expansion", [](const ZooEntry& e) { return e.default_expansion.has_value(); });
  }
  if (spec.shortcut == 'A' && !entry.has_shortcut_a) {
    not_a_setting(spec.arch, "shortcut A", [](const ZooEntry& e) { return e.has_shortcut_a; });
  }
}

void check_values(const ArchSpec& spec) {
  if (spec.width < 1 || spec.width > 65536) {
    fail_usage("[zoo] expected a width in 1..65536 for {}, got {}", spec.name, spec.width);
  }
  if (spec.kernel != 3 && spec.kernel != 5) fail_usage("[zoo] expected kernel 3 or 5, got {}", spec.kernel);
  if (spec.expansion < 1 || spec.expansion > 64) {
    fail_usage("[zoo] expected an expansion in 1..64 for {}, got {}", spec.name, spec.expansion);
  }
  if (spec.shortcut != 'A' && spec.shortcut != 'B') {
    fail_usage("[zoo] expected shortcut A or B, got '{}'", spec.shortcut);
  }
  if (spec.classes < 1) fail_usage("[zoo] expected at least 1 class, got {}", spec.classes);
}

}  // namespace

const ZooEntry& find_architecture(std::string_view arch) {
  return *find_by_name(arch).entry;
}

Graph build_network(const NetSpec& spec) {
  const auto [entry, depth] = find_by_name(spec.arch);
  check_settings(spec, *entry);
  ArchSpec arch;
  arch.name = spec.arch;
  arch.depth = depth;
  arch.width = spec.width.value_or(entry->default_width);
  arch.kernel = spec.kernel.value_or(entry->default_kernel.value_or(arch.kernel));
  arch.expansion = spec.expansion.value_or(entry->default_expansion.value_or(arch.expansion));
  arch.shortcut = spec.shortcut;
  arch.classes = spec.classes;
  arch.image = spec.image.value_or(entry->default_image);
  check_values(arch);
  return entry->build(arch);
}

}  // namespace onetap
