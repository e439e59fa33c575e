#include "onetap/plan/row_plan.h"

#include "onetap/base/random.h"
#include "tests/support/support.h"

#include <algorithm>
#include <map>

namespace onetap {
namespace {

// Rows r - 1 to r + 1: a 3x3 convolution with padding.
RowRead window(int value, int64_t rows, int64_t stride = 1) {
  RowRead read;
  read.value = value;
  const int64_t in_rows = rows * stride;
  for (int64_t r = 0; r < rows; ++r) {
    read.spans.push_back({std::max<int64_t>(0, r * stride - 1), std::min(in_rows - 1, r * stride + 1)});
  }
  return read;
}

RowRead same(int value, int64_t rows) {
  RowRead read;
  read.value = value;
  read.same_place = true;
  for (int64_t r = 0; r < rows; ++r) read.spans.push_back({r, r});
  return read;
}

// What a machine would do: every read must find the row that was written, wherever other rows went.
void expect_rows_survive(const RowProgram& program, const RowPlan& plan, const std::string& what) {
  std::map<int64_t, std::pair<int, int64_t>> memory;  // byte: value and row that wrote it last
  std::vector<int64_t> next(program.steps.size(), 0);
  for (const int s : plan.schedule) {
    const RowStep& step = program.steps[static_cast<size_t>(s)];
    const int64_t row = next[static_cast<size_t>(s)]++;
    const auto begin = [&](int value, int64_t y) {
      const RowPlacement& place = plan.values[static_cast<size_t>(value)];
      return place.offset + y % place.rows * program.values[static_cast<size_t>(value)].row_bytes;
    };
    const auto check = [&](int value, int64_t y) {
      for (int64_t b = 0; b < program.values[static_cast<size_t>(value)].row_bytes; ++b) {
        const auto found = memory.find(begin(value, y) + b);
        ASSERT_TRUE(found != memory.end() && found->second == std::pair(value, y))
            << what << ": row " << y << " of " << value;
      }
    };
    for (const RowRead& read : step.reads) {
      const RowSpan span = read.spans[static_cast<size_t>(row)];
      for (int64_t y = span.first; y <= span.last; ++y) check(read.value, y);
    }
    const int64_t bytes = program.values[static_cast<size_t>(step.output)].row_bytes;
    for (int64_t b = 0; b < bytes; ++b) memory[begin(step.output, row) + b] = {step.output, row};
    ASSERT_LE(begin(step.output, row) + bytes, plan.arena_bytes) << what;
    // While a row is written, what the step reads must still be there, but for what may be overwritten at its place.
    for (const RowRead& read : step.reads) {
      const RowSpan span = read.spans[static_cast<size_t>(row)];
      for (int64_t y = span.first; y <= span.last; ++y) {
        const bool replaced = read.same_place && y == row && begin(read.value, y) == begin(step.output, row);
        if (!replaced) check(read.value, y);
      }
    }
  }
}

// x, then t = conv(x), y = conv(t) + x: planes of 32 rows of 512 bytes.
RowProgram residual_block() {
  RowProgram program;
  program.values.assign(4, {32, 512});
  program.values[3] = {32, 0};  // the caller's
  program.steps = {{{}, 0}, {{window(0, 32)}, 1}, {{window(1, 32), same(0, 32)}, 2}, {{same(2, 32)}, 3}};
  return program;
}

TEST(RowPlan, LayerByLayerAResidualBlockTakesTwoValues) {
  const RowProgram program = residual_block();
  const RowPlan plan = plan_rows(program, RowMode::kLayers);
  EXPECT_EQ(plan.arena_bytes, 2 * 32 * 512);  // the sum lies over x
  EXPECT_EQ(plan.values[2].offset, plan.values[0].offset);
  EXPECT_EQ(plan.schedule.size(), 4u * 32);
  expect_rows_survive(program, plan, "layers");
}

TEST(RowPlan, RowByRowEveryValueOfABlockIsAFewRows) {
  const RowProgram program = residual_block();
  const RowPlan plan = plan_rows(program, RowMode::kRows);
  // Reading, both convolutions and writing take turns: of x the rows r to r + 2, of t r - 1 to r + 1, of y one.
  EXPECT_EQ(plan.arena_bytes, (3 + 3 + 1) * 512);
  expect_rows_survive(program, plan, "rows");
}

TEST(RowPlan, AResultLiesInFrontOfWhatItIsMadeFrom) {
  // x is whole before the convolution begins, as the mean that is made first reads all of it; so is y.
  RowProgram program;
  program.values = {{32, 512}, {1, 4}, {32, 512}, {1, 0}};
  RowRead all;
  all.spans = {{0, 31}};
  RowRead first = all, second = all;
  first.value = 0;
  second.value = 2;
  RowRead bias;  // every row reads the mean
  bias.value = 1;
  bias.spans.assign(32, {0, 0});
  program.steps = {{{}, 0}, {{first}, 1}, {{window(0, 32), bias}, 2}, {{second}, 3}};
  // Row r reads rows r - 1 to r + 1: the result begins two rows in front.
  EXPECT_EQ(plan_rows(program, RowMode::kRows).arena_bytes, (32 + 2) * 512 + 4);
  EXPECT_EQ(plan_rows(program, RowMode::kLayers).arena_bytes, 2 * 32 * 512 + 4);
  expect_rows_survive(program, plan_rows(program, RowMode::kRows), "in front");
}

TEST(RowPlan, NoRowIsLostInRandomPrograms) {
  for (uint64_t seed = 0; seed < testing::sweep_cases(60); ++seed) {
    Random random(seed, Purpose::kTest, 7);
    RowProgram program;
    program.values = {{16, 4 * (1 + static_cast<int64_t>(random.below(4)))}};
    program.steps = {{{}, 0}};
    const int count = 2 + static_cast<int>(random.below(7));
    for (int i = 0; i < count; ++i) {
      const int from = static_cast<int>(random.below(static_cast<uint32_t>(program.values.size())));
      const int64_t rows = program.values[static_cast<size_t>(from)].rows;
      const int64_t stride = rows % 2 == 0 && random.below(4) == 0 ? 2 : 1;
      RowStep step;
      step.reads.push_back(window(from, rows / stride, stride));
      int64_t row_bytes = 4 * (1 + static_cast<int64_t>(random.below(4)));
      for (int other = 0; other < static_cast<int>(program.values.size()); ++other) {
        const RowValue& addend = program.values[static_cast<size_t>(other)];
        if (other == from || addend.rows != rows / stride || random.coin()) continue;
        step.reads.push_back(same(other, addend.rows));
        row_bytes = addend.row_bytes;
        break;
      }
      step.output = static_cast<int>(program.values.size());
      program.values.push_back({rows / stride, row_bytes});
      program.steps.push_back(std::move(step));
    }
    for (const RowMode mode : {RowMode::kLayers, RowMode::kRows}) {
      const RowPlan plan = plan_rows(program, mode);
      expect_rows_survive(program, plan, "seed " + std::to_string(seed));
      if (mode == RowMode::kRows) {
        EXPECT_LE(plan.arena_bytes, plan_rows(program, RowMode::kLayers).arena_bytes) << seed;
      }
    }
  }
}

}  // namespace
}  // namespace onetap
