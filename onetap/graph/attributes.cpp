#include "onetap/graph/attributes.h"

#include "onetap/base/fail.h"
#include "onetap/base/text.h"
#include "onetap/graph/method_table.h"
#include "onetap/graph/op.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace onetap {
namespace {

struct Key {
  const char* name;
  Attribute attribute;
};

constexpr Key kKeys[] = {
    {"out", Attribute::kOut},     {"kernel", Attribute::kKernel},     {"stride", Attribute::kStride},
    {"pad", Attribute::kPadding}, {"dilation", Attribute::kDilation}, {"groups", Attribute::kGroups},
    {"bias", Attribute::kBias},   {"counts", Attribute::kCounts},     {"sides", Attribute::kSides},
    {"fill", Attribute::kFill},   {"eps", Attribute::kEpsilon},       {"method", Attribute::kMethod}};

std::string extent_text(Extent2 extent) {
  return extent.h == extent.w ? fmt::format("{}", extent.h) : fmt::format("{}x{}", extent.h, extent.w);
}

// Spelled 0 or 1.
bool choose_bit(std::string_view key, std::string_view value) {
  if (value != "0" && value != "1") fail_usage("expected {}, got '{}'", spelled_choices(key, {"0", "1"}), value);
  return value == "1";
}

PadFill choose_fill(std::string_view key, std::string_view value) {
  if (value != "zero" && value != "lowest") {
    fail_usage("expected {}, got '{}'", spelled_choices(key, {"zero", "lowest"}), value);
  }
  return value == "zero" ? PadFill::kZero : PadFill::kLowest;
}

double attribute_real(std::string_view key, std::string_view text) {
  const auto value = parse_double(text);
  if (!value) fail_usage("expected a number for {}, got '{}'", key, text);
  return *value;
}

std::vector<int64_t> attribute_numbers(std::string_view key, std::string_view text) {
  std::vector<int64_t> numbers;
  for (const std::string_view part : split(text, ',')) numbers.push_back(attribute_number(key, part));
  return numbers;
}

Method choose_method(std::string_view key, std::string_view value) {
  if (const MethodInfo* frozen = find_frozen_method(value)) return Method(*frozen);
  if (find_method(value) == nullptr) {
    std::vector<std::string> names = method_names();
    for (const MethodInfo& row : method_table()) {  // and what is left of some of them in frozen networks
      const bool known = std::find(names.begin(), names.end(), row.frozen_method) != names.end();
      if (!row.frozen_method.empty() && !known) names.push_back(row.frozen_method);
    }
    fail_usage("expected {}, got '{}'", spelled_choices(key, names), value);
  }
  return Method(value);
}

const Key* find_key(const OpInfo& info, std::string_view key) {
  for (const Key& candidate : kKeys) {
    if (info.has(candidate.attribute) && key == candidate.name) return &candidate;
  }
  return nullptr;
}

// Keys of methods that a node of this op may have.
std::vector<const MethodKey*> keys_of_methods(const OpInfo& info, const Node& node) {
  if (info.has(Attribute::kMethod)) return method_keys();
  std::vector<const MethodKey*> keys;
  for (const MethodKey& key : node.method.info().keys) keys.push_back(&key);
  return keys;
}

[[noreturn]] void unknown_key(const OpInfo& info, const Node& node, std::string_view key) {
  std::vector<std::string> valid;
  for (const Key& candidate : kKeys) {
    if (info.has(candidate.attribute)) valid.emplace_back(candidate.name);
  }
  for (const MethodKey* candidate : keys_of_methods(info, node)) valid.push_back(candidate->name);
  fail_usage("{} has no '{}'{}", info.name, key, did_you_mean(key, valid));
}

void set_method_key(Node& node, std::string_view key, std::string_view text) {
  const OpInfo& info = op_info(node.op);
  if (const MethodKey* own = node.method.info().find_key(key)) {
    node.method.set(key, parse_method_value(*own, text));
    return;
  }
  const auto keys = keys_of_methods(info, node);
  const auto other = std::find_if(keys.begin(), keys.end(), [&](const MethodKey* k) { return k->name == key; });
  if (other == keys.end()) unknown_key(info, node, key);
  // A key of another method may be there to say its default; any other value would be read and lost.
  if (parse_method_value(**other, text) == (*other)->usual) return;
  std::vector<std::string> having;
  for (const MethodInfo& row : method_table()) {
    if (row.find_key(key) != nullptr) having.push_back(row.name);
  }
  fail_usage("{} needs {}", key, spelled_choices("method", having));
}

void set_attribute(Node& node, std::string_view key, std::string_view value) {
  const Key* found = find_key(op_info(node.op), key);
  if (found == nullptr) return set_method_key(node, key, value);
  switch (found->attribute) {
    case Attribute::kOut:
      node.out = attribute_number(key, value);
      break;
    case Attribute::kKernel:
      node.kernel = attribute_extent(key, value);
      break;
    case Attribute::kStride:
      node.stride = attribute_extent(key, value);
      break;
    case Attribute::kPadding:
      node.padding = attribute_extent(key, value);
      break;
    case Attribute::kDilation:
      node.dilation = attribute_extent(key, value);
      break;
    case Attribute::kGroups:
      node.groups = attribute_number(key, value);
      break;
    case Attribute::kBias:
      node.bias = choose_bit(key, value);
      break;
    case Attribute::kCounts:
      node.counts = attribute_numbers(key, value);
      break;
    case Attribute::kSides:
      node.sides = attribute_numbers(key, value);
      break;
    case Attribute::kFill:
      node.fill = choose_fill(key, value);
      break;
    case Attribute::kEpsilon:
      node.epsilon = attribute_real(key, value);
      break;
    case Attribute::kMethod:  // is set
    case Attribute::kTaps:
      break;
  }
}

}  // namespace

