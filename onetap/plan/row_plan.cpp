#include "onetap/plan/row_plan.h"

#include "onetap/base/fail.h"
#include "onetap/base/random.h"
#include "onetap/graph/op.h"
#include "onetap/graph/shift.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

namespace onetap {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
constexpr int kLongestGroup = 64;  // steps; longer ones save nothing and take long to try

// How the result `made` of a group may lie over the value `gone`, which nobody reads after the group.
struct Overlay {
  int made = 0, gone = 0;
  bool in_place = false;       // at the same offset
  std::optional<int64_t> lag;  // or so many bytes in front of it, or more
};

// One group of steps and what its values need.
struct Group {
  int first = 0, last = 0;  // steps
  std::vector<int> schedule;
  std::map<int, int64_t> kept_rows;  // of values that are made and read in the group alone
  std::vector<Overlay> overlays;
  int64_t bytes = 0;  // of all values in use
};

class RowPlanner {
 public:
  RowPlanner(const RowProgram& program, RowMode mode) : program_(program), mode_(mode) {
    made_by_.assign(program.values.size(), -1);
    last_reader_.assign(program.values.size(), -1);
    for (int s = 0; s < steps(); ++s) {
      made_by_[at(step(s).output)] = s;
      last_reader_[at(step(s).output)] = s;
      for (const RowRead& read : step(s).reads) last_reader_[at(read.value)] = s;
    }
  }

  RowPlan plan() {
    choose_groups();
    place();
    return std::move(result_);
  }

 private:
  static size_t at(int index) { return static_cast<size_t>(index); }
  int steps() const { return static_cast<int>(program_.steps.size()); }
  const RowStep& step(int s) const { return program_.steps[at(s)]; }
  const RowValue& value(int v) const { return program_.values[at(v)]; }
  int values() const { return static_cast<int>(program_.values.size()); }

  static size_t group_steps(const Group& group) { return at(group.last - group.first + 1); }

  bool is_inside(const Group& group, int v) const {
    return made_by_[at(v)] >= group.first && made_by_[at(v)] <= group.last && last_reader_[at(v)] <= group.last;
  }

  // The partition of the steps into groups whose largest need is least; of equals, that with the shortest groups.
  void choose_groups() {
    if (mode_ == RowMode::kLayers) {
      for (int s = 0; s < steps(); ++s) groups_.push_back(make_group(s, s));
      return;
    }
    std::vector<int64_t> least(at(steps()) + 1, kNever);
    std::vector<int> begin(at(steps()) + 1, 0);
    least[0] = 0;
    for (int end = 1; end <= steps(); ++end) {
      for (int first = end - 1; first >= std::max(0, end - kLongestGroup); --first) {
        if (least[at(first)] >= least[at(end)]) continue;  // it cannot be less
        const int64_t need = std::max(least[at(first)], make_group(first, end - 1).bytes);
        if (need >= least[at(end)]) continue;
        least[at(end)] = need;
        begin[at(end)] = first;
      }
    }
    for (int end = steps(); end > 0; end = begin[at(end)]) groups_.push_back(make_group(begin[at(end)], end - 1));
    std::reverse(groups_.begin(), groups_.end());
  }

  Group make_group(int first, int last) const {
    Group group;
    group.first = first;
    group.last = last;
    schedule(group);
    keep_rows(group);
    find_overlays(group);
    count_bytes(group);
    return group;
  }

  // Rows of the last step, each as soon as what it reads is there.
  void schedule(Group& group) const {
    std::vector<int64_t> next(group_steps(group), 0);
    run_rows(group, group.last, program_.rows(step(group.last)), next);
    for (int s = group.first; s <= group.last; ++s) {
      if (!is_inside(group, step(s).output)) run_rows(group, s, program_.rows(step(s)), next);
    }
  }

  void run_rows(Group& group, int s, int64_t end, std::vector<int64_t>& next) const {
    int64_t& row = next[at(s - group.first)];
    for (; row < end; ++row) {
      for (const RowRead& read : step(s).reads) {
        const int maker = made_by_[at(read.value)];
        if (maker >= group.first) run_rows(group, maker, read.spans[static_cast<size_t>(row)].last + 1, next);
      }
      group.schedule.push_back(s);
    }
  }

