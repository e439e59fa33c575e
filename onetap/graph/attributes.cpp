#include "onetap/graph/attributes.h"

#include "onetap/base/fail.h"
#include "onetap/base/text.h"
#include "onetap/graph/op.h"

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
    {"bias", Attribute::kBias},   {"method", Attribute::kMethod},     {"taps", Attribute::kTaps},
    {"share", Attribute::kTaps},  {"init", Attribute::kMethod}};

std::string extent_text(Extent2 extent) {
  return extent.h == extent.w ? fmt::format("{}", extent.h) : fmt::format("{}x{}", extent.h, extent.w);
}

// One of two words.
bool choose(std::string_view key, std::string_view value, std::string_view no, std::string_view yes) {
  if (value != no && value != yes) fail_usage("expected {0}={1} or {0}={2}, got '{3}'", key, no, yes, value);
  return value == yes;
}

const Key& find_key(const OpInfo& info, std::string_view key) {
  std::vector<std::string> valid;
  for (const Key& candidate : kKeys) {
    if (!info.has(candidate.attribute)) continue;
    if (key == candidate.name) return candidate;
    valid.emplace_back(candidate.name);
  }
  fail_usage("{} has no '{}'{}", info.name, key, did_you_mean(key, valid));
}

}  // namespace

int64_t attribute_number(std::string_view key, std::string_view text) {
  const auto value = parse_int(text);
  if (!value || *value < 0 || *value > (int64_t{1} << 40)) {
    fail_usage("expected a whole number for {}, got '{}'", key, text);
  }
  return *value;
}

Extent2 attribute_extent(std::string_view key, std::string_view text) {
  const auto sides = split(text, 'x');
  if (sides.size() > 2) fail_usage("expected N or NxM for {}, got '{}'", key, text);
  return {attribute_number(key, sides.front()), attribute_number(key, sides.back())};
}

std::vector<std::pair<std::string, std::string>> attribute_texts(const Node& node) {
  const OpInfo& info = op_info(node.op);
  const Node plain = default_node(node.op);
  std::vector<std::pair<std::string, std::string>> texts;
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
  if (node.is_sal()) texts.emplace_back("method", "sal");
  if (node.is_pruned()) {
    texts.emplace_back("taps", std::to_string(node.method.taps));
    texts.emplace_back("share", std::to_string(node.method.share));
  }
  if (node.is_sal() && node.method.init != TapInit::kUniform) {
    texts.emplace_back("init", "centre");
  }
  return texts;
}

void set_attribute(Node& node, std::string_view key, std::string_view value) {
  switch (find_key(op_info(node.op), key).attribute) {
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
      node.bias = choose(key, value, "0", "1");
      break;
    case Attribute::kTaps:
      (key == "taps" ? node.method.taps : node.method.share) = attribute_number(key, value);
      break;
    case Attribute::kMethod:
      if (key == "init") {
        node.method.init = choose(key, value, "uniform", "centre") ? TapInit::kCentre : TapInit::kUniform;
      } else {
        node.method.kind = choose(key, value, "conv", "sal") ? Method::Kind::kSal : Method::Kind::kConv;
      }
      break;
  }
}

void check_attributes(const Node& node) {
  // Without method=sal the other keys would be read and lost.
  if (!node.is_pruned() && node.method != Method{}) fail_usage("taps, share and init need method=sal");
}

}  // namespace onetap