int64_t attribute_number(std::string_view key, std::string_view text) {
  const auto value = parse_int(text);
  if (!value || *value < 0 || *value > (int64_t{1} << 40)) {
    fail_usage("expected a whole number for {}, got '{}'", key, text);
  }
  return *value;
}

std::string spelled_choices(std::string_view key, const std::vector<std::string>& words) {
  std::vector<std::string> spelled;
  for (const std::string& word : words) spelled.push_back(fmt::format("{}={}", key, word));
  return join(spelled, " or ");
}

Extent2 attribute_extent(std::string_view key, std::string_view text) {
  const auto sides = split(text, 'x');
  if (sides.size() > 2) fail_usage("expected N or NxM for {}, got '{}'", key, text);
  return {attribute_number(key, sides.front()), attribute_number(key, sides.back())};
}

AttributeTexts attribute_texts(const Node& node) {
  const OpInfo& info = op_info(node.op);
  const Node plain = default_node(node.op);
  AttributeTexts texts;
  const auto extent = [&](const char* key, Attribute attribute, Extent2 value, Extent2 usual) {
    if (info.has(attribute) && value != usual) texts.emplace_back(key, extent_text(value));
  };
  if (info.has(Attribute::kOut)) texts.emplace_back("out", std::to_string(node.out));
  extent("kernel", Attribute::kKernel, node.kernel, plain.kernel);
  extent("stride", Attribute::kStride, node.stride, plain.stride);
  extent("pad", Attribute::kPadding, node.padding, plain.padding);
  extent("dilation", Attribute::kDilation, node.dilation, plain.dilation);
  if (info.has(Attribute::kGroups) && node.groups != 1) texts.emplace_back("groups", std::to_string(node.groups));
  if (info.has(Attribute::kBias) && node.bias != plain.bias) texts.emplace_back("bias", node.bias ? "1" : "0");
  if (info.has(Attribute::kCounts) && !node.counts.empty()) {
    texts.emplace_back("counts", fmt::format("{}", fmt::join(node.counts, ",")));
  }
  if (info.has(Attribute::kSides)) texts.emplace_back("sides", fmt::format("{}", fmt::join(node.sides, ",")));
  if (info.has(Attribute::kFill) && node.fill != plain.fill) texts.emplace_back("fill", "lowest");
  if (info.has(Attribute::kEpsilon) && node.epsilon != plain.epsilon) {
    texts.emplace_back("eps", fmt::format("{}", node.epsilon));
  }
  const bool has_method = info.has(Attribute::kMethod), has_taps = info.has(Attribute::kTaps);
  if (has_method && !node.method.is_dense()) texts.emplace_back("method", node.method.name());
  if (!has_method && !has_taps) return texts;
  for (const MethodKey& key : node.method.info().keys) {
    const MethodValue& value = node.method.value(key.name);
    if (key.is_shown || value != key.usual) texts.emplace_back(key.name, method_value_text(value));
  }
  return texts;
}

void set_attributes(Node& node, const AttributeTexts& texts) {
  const OpInfo& info = op_info(node.op);
  // The method comes first: it says which other keys there are.
  for (const auto& [key, value] : texts) {
    const Key* found = find_key(info, key);
    if (found != nullptr && found->attribute == Attribute::kMethod) node.method = choose_method(key, value);
  }
  for (const auto& [key, value] : texts) set_attribute(node, key, value);
}

}  // namespace onetap
