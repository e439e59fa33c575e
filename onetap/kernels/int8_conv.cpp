#include "onetap/kernels/int8_conv.h"

#include "onetap/base/fail.h"
#include "onetap/kernels/pieces.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace onetap {
namespace {

// Streams of so many outputs at a time go over all pixels: they stay in the second cache.
constexpr int64_t kStreamBytes = 256 << 10;

// An expanded input that is larger leaves every cache.
constexpr int64_t kMostExpanded = 16 << 20;

constexpr int64_t kRowOfCopy = 24;

bool is_within_border(const ConvShape& shape, const QuadLayout& layout) {
  return shape.padding_h <= layout.border_h && shape.padding_w <= layout.border_w;
}

// For a few of them: std::memset takes longer to begin.
void fill_pixels(uint8_t* to, int64_t pixels, uint8_t byte) {
  const uint8_t pixel[kQuad] = {byte, byte, byte, byte};
  for (int64_t i = 0; i < pixels; ++i) std::memcpy(to + i * kQuad, pixel, kQuad);
}

int chunk_kind(int outputs) {
  return outputs == 4 ? 2 : outputs - 1;
}

}  // namespace

Int8ConvPlan::Int8ConvPlan(const ConvShape& shape, const Int8ConvWeights& weights, const Int8Epilogue& epilogue,
                           const Int8ConvLayouts& layouts, bool dense, const KernelSet& kernels)
    : shape_(shape), layouts_(layouts), kernels_(&kernels), dense_(dense || shape.taps == 0) {
  choose_source();
  choose_outputs(weights);
  read_strides(weights);
  if (is_expanded()) {
    expanded_at_ = scratch_bytes_;
    scratch_bytes_ += layouts_.x.quads() * kQuad * source_quad_ + QuadLayout::kReadBehind;
  }
  const int64_t most = std::numeric_limits<int32_t>::max();
  if (std::max({layouts.x.bytes(), layouts.y.bytes(), scratch_bytes_}) > most) {
    fail_usage("[kernels] expected values of at most {} bytes, got more (int8)", most);
  }
  make_units();
  vectors_ = kernels_->int8->most_vectors(source_, outputs_);
  write_streams(weights);
  write_outputs(weights, epilogue);
}

void Int8ConvPlan::read_as_it_lies() {
  const QuadLayout& x = layouts_.x;
  source_pitch_ = x.pitch();
  source_quad_ = x.quad_bytes();
  source_first_ = x.pixel(-shape_.padding_h, -shape_.padding_w);
}

void Int8ConvPlan::choose_source() {
  const QuadLayout& x = layouts_.x;
  const ConvShape& s = shape_;
  if (s.stride_h == 1 && s.stride_w == 1 && is_within_border(s, x)) return read_as_it_lies();
  for (int64_t row = 0; row < std::min(s.stride_h, (s.kernel_h - 1) * s.dilation_h + 1); ++row) {
    for (int64_t column = 0; column < std::min(s.stride_w, (s.kernel_w - 1) * s.dilation_w + 1); ++column) {
      const auto is_of = [&](int64_t kernel, int64_t dilation, int64_t stride, int64_t rest) {
        for (int64_t k = 0; k < kernel; ++k) {
          if (k * dilation % stride == rest) return true;
        }
        return false;
      };
      if (is_of(s.kernel_h, s.dilation_h, s.stride_h, row) && is_of(s.kernel_w, s.dilation_w, s.stride_w, column)) {
        parts_.push_back({row, column});
      }
    }
  }
  source_pitch_ = s.out_w() + (s.kernel_w - 1) * s.dilation_w / s.stride_w;
  part_rows_ = s.out_h() + (s.kernel_h - 1) * s.dilation_h / s.stride_h;
  source_quad_ = static_cast<int64_t>(parts_.size()) * part_rows_ * source_pitch_ * kQuad;
  scratch_bytes_ = x.quads() * source_quad_ + QuadLayout::kReadBehind;
}