  // Calls `each(time, step, row)` in order.
  template <typename Each>
  void for_each_row(const Group& group, const Each& each) const {
    std::vector<int64_t> next(group_steps(group), 0);
    for (size_t time = 0; time < group.schedule.size(); ++time) {
      const int s = group.schedule[time];
      each(static_cast<int64_t>(time), s, next[at(s - group.first)]++);
    }
  }

  // A value that stays inside keeps the rows from the first that is still read to the newest.
  void keep_rows(Group& group) const {
    std::map<int, std::vector<int64_t>> last_read;
    for (int s = group.first; s <= group.last; ++s) {
      const int v = step(s).output;
      if (is_inside(group, v)) last_read[v].assign(static_cast<size_t>(value(v).rows), -1);
    }
    for_each_row(group, [&](int64_t time, int s, int64_t row) {
      for (const RowRead& read : step(s).reads) {
        const auto found = last_read.find(read.value);
        if (found == last_read.end()) continue;
        const RowSpan span = read.spans[static_cast<size_t>(row)];
        for (int64_t y = span.first; y <= span.last; ++y) found->second[static_cast<size_t>(y)] = time;
      }
    });
    std::map<int, int64_t> oldest;
    for_each_row(group, [&](int64_t time, int s, int64_t row) {
      const int v = step(s).output;
      const auto found = last_read.find(v);
      if (found == last_read.end()) return;
      int64_t& low = oldest[v];
      while (low < row && found->second[static_cast<size_t>(low)] <= time) ++low;
      int64_t& kept = group.kept_rows[v];
      kept = std::max(kept, row - low + 1);
    });
  }

  void find_overlays(Group& group) const {
    for (int v = 0; v < values(); ++v) {
      if (made_by_[at(v)] >= group.first || last_reader_[at(v)] < group.first || last_reader_[at(v)] > group.last)
        continue;
      for (int s = group.first; s <= group.last; ++s) {
        if (is_inside(group, step(s).output)) continue;
        const Overlay overlay = overlay_of(group, step(s).output, v);
        if (overlay.in_place || overlay.lag) group.overlays.push_back(overlay);
      }
    }
  }

  Overlay overlay_of(const Group& group, int made, int gone) const {
    // The first row of `gone` that is read at a time: at all, and other than at the place of the row that is written.
    const size_t times = group.schedule.size();
    std::vector<int64_t> read(times + 1, kNever), moved(times, kNever), written(times, -1);
    for_each_row(group, [&](int64_t time, int s, int64_t row) {
      const auto t = static_cast<size_t>(time);
      if (step(s).output == made) written[t] = row;
      for (const RowRead& reading : step(s).reads) {
        const RowSpan span = reading.spans[static_cast<size_t>(row)];
        if (reading.value != gone || span.first > span.last) continue;
        read[t] = std::min(read[t], span.first);
        if (!reading.same_place || span.first != row) moved[t] = std::min(moved[t], span.first);
      }
    });
    Overlay overlay{made, gone, value(made).row_bytes == value(gone).row_bytes, 0};
    int64_t later = kNever;  // first row that is read after t
    for (size_t t = times; t-- > 0;) {
      if (written[t] >= 0) {
        if (std::min(later, moved[t]) <= written[t]) overlay.in_place = false;
        const int64_t low = std::min(later, read[t]);
        if (low != kNever) {
          const int64_t end = (written[t] + 1) * value(made).row_bytes;
          overlay.lag = std::max(*overlay.lag, end - low * value(gone).row_bytes);
        }
      }
      later = std::min(later, read[t]);
    }
    if (mode_ == RowMode::kLayers) overlay.lag.reset();
    return overlay;
  }

  // Bytes of a value while this group runs.
  int64_t bytes_in(const Group& group, int v) const {
    const auto kept = group.kept_rows.find(v);
    return kept == group.kept_rows.end() ? value(v).bytes() : kept->second * value(v).row_bytes;
  }

