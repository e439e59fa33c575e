// Where values lie when steps run row by row: a value that is read soon after it is made keeps a few of its rows, and a
// result takes the place of what it was made from as soon as those rows are read. For machines whose memory is small.
#pragma once

#include "onetap/graph/graph.h"

#include <cstdint>
#include <vector>

namespace onetap {

// Rows of an input that a row of the result reads, both included; none where first > last.
struct RowSpan {
  int64_t first = 0, last = -1;
};

// What row `row` of a node's result reads of each input. Vectors are one row. kFailure for an op without a rule.
RowSpan rows_read(const Graph& graph, const Node& node, int64_t row);

struct RowValue {
  int64_t rows = 1;
  int64_t row_bytes = 0;
  int64_t bytes() const { return rows * row_bytes; }
};

struct RowRead {
  int value = 0;
  std::vector<RowSpan> spans;  // per row of the result
  // The result may overwrite what it reads, if it lies at the same place: sums, ReLUs, a convolution's addend.
  bool same_place = false;
};

// Computes its output's rows in order, from the first.
struct RowStep {
  std::vector<RowRead> reads;
  int output = 0;
};

struct RowProgram {
  std::vector<RowValue> values;
  std::vector<RowStep> steps;  // each reads what those before it make

  int64_t rows(const RowStep& step) const { return values[static_cast<size_t>(step.output)].rows; }
};

enum class RowMode {
  kLayers,  // a step runs to its end before the next begins
  kRows,    // steps of a group take turns, row by row
};

struct RowPlacement {
  int64_t offset = 0;  // bytes into the arena
  int64_t rows = 1;    // rows that are kept: row y lies at offset + y % rows * row_bytes
};

struct RowPlan {
  std::vector<RowPlacement> values;
  std::vector<int> schedule;  // steps: the k-th time that one stands here it computes its row k
  int64_t arena_bytes = 0;
  int peak = 0;  // the step that makes the largest of the values that lie together where most memory is in use
};

// Row sizes must be multiples of the alignment. Groups of steps are chosen for the least memory.
RowPlan plan_rows(const RowProgram& program, RowMode mode);

}  // namespace onetap