// A copy takes about as long for a row of one of its parts as kRowOfCopy more loads and the choice of their pixels.
void Int8ConvPlan::read_strides(const Int8ConvWeights& weights) {
  const ConvShape& s = shape_;
  const Int8Kernels& kernels = *kernels_->int8;
  if (s.stride_h != 2 || s.stride_w != 2 || source_ != Int8Source::kQuads || !is_within_border(s, layouts_.x) ||
      kernels.most_vectors(Int8Source::kStrided, outputs_) == 0) {
    return;
  }
  const int64_t loads = count_entries(weights, source_, outputs_) * pieces_of(s.out_h() * s.out_w(), kernels.lanes);
  const int64_t rows = layouts_.x.quads() * static_cast<int64_t>(parts_.size()) * part_rows_;
  if (loads > kRowOfCopy * rows) return;
  source_ = Int8Source::kStrided;
  parts_.clear();
  scratch_bytes_ = 0;
  read_as_it_lies();
}

int64_t Int8ConvPlan::tap_offset(int64_t position) const {
  const ConvShape& s = shape_;
  const int64_t row = position / s.kernel_w * s.dilation_h, column = position % s.kernel_w * s.dilation_w;
  if (!is_apart()) return (row * source_pitch_ + column) * kQuad;
  int64_t part = 0;
  while (parts_[static_cast<size_t>(part)].row != row % s.stride_h ||
         parts_[static_cast<size_t>(part)].column != column % s.stride_w) {
    ++part;
  }
  return ((part * part_rows_ + row / s.stride_h) * source_pitch_ + column / s.stride_w) * kQuad;
}

// Vectors over rows, each row with a rest; or over the plane with its gaps, where those are the same in input and
// result: what is fewer. Rows of half a vector, two at a time, where there are kernels for it.
void Int8ConvPlan::make_units() {
  const int64_t lanes = kernels_->int8->lanes, rows = shape_.out_h(), columns = shape_.out_w();
  const QuadLayout& y = layouts_.y;
  if (!is_expanded() && kernels_->int8->most_vectors(Int8Source::kTwoRows, outputs_) > 0 && 2 * columns == lanes &&
      rows % 2 == 0 && !gives_floats()) {
    for (int64_t row = 0; row < rows; row += 2) {
      add_unit(source_first_ + row * step() * source_pitch_ * kQuad, y.pixel(row, 0), lanes, {});
    }
    source_ = is_strided(source_) ? Int8Source::kStridedTwoRows : Int8Source::kTwoRows;
    return;
  }
  const int64_t run = (rows - 1) * source_pitch_ + columns;
  const bool in_runs = !gives_floats() && step() == 1 && source_pitch_ == y.pitch() &&
                       pieces_of(run, lanes) < rows * pieces_of(columns, lanes);
  if (!in_runs) {
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = 0; column < columns; column += lanes) {
        add_unit(source_first_ + (row * source_pitch_ + column) * step() * kQuad,
                 gives_floats() ? row * columns + column : y.pixel(row, column), std::min(lanes, columns - column), {});
      }
    }
    return;
  }
  for (int64_t first = 0; first < run; first += lanes) {
    std::vector<uint8_t> mask;
    bool has_gap = false;
    for (int64_t i = first; i < first + lanes; ++i) {
      const bool is_pixel = i % source_pitch_ < columns;
      mask.insert(mask.end(), kQuad, is_pixel ? 0xFF : 0);
      has_gap = has_gap || (!is_pixel && i < run);
    }
    add_unit(source_first_ + first * kQuad, y.pixel(0, 0) + first * kQuad, std::min(lanes, run - first),
             has_gap ? mask : std::vector<uint8_t>());
  }
}

void Int8ConvPlan::add_unit(int64_t x, int64_t y, int64_t pixels, const std::vector<uint8_t>& mask) {
  Int8Unit unit;
  unit.x = static_cast<int32_t>(x);
  unit.y = static_cast<int32_t>(y);
  unit.pixels = static_cast<int32_t>(pixels);
  if (!mask.empty()) {
    const auto bytes = static_cast<std::ptrdiff_t>(mask.size());
    const auto known = static_cast<std::ptrdiff_t>(masks_.size()) / bytes;
    std::ptrdiff_t at = 0;
    while (at < known && !std::equal(mask.begin(), mask.end(), masks_.begin() + at * bytes)) ++at;
    if (at == known) masks_.insert(masks_.end(), mask.begin(), mask.end());
    unit.mask = static_cast<int32_t>(at);
  }
  units_.push_back(unit);
}

