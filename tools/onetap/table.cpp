#include "tools/onetap/table.h"

#include "onetap/base/utf8.h"

#include <algorithm>

namespace onetap::tool {

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {
  for (Column& column : columns_) column.title = printable(column.title);
}

void Table::add(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = printable(cell);
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<size_t> widths;
  for (size_t c = 0; c < columns_.size(); ++c) {
    size_t width = columns_[c].title.size();
    for (const auto& row : rows_) {
      if (!row.empty()) width = std::max(width, row[c].size());
    }
    widths.push_back(width);
  }
  std::string text;
  const auto put = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (size_t c = 0; c < cells.size(); ++c) {
      if (c > 0) line += "  ";
      const std::string gap(widths[c] - cells[c].size(), ' ');
      line += columns_[c].align == Align::kRight ? gap + cells[c] : cells[c] + gap;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  };
  std::vector<std::string> titles, rules;
  for (size_t c = 0; c < columns_.size(); ++c) {
    titles.push_back(columns_[c].title);
    rules.emplace_back(widths[c], '-');
  }
  put(titles);
  put(rules);
  for (const auto& row : rows_) put(row.empty() ? rules : row);
  return text;
}

std::string Table::markdown() const {
  std::string text;
  const auto put = [&](const std::vector<std::string>& cells) {
    text += '|';
    for (const std::string& cell : cells) {
      text += ' ';
      for (const char c : cell) text += c == '|' ? "\\|" : std::string(1, c);
      text += " |";
    }
    text += '\n';
  };
  std::vector<std::string> titles, rules;
  for (const Column& column : columns_) {
    titles.push_back(column.title);
    rules.emplace_back(column.align == Align::kRight ? "---:" : "---");
  }
  put(titles);
  put(rules);
  for (const auto& row : rows_) {
    if (!row.empty()) put(row);
  }
  return text;
}

}  // namespace onetap::tool
