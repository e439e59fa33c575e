// How a network does on every class, as `eval --per-class` prints it.
#pragma once

#include "onetap/data/score.h"
#include "onetap/journal/class_scores.h"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace onetap::tool {

ClassScores class_scores(const Predictions& predictions, const std::vector<std::string>& classes);

// A row for every class; and, for up to 20 classes, who was taken for whom.
std::string class_table(const ClassScores& scores);
nlohmann::ordered_json class_json(const ClassScores& scores);

}  // namespace onetap::tool