// Calls visit(input, position, weight) for all that an output keeps.
template <typename Visit>
void Int8ConvPlan::visit_weights(const Int8ConvWeights& weights, int64_t output, Visit&& visit) const {
  const int64_t inputs = shape_.in_per_group(), taps = shape_.taps_per_slice();
  const int64_t first = output / shape_.out_per_group() * inputs;
  const TapLayout layout = shape_.layout();
  for (int64_t c = 0; c < inputs; ++c) {
    const int8_t* slice = weights.weight + (output * inputs + c) * taps;
    const uint16_t* codes = shape_.taps > 0 ? weights.positions + layout.first_code(output, c) : nullptr;
    for (int64_t k = 0; k < taps; ++k) {
      if (codes != nullptr && codes[k] == layout.none()) continue;
      visit(first + c, codes != nullptr ? codes[k] : k, slice[k]);
    }
  }
}

// What a chunk of outputs reads: entries by group of inputs (a quad, or a pair) and position.
struct Int8ConvPlan::Chunk {
  int64_t grouped;  // inputs of an entry
  int64_t first_input = 0;
  std::vector<int32_t> entry;  // by quad, or by input of a pair, and position: -1 where nothing is read
  int32_t entries = 0;

  Chunk(const Int8ConvPlan& plan, const Int8ConvWeights& weights, Int8Source source, int64_t first, int64_t count)
      : grouped(source == Int8Source::kPairs ? 2 : kQuad),
        area_(plan.shape_.area()),
        in_slot_(source == Int8Source::kPairs ? 1 : kQuad) {
    const ConvShape& s = plan.shape_;
    const int64_t last = std::min(first + count, s.out) - 1;
    const int64_t last_group = last / s.out_per_group();
    first_input = first / s.out_per_group() * s.in_per_group() / grouped * grouped;
    const int64_t inputs = pieces_of((last_group + 1) * s.in_per_group(), grouped) * grouped - first_input;
    entry.assign(static_cast<size_t>(inputs / in_slot_ * area_), plan.dense_ ? 0 : -1);
    for (int64_t d = first; d <= last && !plan.dense_; ++d) {
      plan.visit_weights(weights, d, [&](int64_t c, int64_t position, int8_t) { at(c, position) = 0; });
    }
    if (source == Int8Source::kPairs) {
      number_pairs();
      return;
    }
    for (int32_t& slot : entry) {
      if (slot == 0) slot = entries++;
    }
  }

  int32_t& at(int64_t input, int64_t position) {
    return entry[static_cast<size_t>((input - first_input) / in_slot_ * area_ + position)];
  }

 private:
  // The k-th position of an input and the k-th of its partner are one entry.
  void number_pairs() {
    const auto area = static_cast<size_t>(area_);
    for (size_t pair = 0; pair < entry.size(); pair += 2 * area) {
      int32_t next[2] = {entries, entries};
      for (size_t i = 0; i < 2 * area; ++i) {
        if (entry[pair + i] == 0) entry[pair + i] = next[i / area]++;
      }
      entries = std::max(next[0], next[1]);
    }
  }

  int64_t area_, in_slot_;
};

int64_t Int8ConvPlan::count_entries(const Int8ConvWeights& weights, Int8Source source, int outputs) const {
  int64_t entries = 0;
  for (int64_t d = 0; d < shape_.out; d += outputs) entries += Chunk(*this, weights, source, d, outputs).entries;
  return entries;
}

void Int8ConvPlan::choose_outputs(const Int8ConvWeights& weights) {
  if (dense_ && shape_.groups == 1) return;
  const Int8Kernels& kernels = *kernels_->int8;
  double least = std::numeric_limits<double>::infinity();
  for (const Int8Source source : {Int8Source::kQuads, Int8Source::kPairs}) {
    const bool in_pairs = source == Int8Source::kPairs;
    if (in_pairs && (dense_ || layouts_.x.quads() * kQuad * source_quad_ > kMostExpanded)) continue;
    const double* cost = kernels.cost[static_cast<int>(source)];
    for (const int outputs : {4, 2, 1}) {
      if (kernels.most_vectors(source, outputs) == 0) continue;
      const double all = static_cast<double>(count_entries(weights, source, outputs)) * cost[chunk_kind(outputs)];
      if (all >= least) continue;
      least = all;
      outputs_ = outputs;
      source_ = source;
    }
  }
}

