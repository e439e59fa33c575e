#include "onetap/journal/class_scores.h"

#include "onetap/base/fail.h"
#include "onetap/base/json.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <numeric>

namespace onetap {

int64_t ClassScores::images(size_t label) const {
  const auto row = confusion.begin() + static_cast<std::ptrdiff_t>(label * classes.size());
  return std::accumulate(row, row + static_cast<std::ptrdiff_t>(classes.size()), int64_t{0});
}

size_t ClassScores::mistaken_for(size_t label) const {
  size_t most = label;
  int64_t count = 0;
  for (size_t answer = 0; answer < classes.size(); ++answer) {
    const int64_t times = confusion[label * classes.size() + answer];
    if (answer == label || times <= count) continue;
    most = answer;
    count = times;
  }
  return most;
}

std::string ClassScores::json() const {
  nlohmann::ordered_json object = {{"step", step}, {"form", form}, {"top5", top5}, {"classes", classes}};
  object["confusion"] = confusion;
  return json_text(object) + '\n';
}

ClassScores ClassScores::parse(std::string_view text, std::string_view label) {
  constexpr size_t kMostClasses = 4096;
  constexpr int64_t kMostImages = int64_t{1} << 40;
  const nlohmann::json object = parse_json(text);
  try {
    ClassScores scores;
    scores.step = whole_number(object, "step");
    scores.form = json_string(object, "form");
    scores.top5 = json_number(object, "top5");
    const nlohmann::json& names = object.at("classes");
    const nlohmann::json& counts = object.at("confusion");
    if (!names.is_array() || !counts.is_array() || names.empty() || names.size() > kMostClasses ||
        counts.size() != names.size() * names.size()) {
      fail_data("[classes] expected a name for every class and a count for every pair, got {} and {} ({})",
                names.size(), counts.size(), label);
    }
    for (const nlohmann::json& name : names) scores.classes.push_back(name.get<std::string>());
    for (const nlohmann::json& count : counts) {
      if (!count.is_number_integer() || count < 0 || count > kMostImages) {
        fail_data("[classes] expected counts of images, got others ({})", label);
      }
      scores.confusion.push_back(count.get<int64_t>());
    }
    return scores;
  } catch (const nlohmann::json::exception& problem) {
    fail_data("[classes] not scores of classes: {} ({})", problem.what(), label);
  }
}

}  // namespace onetap
