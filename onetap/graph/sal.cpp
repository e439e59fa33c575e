#include "onetap/graph/sal.h"

#include "onetap/graph/method_table.h"

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
  share.help = "consecutive outputs that share one set of tap positions";
  share.usual = int64_t{1};
  share.low = 1;
  share.high = 1e9;
  share.limit = MethodKey::Limit::kOutputs;

  MethodKey init;
  init.name = "init";
  init.recipe_key = "tap_init";
  init.help = "start of the attention logits";
  init.usual = "uniform";
  init.words = {"uniform", "centre"};
  init.is_shown = false;

  MethodInfo info;
  info.name = "sal";
  info.help = "Shift Attention Layers";
  info.keys = {taps, share, init};
  info.needs_positions = true;
  info.may_have_bias = false;
  info.has_soft_form = true;
  info.frozen = Op::kTapConv;
  info.keep = [](const Method& method, TapLayout& layout) {
    layout.taps = method.number("taps");
    layout.share_outputs = method.number("share");
  };
  // A logit for every position of every tap.
  info.extra_parameters = [](const Graph& graph, const Node& node) {
    const TapLayout layout = tap_layout(graph, node);
    return layout.codes() * layout.positions;
  };
  return info;
}

Method sal_method(int64_t taps, int64_t share, TapInit init) {
  return Method("sal")
      .set("taps", taps)
      .set("share", share)
      .set("init", init == TapInit::kCentre ? "centre" : "uniform");
}

TapInit tap_init(const Method& sal) {
  return sal.word("init") == "centre" ? TapInit::kCentre : TapInit::kUniform;
}

}  // namespace onetap