void Int8ConvPlan::write_streams(const Int8ConvWeights& weights) {
  const int words = words_per_output();
  const int64_t chunks = layouts_.y.quads() * kQuad / outputs_;
  weight_words_ = count_entries(weights, source_, outputs_) * outputs_ * words;
  weights_ = aligned_array<int32_t>(weight_words_);
  std::memset(weights_.get(), 0, static_cast<size_t>(weight_words_) * sizeof(int32_t));
  from_.push_back(0);
  for (int64_t k = 0; k < chunks; ++k) {
    const int64_t first = k * outputs_;
    if (first >= shape_.out) {  // a quad's channels that are none
      from_.push_back(from_.back());
      continue;
    }
    Chunk chunk(*this, weights, source_, first, outputs_);
    write_offsets(chunk);
    int32_t* stream = weights_.get() + int64_t{from_.back()} * outputs_ * words;
    for (int64_t r = 0; r < outputs_ && first + r < shape_.out; ++r) {
      visit_weights(weights, first + r, [&](int64_t c, int64_t position, int8_t weight) {
        const int64_t entry = chunk.at(c, position), channel = c % chunk.grouped;
        int32_t* to = stream + (entry * outputs_ + r) * words;
        if (is_expanded()) {
          reinterpret_cast<int16_t*>(to)[channel] = weight;
        } else if (words == 1) {
          reinterpret_cast<int8_t*>(to)[channel] = weight;
        } else {
          reinterpret_cast<int16_t*>(to + channel % 2)[channel / 2] = weight;
        }
        ++kept_weights_;
      });
    }
    from_.push_back(from_.back() + chunk.entries);
  }
  if (dense_) kept_weights_ = shape_.out * shape_.in_per_group() * shape_.area();
}

void Int8ConvPlan::write_offsets(const Chunk& chunk) {
  const int per_entry = offsets_per_entry();
  const size_t begin = offsets_.size();
  offsets_.resize(begin + static_cast<size_t>(chunk.entries) * static_cast<size_t>(per_entry), -1);
  for (size_t i = 0; i < chunk.entry.size(); ++i) {
    if (chunk.entry[i] < 0) continue;
    const auto place = static_cast<int64_t>(i);
    // A quad of the input, or a channel of the expanded one.
    const int64_t plane = chunk.first_input / (is_expanded() ? 1 : kQuad) + place / shape_.area();
    const int64_t half = is_expanded() ? plane % 2 : 0;
    offsets_[begin + static_cast<size_t>(int64_t{chunk.entry[i]} * per_entry + half)] =
        static_cast<int32_t>(plane * source_quad_ + tap_offset(place % shape_.area()));
  }
  // An input without a partner is its own: its numbers are in one half.
  for (size_t i = begin; i < offsets_.size(); ++i) {
    if (offsets_[i] < 0) offsets_[i] = offsets_[begin + ((i - begin) ^ 1)];
  }
}

// Sums wrap around on their way, so they may begin with any number.
void Int8ConvPlan::write_outputs(const Int8ConvWeights& weights, const Int8Epilogue& epilogue) {
  const int32_t zero = kernels_->int8->input_offset - zero_byte(layouts_.x_type);
  // Channels of the last quad that are none stay zeros.
  outputs_of_.resize(static_cast<size_t>(layouts_.y.quads() * kQuad));
  is_slow_ = gives_floats();
  for (int64_t d = 0; d < shape_.out; ++d) {
    Int8Output& output = outputs_of_[static_cast<size_t>(d)];
    auto start = static_cast<uint32_t>(epilogue.bias[d]);
    visit_weights(weights, d, [&](int64_t, int64_t, int8_t weight) { start += static_cast<uint32_t>(zero * weight); });
    output.start = static_cast<int32_t>(start);
    if (gives_floats()) {
      output.dequantize = epilogue.dequantize[d];
      continue;
    }
    output.requantize = epilogue.requantize[d];
    output.right_shift = output.requantize.shift - 32;
    output.rounding = output.right_shift > 0 ? int32_t{1} << (output.right_shift - 1) : 0;
    is_slow_ = is_slow_ || output.right_shift == 0;
    if (epilogue.residual_factor != nullptr) output.residual_factor = epilogue.residual_factor[d];
  }
  left_shift_ = epilogue.left_shift;
}

