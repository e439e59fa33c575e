#include "onetap/graph/method_table.h"

#include "onetap/base/fail.h"
#include "onetap/base/text.h"
#include "onetap/graph/attributes.h"
#include "onetap/graph/rivals.h"
#include "onetap/graph/sal.h"

#include <algorithm>
#include <cmath>

namespace onetap {
namespace {

MethodInfo dense_row() {
  MethodInfo info;
  info.name = "conv";
  info.help = "dense";
  info.may_be_linear = true;
  return info;
}

std::deque<MethodInfo>& rows() {
  static std::deque<MethodInfo> table = {dense_row(),       sal_row(),          random_taps_row(), magnitude_row(),
                                         fixed_shift_row(), active_shift_row(), bc_row(),          bwn_row()};
  return table;
}

// Not among the others: nobody trains by it.
const MethodInfo& frozen_row() {
  static const MethodInfo row = [] {
    MethodInfo info;
    info.name = "frozen";
    info.help = "positions that are chosen";
    for (const MethodKey& key : sal_row().keys) {
      if (key.name == "taps" || key.name == "share") info.keys.push_back(key);
    }
    MethodKey dropped;
    dropped.name = "dropped";
    dropped.help = "weights that are left out: their positions are 'none'";
    dropped.usual = int64_t{0};
    dropped.high = static_cast<double>(int64_t{1} << 40);
    dropped.is_shown = false;
    info.keys.push_back(dropped);
    info.frozen = info.op = Op::kTapConv;
    info.keep = [](const Method& method, TapLayout& layout) {
      layout.taps = method.number("taps");
      share_blocks(layout, method.blocks("share"));
      layout.dropped = method.number("dropped");
      layout.may_be_empty = layout.dropped > 0;
    };
    return info;
  }();
  return row;
}

const MethodInfo& binary_row() {
  static const MethodInfo row = [] {
    MethodInfo info;
    info.name = "binary";
    info.help = "weights of one bit and a scale";
    info.may_be_linear = true;
    info.weight_bits = 1;
    info.has_scales = true;
    info.frozen_method = info.name;
    return info;
  }();
  return row;
}

template <typename T>
const T& held(const Method& method, std::string_view key) {
  const T* found = std::get_if<T>(&method.value(key));
  if (found == nullptr) fail("[graph] key {} of method {} is of another type", key, method.name());
  return *found;
}

}  // namespace

const MethodKey* MethodInfo::find_key(std::string_view key) const {
  const auto found = std::find_if(keys.begin(), keys.end(), [&](const MethodKey& k) { return k.name == key; });
  return found == keys.end() ? nullptr : &*found;
}

const std::deque<MethodInfo>& method_table() {
  return rows();
}

const MethodInfo* find_method(std::string_view name) {
  const auto& table = rows();
  const auto found = std::find_if(table.begin(), table.end(), [&](const MethodInfo& row) { return row.name == name; });
  return found == table.end() ? nullptr : &*found;
}

const MethodInfo* find_frozen_method(std::string_view name) {
  return name == binary_row().name ? &binary_row() : nullptr;
}

std::vector<std::string> method_names() {
  std::vector<std::string> names;
  for (const MethodInfo& row : rows()) names.push_back(row.name);
  return names;
}

const MethodInfo& add_method(MethodInfo info) {
  if (find_method(info.name) != nullptr || info.name == frozen_row().name || info.name == binary_row().name) {
    fail_usage("[graph] two methods are called '{}'", info.name);
  }
  for (const MethodKey* known : method_keys()) {
    const MethodKey* own = info.find_key(known->name);
    if (own == nullptr) continue;
    // Recipes have one field for a key, whatever the method.
    const bool alike = own->usual.index() == known->usual.index() && own->in_recipes() == known->in_recipes() &&
                       own->low == known->low && own->high == known->high && own->words == known->words;
    if (!alike) {
      fail_usage("[graph] expected key '{}' of method {} to be as in other methods", own->name, info.name);
    }
  }
  if ((info.frozen == Op::kTapConv) != (info.keep != nullptr)) {
    fail_usage("[graph] expected method {} to keep positions if it freezes to a tapconv, and only then", info.name);
  }
  return rows().emplace_back(std::move(info));
}

std::vector<const MethodKey*> method_keys() {
  std::vector<const MethodKey*> all;
  for (const MethodInfo& row : rows()) {
    for (const MethodKey& key : row.keys) {
      const bool known = std::any_of(all.begin(), all.end(), [&](const MethodKey* k) { return k->name == key.name; });
      if (!known) all.push_back(&key);
    }
  }
  return all;
}

Method frozen_taps(const TapLayout& layout) {
  return Method(frozen_row())
      .set("taps", layout.taps)
      .set("share", BlockShare(layout.share_outputs, layout.share_inputs))
      .set("dropped", layout.dropped);
}

Method frozen_taps(int64_t taps, int64_t share) {
  TapLayout layout;
  layout.taps = taps;
  layout.share_outputs = share;
  return frozen_taps(layout);
}

MethodValue parse_method_value(const MethodKey& key, std::string_view text) {
  if (std::holds_alternative<int64_t>(key.usual)) return attribute_number(key.name, text);
  if (std::holds_alternative<double>(key.usual)) {
    const auto value = parse_double(text);
    if (!value || !std::isfinite(*value)) fail_usage("expected a number for {}, got '{}'", key.name, text);
    return *value;
  }
  if (key.is_share()) {
    const auto share = parse_share(text);
    if (!share) fail_usage("expected {} for {}, got '{}'", kShareForms, key.name, text);
    return *share;
  }
  if (std::find(key.words.begin(), key.words.end(), text) == key.words.end()) {
    fail_usage("expected {}, got '{}'", spelled_choices(key.name, key.words), text);
  }
  return std::string(text);
}

std::string method_value_text(const MethodValue& value) {
  if (const BlockShare* share = std::get_if<BlockShare>(&value)) return share_text(*share);
  if (const std::string* word = std::get_if<std::string>(&value)) return *word;
  if (const double* real = std::get_if<double>(&value)) return fmt::format("{}", *real);
  return fmt::format("{}", std::get<int64_t>(value));
}

Method::Method() : info_(&rows().front()) {}

Method::Method(std::string_view name) {
  info_ = find_method(name);
  if (info_ == nullptr) {
    fail_usage("[graph] expected method {}, got '{}'", join(method_names(), " or "), name);
  }
  for (const MethodKey& key : info_->keys) values_.push_back(key.usual);
}

Method::Method(const MethodInfo& info) : info_(&info) {
  for (const MethodKey& key : info.keys) values_.push_back(key.usual);
}

const std::string& Method::name() const {
  return info_->name;
}

bool Method::is_dense() const {
  return info_ == &rows().front();
}

size_t Method::index(std::string_view key) const {
  const MethodKey* found = info_->find_key(key);
  if (found == nullptr) fail("[graph] method {} has no key {}", info_->name, key);
  return static_cast<size_t>(found - info_->keys.data());
}

const MethodValue& Method::value(std::string_view key) const {
  return values_[index(key)];
}

int64_t Method::number(std::string_view key) const {
  return held<int64_t>(*this, key);
}

double Method::real(std::string_view key) const {
  return held<double>(*this, key);
}

const std::string& Method::word(std::string_view key) const {
  return held<std::string>(*this, key);
}

const BlockShare& Method::blocks(std::string_view key) const {
  return held<BlockShare>(*this, key);
}

Method& Method::set(std::string_view key, MethodValue value) {
  MethodValue& mine = values_[index(key)];
  const int64_t* number = std::get_if<int64_t>(&value);
  if (number != nullptr && std::holds_alternative<BlockShare>(mine)) value = BlockShare(*number);
  if (mine.index() != value.index()) fail("[graph] key {} of method {} is of another type", key, info_->name);
  mine = std::move(value);
  return *this;
}

}  // namespace onetap