  bool is_used(const Group& group, int v) const {
    return made_by_[at(v)] <= group.last && last_reader_[at(v)] >= group.first;
  }

  void count_bytes(Group& group) const {
    std::vector<bool> shared(program_.values.size(), false);
    for (int v = 0; v < values(); ++v) {
      if (is_used(group, v)) group.bytes += bytes_in(group, v);
    }
    for (const Overlay& overlay : group.overlays) {
      if (shared[at(overlay.made)] || shared[at(overlay.gone)]) continue;
      const int64_t made = value(overlay.made).bytes(), gone = value(overlay.gone).bytes();
      int64_t saved = overlay.in_place ? std::min(made, gone) : 0;
      if (overlay.lag) saved = std::max(saved, made + gone - (std::max(gone, made - *overlay.lag) + *overlay.lag));
      if (saved <= 0) continue;
      group.bytes -= saved;
      shared[at(overlay.made)] = shared[at(overlay.gone)] = true;
    }
  }

  // --- places -------------------------------------------------------------------------------------------------------

  struct Item {
    int64_t bytes = 0;
    int first = 0, last = 0;  // groups
    int64_t offset = 0;
  };

  void place() {
    items_.assign(program_.values.size(), {});
    result_.values.assign(program_.values.size(), {});
    for (int v = 0; v < values(); ++v) {
      items_[at(v)].first = static_cast<int>(groups_.size());
      items_[at(v)].last = -1;
      result_.values[at(v)].rows = value(v).rows;
    }
    int64_t most = 0;
    for (size_t g = 0; g < groups_.size(); ++g) {
      const Group& group = groups_[g];
      result_.schedule.insert(result_.schedule.end(), group.schedule.begin(), group.schedule.end());
      for (int v = 0; v < values(); ++v) {
        if (!is_used(group, v)) continue;
        Item& item = items_[at(v)];
        item.first = std::min(item.first, static_cast<int>(g));
        item.last = std::max(item.last, static_cast<int>(g));
        item.bytes = bytes_in(group, v);
      }
      for (const auto& [v, rows] : group.kept_rows) result_.values[at(v)].rows = rows;
      for (const Overlay& overlay : group.overlays) overlays_[{overlay.made, overlay.gone}] = overlay;
      if (group.bytes > most) {
        most = group.bytes;
        result_.peak = largest_in(group);
      }
    }
    search_order(most);
    for (int v = 0; v < values(); ++v) result_.values[at(v)].offset = items_[at(v)].offset;
  }

  int largest_in(const Group& group) const {
    int found = group.last;
    int64_t largest = -1;
    for (int v = 0; v < values(); ++v) {
      if (!is_used(group, v) || made_by_[at(v)] < 0 || bytes_in(group, v) <= largest) continue;
      largest = bytes_in(group, v);
      found = made_by_[at(v)];
    }
    return found;
  }

  // Values one after the other as low as they fit, in several orders: by size, by time, and with pairs exchanged as
  // long as that finds less. No order takes less than `bound`.
  void search_order(int64_t bound) {
    std::vector<int> order(program_.values.size());
    std::iota(order.begin(), order.end(), 0);
    std::vector<int> by_size = order;
    std::stable_sort(by_size.begin(), by_size.end(),
                     [&](int a, int b) { return items_[at(a)].bytes > items_[at(b)].bytes; });
    int64_t best = place_in(order);
    if (const int64_t total = place_in(by_size); total < best) {
      best = total;
      order = by_size;
    }
    constexpr int kExchanges = 300;
    Random random(1, Purpose::kShuffle);
    for (int i = 0; i < kExchanges && best > bound && order.size() > 1; ++i) {
      const auto a = static_cast<size_t>(random.below(static_cast<uint32_t>(order.size()))),
                 b = static_cast<size_t>(random.below(static_cast<uint32_t>(order.size())));
      std::swap(order[a], order[b]);
      const int64_t total = place_in(order);
      if (total <= best) {
        best = total;
      } else {
        std::swap(order[a], order[b]);
      }
    }
    result_.arena_bytes = place_in(order);
  }

