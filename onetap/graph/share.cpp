#include "onetap/graph/share.h"

#include "onetap/base/text.h"

namespace onetap {
namespace {

constexpr std::string_view kAll = "all";
constexpr int64_t kMost = 1'000'000'000;

// At least 1.
std::optional<int64_t> parse_count(std::string_view text) {
  const auto count = parse_int(text);
  return count && *count >= 1 && *count <= kMost ? count : std::nullopt;
}

}  // namespace

std::string share_text(const BlockShare& share) {
  std::string text = share.has_all_outputs() ? std::string(kAll) : std::to_string(share.outputs);
  if (share.inputs != 1) text += "x" + std::to_string(share.inputs);
  return text;
}

std::optional<BlockShare> parse_share(std::string_view text) {
  const auto sides = split(text, 'x');
  if (sides.size() > 2) return std::nullopt;
  const auto outputs = sides[0] == kAll ? std::optional(BlockShare::kAllOutputs) : parse_count(sides[0]);
  const auto inputs = sides.size() == 2 ? parse_count(sides[1]) : std::optional<int64_t>(1);
  if (!outputs || !inputs) return std::nullopt;
  return BlockShare(*outputs, *inputs);
}

void share_blocks(TapLayout& layout, const BlockShare& share) {
  layout.share_outputs = share.has_all_outputs() ? layout.outputs : share.outputs;
  layout.share_inputs = share.inputs;
}

}  // namespace onetap
