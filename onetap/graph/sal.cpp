#include "onetap/graph/sal.h"

#include "onetap/graph/method_table.h"

#include <algorithm>
#include <cmath>

namespace onetap {

MethodInfo sal_row() {
  MethodKey taps;
  taps.name = "taps";
  taps.help = "weights kept per kernel slice";
  taps.usual = int64_t{1};
  taps.low = 1;
  taps.high = 4096;
  taps.limit = MethodKey::Limit::kPositions;

  MethodKey share;
  share.name = "share";
  share.help =
      "consecutive outputs (4), outputs x inputs (4x4) or all outputs (all, allx4) that share one set of tap positions";
  share.usual = BlockShare();

  MethodKey init;
  init.name = "init";
  init.recipe_key = "tap_init";
  init.help =
      "initial attention logits: random (uniform), with the centre as the largest (centre), or from the magnitudes of "
      "the weights (magnitude: to start from dense weights)";
  init.usual = "uniform";
  init.words = {"uniform", "centre", "magnitude"};
  init.is_shown = false;

  MethodKey relax;
  relax.name = "relax";
  relax.help =
      "forward pass of training: all taps scaled by the attention (softmax), or only the best tap, with the gradients "
      "of the attention (straight-through); auto is straight-through if all outputs share, else softmax";
  relax.usual = "auto";
  relax.words = {"auto", "softmax", "straight-through"};
  relax.is_shown = false;

  MethodKey density;
  density.name = "density";
  density.help = "fraction of the slices (or of the blocks that share positions) that keep their taps";
  density.usual = 1.0;
  density.low = 0.001;
  density.high = 1;
  density.is_shown = false;

  MethodInfo info;
  info.name = "sal";
  info.help = "Shift Attention";
  info.keys = {taps, share, init, relax, density};
  info.needs_positions = true;
  info.may_have_bias = false;
  info.has_soft_form = true;
  info.frozen = Op::kTapConv;
  info.keep = [](const Method& method, TapLayout& layout) {
    layout.taps = method.number("taps");
    share_blocks(layout, method.blocks("share"));
    if (method.info().find_key("density") == nullptr) return;  // others keep taps the same way, in all of their sets
    // Which sets are empty, and so how many weights where blocks are of several sizes, is known once it is trained.
    const int64_t sets = layout.sets(), empty = sets - kept_sets(layout, method.real("density"));
    layout.dropped = static_cast<int64_t>(static_cast<double>(layout.weights()) * static_cast<double>(empty) /
                                          static_cast<double>(sets));
    layout.may_be_empty = empty > 0;
  };
  // A logit for every position of every tap, and one for every set if some are to be empty.
  info.extra_parameters = [](const Graph& graph, const Node& node) {
    const TapLayout layout = tap_layout(graph, node);
    return layout.codes() * layout.positions + (layout.may_be_empty ? layout.sets() : 0);
  };
  return info;
}

Method sal_method(int64_t taps, BlockShare share, TapInit init) {
  const char* word = init == TapInit::kCentre ? "centre" : init == TapInit::kMagnitude ? "magnitude" : "uniform";
  return Method("sal").set("taps", taps).set("share", share).set("init", word);
}

int64_t kept_sets(const TapLayout& layout, double density) {
  return std::max<int64_t>(1, std::llround(density * static_cast<double>(layout.sets())));
}

TapInit tap_init(const Method& sal) {
  const std::string& word = sal.word("init");
  return word == "centre" ? TapInit::kCentre : word == "magnitude" ? TapInit::kMagnitude : TapInit::kUniform;
}

Relax tap_relax(const Method& sal) {
  const std::string& word = sal.word("relax");
  const bool is_hard = word == "auto" ? sal.blocks("share").has_all_outputs() : word == "straight-through";
  return is_hard ? Relax::kStraightThrough : Relax::kSoftmax;
}

bool trains_hard(const Graph& graph) {
  const auto& nodes = graph.nodes();
  return std::all_of(nodes.begin(), nodes.end(), [](const Node& node) {
    if (!node.method.info().has_soft_form) return true;
    return node.method.name() == "sal" && tap_relax(node.method) == Relax::kStraightThrough;
  });
}

}  // namespace onetap
