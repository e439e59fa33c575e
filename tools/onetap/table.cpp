#include "tools/onetap/table.h"

#include "onetap/base/utf8.h"
#include "onetap/report/svg_canvas.h"

#include <fmt/format.h>

#include <algorithm>

namespace onetap::tool {
namespace {

// In characters: "±" takes one place and two bytes.
size_t text_width(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

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
    size_t width = text_width(columns_[c].title);
    for (const auto& row : rows_) {
      if (!row.empty()) width = std::max(width, text_width(row[c]));
    }
    widths.push_back(width);
  }
  std::string text;
  const auto put = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (size_t c = 0; c < cells.size(); ++c) {
      if (c > 0) line += "  ";
      const std::string gap(widths[c] - text_width(cells[c]), ' ');
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

std::string Table::html() const {
  const auto cell = [&](const char* tag, size_t c, const std::string& text) {
    const char* style = columns_[c].align == Align::kRight ? " class=\"number\"" : "";
    return fmt::format("<{0}{1}>{2}</{0}>", tag, style, escape_xml(text));
  };
  std::string text = "<table class=\"data\">\n<thead><tr>";
  for (size_t c = 0; c < columns_.size(); ++c) text += cell("th", c, columns_[c].title);
  text += "</tr></thead>\n<tbody>\n";
  for (const auto& row : rows_) {
    if (row.empty()) continue;
    text += "<tr>";
    for (size_t c = 0; c < row.size(); ++c) text += cell("td", c, row[c]);
    text += "</tr>\n";
  }
  return text + "</tbody>\n</table>\n";
}

}  // namespace onetap::tool
