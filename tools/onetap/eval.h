// What `onetap eval` asks of runs (LibTorch) and of frozen networks (our own runtime).
#pragma once

#include "onetap/graph/method.h"
#include "onetap/journal/class_scores.h"
#include "onetap/recipe/choices.h"
#include "onetap/tap/tap_net.h"
#include "tools/onetap/opened_data.h"

#include <optional>
#include <string>
#include <vector>

namespace onetap::tool {

struct EvalArguments {
  std::vector<std::string> paths;
  std::string data;
  std::string checkpoint = "last";
  std::optional<Binarize> binarize;
  std::string device = "auto";
  int64_t threads = 0;
  int64_t batch_size = 0;
  int64_t memory_limit = 0;
  bool no_ema = false;
  bool reference = false;
  bool per_class = false;
  bool json = false;
};

// One row: a network in one form.
struct EvalRow {
  std::string path, network, method, form;
  std::optional<int64_t> step;  // unless a .tap does not say
  double accuracy = 0, loss = 0, params = 0;
  std::string weights;                                // how a .tap keeps them: f32, f16
  std::optional<ClassScores> classes = std::nullopt;  // with --per-class, unless the form is soft
};

// As --method spells it: "conv" for a dense network.
inline std::string method_of(const Graph& graph) {
  const std::string summary = method_summary(graph);
  return summary == "dense" ? "conv" : summary;
}

// By our own runtime on the test set of options.data. kFailure if an output is not finite.
std::vector<EvalRow> evaluate_tap(const EvalArguments& options, const std::string& path, OpenedData& opened);
// By LibTorch, in the training module.
std::vector<EvalRow> evaluate_run(const EvalArguments& options, const std::string& path, OpenedData& opened);

}  // namespace onetap::tool
