#include "tools/onetap/class_table.h"

#include "onetap/base/utf8.h"
#include "tools/onetap/console.h"
#include "tools/onetap/table.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace onetap::tool {
namespace {

double accuracy(const ClassScores& scores, size_t label) {
  return static_cast<double>(scores.right(label)) / static_cast<double>(std::max<int64_t>(1, scores.images(label)));
}

std::string mistake_text(const ClassScores& scores, size_t label) {
  const size_t other = scores.mistaken_for(label);
  if (other == label) return "";
  return fmt::format("{} ({})", scores.classes[other], scores.confusion[label * scores.classes.size() + other]);
}

}  // namespace

ClassScores class_scores(const Predictions& predictions, const std::vector<std::string>& classes) {
  ClassScores scores;
  scores.classes = classes;
  scores.classes.resize(static_cast<size_t>(predictions.classes));
  scores.confusion = predictions.confusion();
  scores.top5 = predictions.accuracy(5);
  return scores;
}

std::string class_table(const ClassScores& scores) {
  using A = Table::Align;
  const size_t count = scores.classes.size();
  Table table({{"class"}, {"images", A::kRight}, {"accuracy", A::kRight}, {"most frequent error"}});
  for (size_t label = 0; label < count; ++label) {
    table.add({scores.classes[label], fmt::format("{}", scores.images(label)), percent_text(accuracy(scores, label)),
               mistake_text(scores, label)});
  }
  std::string text = table.text();
  if (count > 5) text += fmt::format("top-5 accuracy: {}\n", percent_text(scores.top5));
  constexpr size_t kMostColumns = 20;
  if (count > kMostColumns) return text;
  std::vector<Table::Column> columns = {{"images of, predicted as"}};
  for (const std::string& name : scores.classes) columns.push_back({printable(name), A::kRight});
  Table matrix(columns);
  for (size_t label = 0; label < count; ++label) {
    std::vector<std::string> row = {scores.classes[label]};
    for (size_t answer = 0; answer < count; ++answer) {
      row.push_back(fmt::format("{}", scores.confusion[label * count + answer]));
    }
    matrix.add(row);
  }
  return text + '\n' + matrix.text();
}

nlohmann::ordered_json class_json(const ClassScores& scores) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  const size_t count = scores.classes.size();
  for (size_t label = 0; label < count; ++label) {
    const auto first = scores.confusion.begin() + static_cast<std::ptrdiff_t>(label * count);
    rows.push_back({{"class", scores.classes[label]},
                    {"images", scores.images(label)},
                    {"accuracy", accuracy(scores, label)},
                    {"answers", std::vector<int64_t>(first, first + static_cast<std::ptrdiff_t>(count))}});
  }
  return rows;
}

}  // namespace onetap::tool
