// How many neighbouring kernel slices keep the same tap positions, as networks and recipes spell it: a block of outputs
// x inputs. `4` is 4x1, `all` every output of the layer.
#pragma once

#include "onetap/base/tap_layout.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace onetap {

struct BlockShare {
  static constexpr int64_t kAllOutputs = 0;

  BlockShare() = default;
  BlockShare(int64_t of_outputs, int64_t of_inputs = 1) : outputs(of_outputs), inputs(of_inputs) {}

  int64_t outputs = 1;  // or kAllOutputs
  int64_t inputs = 1;

  bool has_all_outputs() const { return outputs == kAllOutputs; }
  bool operator==(const BlockShare& other) const { return outputs == other.outputs && inputs == other.inputs; }
  bool operator!=(const BlockShare& other) const { return !(*this == other); }
};

// "4", "4x4", "all" or "allx4".
std::string share_text(const BlockShare& share);
// Nothing for any other text, and for blocks of no slices.
std::optional<BlockShare> parse_share(std::string_view text);
// What messages ask for.
constexpr const char* kShareForms = "outputs (4), outputs x inputs (4x4), all or allx4";

// Sets the blocks of a layout whose sizes are there.
void share_blocks(TapLayout& layout, const BlockShare& share);

}  // namespace onetap