int64_t Int8ConvPlan::weight_bytes() const {
  return weight_words_ * 4 + static_cast<int64_t>(offsets_.size() + from_.size()) * 4 +
         static_cast<int64_t>(outputs_of_.size() * sizeof(Int8Output));
}

// More parts than threads: one that comes late leaves its own to the others.
int64_t Int8ConvPlan::scratch_parts(int64_t threads) const {
  return scratch_bytes_ > 0 ? std::min(layouts_.x.quads(), threads == 1 ? 1 : threads * 3) : 0;
}

int64_t Int8ConvPlan::parts(int64_t threads) const {
  if (threads == 1) return 1;
  const int64_t tiles = pieces_of(static_cast<int64_t>(units_.size()), vectors_);
  return std::min(tiles >= 2 * threads ? tiles : layouts_.y.quads(), threads * 3);
}

void Int8ConvPlan::make_ready(const Int8ConvMemory& memory, int64_t part, int64_t parts) const {
  const Range quads = share_of(layouts_.x.quads(), part, parts);
  for (int64_t quad = quads.first; quad < quads.last; ++quad) {
    if (is_apart()) take_apart(memory, quad);
    if (!is_expanded()) continue;
    const uint8_t* from = is_apart() ? memory.scratch : memory.x;
    kernels_->int8->expand(source_quad_ / kQuad, from + quad * source_quad_, source_quad_,
                           memory.scratch + expanded_at_ + quad * kQuad * source_quad_);
  }
}

void Int8ConvPlan::take_apart(const Int8ConvMemory& memory, int64_t quad) const {
  const ConvShape& s = shape_;
  const QuadLayout& x = layouts_.x;
  const uint8_t zero = zero_byte(layouts_.x_type);
  uint8_t* to = memory.scratch + quad * source_quad_;
  for (const Part& of : parts_) {
    // Columns [begin, end) of the part are pixels.
    const int64_t left = s.padding_w - of.column;
    const int64_t begin = std::clamp<int64_t>(left > 0 ? pieces_of(left, s.stride_w) : 0, 0, source_pitch_);
    const int64_t end = std::clamp(pieces_of(std::max<int64_t>(0, s.in_w + left), s.stride_w), begin, source_pitch_);
    for (int64_t i = 0; i < part_rows_; ++i, to += source_pitch_ * kQuad) {
      const int64_t row = i * s.stride_h + of.row - s.padding_h;
      if (row < 0 || row >= s.in_h) {
        std::memset(to, zero, static_cast<size_t>(source_pitch_ * kQuad));
        continue;
      }
      fill_pixels(to, begin, zero);
      fill_pixels(to + end * kQuad, source_pitch_ - end, zero);
      if (begin == end) continue;
      const uint8_t* from = memory.x + quad * x.quad_bytes() + x.pixel(row, begin * s.stride_w - left);
      if (s.stride_w == 1) {
        std::memcpy(to + begin * kQuad, from, static_cast<size_t>((end - begin) * kQuad));
      } else if (s.stride_w == 2) {
        kernels_->int8->every_second(end - begin, from, to + begin * kQuad);
      } else {
        for (int64_t j = begin; j < end; ++j, from += s.stride_w * kQuad) std::memcpy(to + j * kQuad, from, kQuad);
      }
    }
  }
}

void Int8ConvPlan::run(const Int8ConvMemory& memory) const {
  if (scratch_bytes_ > 0) make_ready(memory, 0, 1);
  run(memory, 0, 1);
}

