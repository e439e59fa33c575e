// A table of text for stdout.
#pragma once

#include <string>
#include <vector>

namespace onetap::tool {

class Table {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string title;
    Align align = Align::kLeft;
  };

  explicit Table(std::vector<Column> columns);

  // What a terminal would obey is spelled out in the cells.
  void add(std::vector<std::string> cells);
  // A line between the rows so far and those that follow.
  void rule() { rows_.emplace_back(); }
  std::string text() const;
  // As Markdown has tables; rules are left out.
  std::string markdown() const;
  // As HTML has them: <table class="data"> with a head and a body, rules left out.
  std::string html() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace onetap::tool