  int64_t place_in(const std::vector<int>& order) {
    std::vector<int> placed;
    int64_t total = 0;
    for (const int v : order) {
      Item& item = items_[at(v)];
      item.offset = 0;
      if (item.bytes == 0) continue;
      std::vector<int> others;  // in use at the same time
      std::vector<int64_t> candidates = {0};
      for (const int other : placed) {
        const Item& there = items_[at(other)];
        if (there.last < item.first || item.last < there.first) continue;
        others.push_back(other);
        candidates.push_back(there.offset + there.bytes);
        candidates.push_back(there.offset);
        if (const Overlay* overlay = find_overlay(v, other); overlay != nullptr && overlay->lag) {
          candidates.push_back(there.offset - *overlay->lag);
        }
        if (const Overlay* overlay = find_overlay(other, v); overlay != nullptr && overlay->lag) {
          candidates.push_back(there.offset + *overlay->lag);
        }
      }
      std::sort(candidates.begin(), candidates.end());
      for (const int64_t candidate : candidates) {
        item.offset = candidate;
        if (candidate >= 0 && std::all_of(others.begin(), others.end(), [&](int other) { return may_lie(v, other); }))
          break;
      }
      placed.push_back(v);
      total = std::max(total, item.offset + item.bytes);
    }
    return total;
  }

  const Overlay* find_overlay(int made, int gone) const {
    const auto found = overlays_.find({made, gone});
    return found == overlays_.end() ? nullptr : &found->second;
  }

  bool may_lie(int a, int b) const {
    const Item &one = items_[at(a)], &other = items_[at(b)];
    if (one.offset + one.bytes <= other.offset || other.offset + other.bytes <= one.offset) return true;
    const auto overlaid = [](const Overlay* overlay, const Item& made, const Item& gone) {
      if (overlay == nullptr) return false;
      if (overlay->in_place && made.offset == gone.offset) return true;
      return overlay->lag && made.offset + *overlay->lag <= gone.offset;
    };
    return overlaid(find_overlay(a, b), one, other) || overlaid(find_overlay(b, a), other, one);
  }

  const RowProgram& program_;
  const RowMode mode_;
  std::vector<int> made_by_, last_reader_;  // steps, per value; -1: none
  std::vector<Group> groups_;
  std::vector<Item> items_;
  std::map<std::pair<int, int>, Overlay> overlays_;
  RowPlan result_;
};

int64_t height(const Node& node) {
  return node.shape.size() == 3 ? node.shape[1] : 1;
}

RowSpan clipped(int64_t first, int64_t last, int64_t rows) {
  return {std::max<int64_t>(first, 0), std::min(last, rows - 1)};
}

}  // namespace

RowSpan rows_read(const Graph& graph, const Node& node, int64_t row) {
  const int64_t rows = height(graph.source(node));
  switch (node.op) {
    case Op::kConv:
    case Op::kTapConv:
    case Op::kAvgPool:
    case Op::kMaxPool: {
      const int64_t first = row * node.stride.h - node.padding.h;
      return clipped(first, first + (node.kernel.h - 1) * node.dilation.h, rows);
    }
    case Op::kShift: {
      const int64_t reach = node.kernel.h / 2 * node.dilation.h;
      return clipped(row - reach, row + reach, rows);
    }
    case Op::kSubsample:
      return {row * node.stride.h, row * node.stride.h};
    case Op::kRelu:
    case Op::kRelu6:
    case Op::kAffine:
    case Op::kAdd:
    case Op::kConcat:
      return {row, row};
    case Op::kLinear:
    case Op::kFlatten:
    case Op::kGlobalAvgPool:
    case Op::kActiveShift:
      return {0, rows - 1};
    default:
      fail("[plan] expected an op that is computed by rows, got {} ('{}')", op_info(node.op).name, node.name);
  }
}

RowPlan plan_rows(const RowProgram& program, RowMode mode) {
  return RowPlanner(program, mode).plan();
}

}  // namespace onetap