void Int8ConvPlan::run(const Int8ConvMemory& memory, int64_t part, int64_t parts) const {
  const int64_t quads = layouts_.y.quads(), units = static_cast<int64_t>(units_.size());
  const int64_t tiles = pieces_of(units, vectors_);
  if (parts > 1 && tiles < parts) {
    const Range range = share_of(quads, part, parts);
    return run_tiles(memory, 0, units, range.first, range.last);
  }
  const Range range = share_of(units, part, parts);
  run_tiles(memory, range.first, range.last, 0, quads);
}

void Int8ConvPlan::run_tiles(const Int8ConvMemory& memory, int64_t first_unit, int64_t last_unit, int64_t first_quad,
                             int64_t last_quad) const {
  const Int8Kernels& kernels = *kernels_->int8;
  const int64_t chunks = kQuad / outputs_, units = last_unit - first_unit;
  if (units <= 0 || last_quad <= first_quad) return;
  const int64_t streams = (weight_words_ + static_cast<int64_t>(offsets_.size())) * 4;
  const int64_t quads_at_once = std::max<int64_t>(1, layouts_.y.quads() * kStreamBytes / std::max<int64_t>(1, streams));
  const int64_t tiles = pieces_of(units, vectors_);
  for (int64_t quad = first_quad; quad < last_quad; quad += quads_at_once) {
    const auto entry = static_cast<size_t>(quad * chunks);
    Int8Tile tile;
    tile.x = scratch_bytes_ > 0 ? memory.scratch + expanded_at_ : memory.x;
    tile.quads = std::min(quads_at_once, last_quad - quad);
    tile.from = from_.data() + entry;
    tile.offsets = offsets_.data() + int64_t{from_[entry]} * offsets_per_entry();
    tile.weights = weights_.get() + int64_t{from_[entry]} * outputs_ * words_per_output();
    tile.outputs = outputs_of_.data() + quad * kQuad;
    tile.y_quad = layouts_.y.quad_bytes();
    tile.x_second = source_ == Int8Source::kStrided ? kernels.lanes * kQuad : step() * source_pitch_ * kQuad;
    tile.y_row = layouts_.y.pitch() * kQuad;
    tile.y_zero = zero_byte(layouts_.y_type);
    tile.masks = masks_.data();
    tile.residual_zero = zero_byte(layouts_.residual_type);
    tile.left_shift = left_shift_;
    tile.is_slow = is_slow_;
    if (gives_floats()) {
      tile.floats_plane = shape_.out_h() * shape_.out_w();
      tile.floats = memory.floats + quad * kQuad * tile.floats_plane;
      tile.channels = shape_.out - quad * kQuad;
    } else {
      tile.y = memory.y + quad * tile.y_quad;
      if (memory.residual != nullptr) tile.residual = memory.residual + quad * tile.y_quad;
    }
    // As alike as there are kernels for.
    for (int64_t done = 0, left = tiles; done < units; --left) {
      const int64_t wanted = left > 1 ? pieces_of(units - done, left) : units - done;
      const int vectors = kernels.most_vectors(source_, outputs_, wanted);
      tile.units = units_.data() + first_unit + done;
      kernels.tile(source_, outputs_, vectors)(tile);
      done += vectors;
    }
  }
}

int64_t int8_conv_plan_bytes(const ConvShape& shape, bool dense, const KernelSet& kernels) {
  const int64_t words = kernels.int8->weight_words;
  const int64_t quads = shape.in_per_group() / kQuad + 2;
  int64_t most = 0;
  for (const int64_t outputs : {1, 2, 4}) {
    // Outputs of a chunk may be of as many groups.
    const int64_t groups = std::min(outputs, shape.groups);
    const int64_t positions = dense || shape.taps == 0 || shape.taps >= shape.area() / (outputs * kQuad)
                                  ? shape.area()
                                  : shape.taps * outputs * kQuad;
    const auto entries = static_cast<double>(pieces_of(shape.out, outputs)) * static_cast<double>(quads * groups) *
                         static_cast<double>(positions);
    const double bytes = entries * static_cast<double>(4 + 4 * outputs * words);
    most = std::max(most, bytes > 9e18 ? std::numeric_limits<int64_t>::max() / 2 : static_cast<int64_t>(bytes));
  }
  return most + shape.out * static_cast<int64_t>(sizeof(Int8Output)) + shape.out_h() * shape.out_w() * 16;
}

}  // namespace onetap
