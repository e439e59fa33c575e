#include "onetap/graph/text.h"

#include "onetap/base/fail.h"
#include "onetap/base/file.h"
#include "onetap/base/text.h"
#include "onetap/graph/op.h"

#include <algorithm>

namespace onetap {
namespace {

constexpr const char* kMagic = "onetap-net";
constexpr int64_t kVersion = 1;
constexpr uint64_t kMaxBytes = 32u << 20;

std::string extent_text(Extent2 extent) {
  return extent.h == extent.w ? fmt::format("{}", extent.h) : fmt::format("{}x{}", extent.h, extent.w);
}

struct Key {
  const char* name;
  Attribute attribute;
};

// Spelling of the attributes; the four keys of a method belong together.
constexpr Key kKeys[] = {
    {"out", Attribute::kOut},     {"kernel", Attribute::kKernel},     {"stride", Attribute::kStride},
    {"pad", Attribute::kPadding}, {"dilation", Attribute::kDilation}, {"groups", Attribute::kGroups},
    {"bias", Attribute::kBias},   {"method", Attribute::kMethod},     {"taps", Attribute::kTaps},
    {"share", Attribute::kTaps},  {"init", Attribute::kMethod}};

class Parser {
 public:
  Graph parse(std::string_view text) {
    std::string name = "network";
    std::string output;
    bool started = false;
    for (std::string_view line : split(text, '\n')) {
      ++line_number_;
      line = line.substr(0, std::min(line.find('#'), line.size()));
      const auto parts = words(line);
      if (parts.empty()) continue;
      if (!started) {
        check_magic(parts);
        started = true;
      } else if (parts[0] == "network" && parts.size() == 2) {
        if (!graph_.nodes().empty()) error("'network' must come before the first node");
        graph_ = Graph(std::string(parts[1]));
      } else if (parts[0] == "output" && parts.size() == 2) {
        output = std::string(parts[1]);
      } else {
        add_node(parts);
      }
    }
    if (!started) error(fmt::format("expected '{} {}' in the first line", kMagic, kVersion));
    if (graph_.nodes().empty()) error("the network has no nodes");
    if (!output.empty()) graph_.set_output(output);
    return std::move(graph_);
  }

 private:
  [[noreturn]] void error(const std::string& what) const { fail_usage("[net] line {}: {}", line_number_, what); }

  void check_magic(const std::vector<std::string_view>& parts) const {
    if (parts.size() != 2 || parts[0] != kMagic) {
      error(fmt::format("expected '{} {}' in the first line", kMagic, kVersion));
    }
    if (parse_int(parts[1]) != kVersion) {
      error(fmt::format("expected version {}, got '{}'", kVersion, parts[1]));
    }
  }

  int64_t number(std::string_view key, std::string_view text) const {
    const auto value = parse_int(text);
    if (!value || *value < 0 || *value > (int64_t{1} << 40)) {
      error(fmt::format("expected a whole number for {}, got '{}'", key, text));
    }
    return *value;
  }

  Extent2 extent(std::string_view key, std::string_view text) const {
    const auto sides = split(text, 'x');
    if (sides.size() > 2) error(fmt::format("expected N or NxM for {}, got '{}'", key, text));
    return {number(key, sides.front()), number(key, sides.back())};
  }

  Shape shape(std::string_view text) const {
    Shape extents;
    for (const auto side : split(text, 'x')) extents.push_back(number("the input shape", side));
    if (extents.size() != 1 && extents.size() != 3) {
      error(fmt::format("expected an input shape CxHxW or C, got '{}'", text));
    }
    return extents;
  }

  void set_method(Node& node, std::string_view key, std::string_view value) const {
    if (key == "init") {
      if (value != "uniform" && value != "centre") {
        error(fmt::format("expected init=uniform or init=centre, got '{}'", value));
      }
      node.method.init = value == "centre" ? TapInit::kCentre : TapInit::kUniform;
    } else {
      if (value != "conv" && value != "sal") {
        error(fmt::format("expected method=conv or method=sal, got '{}'", value));
      }
      node.method.kind = value == "sal" ? Method::Kind::kSal : Method::Kind::kConv;
    }
  }

  void set_attribute(Node& node, std::string_view key, std::string_view value) const {
    const OpInfo& info = op_info(node.op);
    const auto* known = std::find_if(std::begin(kKeys), std::end(kKeys), [&](const Key& k) { return key == k.name; });
    if (known == std::end(kKeys) || !info.has(known->attribute)) {
      std::vector<std::string> valid;
      for (const Key& candidate : kKeys) {
        if (info.has(candidate.attribute)) valid.emplace_back(candidate.name);
      }
      error(fmt::format("{} has no '{}'{}", info.name, key, did_you_mean(key, valid)));
    }
    switch (known->attribute) {
      case Attribute::kOut:
        node.out = number(key, value);
        break;
      case Attribute::kKernel:
        node.kernel = extent(key, value);
        break;
      case Attribute::kStride:
        node.stride = extent(key, value);
        break;
      case Attribute::kPadding:
        node.padding = extent(key, value);
        break;
      case Attribute::kDilation:
        node.dilation = extent(key, value);
        break;
      case Attribute::kGroups:
        node.groups = number(key, value);
        break;
      case Attribute::kBias:
        if (value != "0" && value != "1") error(fmt::format("expected bias=0 or bias=1, got '{}'", value));
        node.bias = value == "1";
        break;
      case Attribute::kTaps:
        (key == "taps" ? node.method.taps : node.method.share) = number(key, value);
        break;
      case Attribute::kMethod:
        set_method(node, key, value);
        break;
    }
  }

  void add_node(const std::vector<std::string_view>& parts) {
    if (parts.size() < 3 || parts[1] != "=") {
      error("expected 'NAME = OP INPUT... KEY=VALUE...', 'network NAME' or 'output NAME'");
    }
    const OpInfo* info = find_op(parts[2]);
    if (info == nullptr) {
      std::vector<std::string> names;
      for (const OpInfo& candidate : op_table()) names.emplace_back(candidate.name);
      error(fmt::format("unknown op '{}'{}", parts[2], did_you_mean(parts[2], names)));
    }
    Node node = default_node(info->op);
    node.name = std::string(parts[0]);
    std::vector<std::string_view> seen;
    for (size_t i = 3; i < parts.size(); ++i) {
      const size_t equals = parts[i].find('=');
      if (equals == std::string_view::npos) {
        if (info->op == Op::kInput) {
          if (!node.shape.empty()) error("an input has one shape");
          node.shape = shape(parts[i]);
        } else {
          node.inputs.emplace_back(parts[i]);
        }
        continue;
      }
      const std::string_view key = parts[i].substr(0, equals);
      if (std::find(seen.begin(), seen.end(), key) != seen.end()) {
        error(fmt::format("'{}' is given twice", key));
      }
      seen.push_back(key);
      set_attribute(node, key, parts[i].substr(equals + 1));
    }
    // Without method=sal the other keys would be read and lost.
    if (!node.is_pruned() && node.method != Method{}) {
      error("taps, share and init need method=sal");
    }
    try {
      graph_.add(std::move(node));
    } catch (const Error& problem) {
      error(problem.what());
    }
  }

  Graph graph_;
  int64_t line_number_ = 0;
};

}  // namespace

const char* tap_init_name(TapInit init) {
  return init == TapInit::kCentre ? "centre" : "uniform";
}

std::string method_text(const Method& method) {
  if (method.kind == Method::Kind::kConv) return "method=conv";
  std::string text = fmt::format("method=sal taps={} share={}", method.taps, method.share);
  if (method.init != TapInit::kUniform) text += fmt::format(" init={}", tap_init_name(method.init));
  return text;
}

std::string network_text(const Graph& graph) {
  std::string text = fmt::format("{} {}\nnetwork {}\n", kMagic, kVersion, graph.name());
  const auto put = std::back_inserter(text);
  for (const Node& node : graph.nodes()) {
    const OpInfo& info = op_info(node.op);
    const Node plain = default_node(node.op);
    fmt::format_to(put, "{} = {}", node.name, info.name);
    if (node.op == Op::kInput) fmt::format_to(put, " {}", shape_text(node.shape));
    for (const std::string& input : node.inputs) fmt::format_to(put, " {}", input);
    const auto extent = [&](const char* key, Attribute attribute, Extent2 value, Extent2 usual) {
      if (info.has(attribute) && value != usual) fmt::format_to(put, " {}={}", key, extent_text(value));
    };
    if (info.has(Attribute::kOut)) fmt::format_to(put, " out={}", node.out);
    extent("kernel", Attribute::kKernel, node.kernel, plain.kernel);
    extent("stride", Attribute::kStride, node.stride, plain.stride);
    extent("pad", Attribute::kPadding, node.padding, plain.padding);
    extent("dilation", Attribute::kDilation, node.dilation, plain.dilation);
    if (info.has(Attribute::kGroups) && node.groups != 1) fmt::format_to(put, " groups={}", node.groups);
    if (info.has(Attribute::kBias) && node.bias != plain.bias) {
      fmt::format_to(put, " bias={}", node.bias ? 1 : 0);
    }
    if (node.is_sal()) fmt::format_to(put, " {}", method_text(node.method));
    if (node.op == Op::kTapConv) fmt::format_to(put, " taps={} share={}", node.method.taps, node.method.share);
    text += '\n';
  }
  text += fmt::format("output {}\n", graph.output());
  return text;
}

Graph parse_network(std::string_view text) {
  return Parser().parse(text);
}

Graph read_network(const std::filesystem::path& path) {
  const std::string text = read_file(path, kMaxBytes);
  try {
    return parse_network(text);
  } catch (const Error& problem) {
    throw Error(problem.kind(), fmt::format("{} ({})", problem.what(), path.string()));
  }
}

}  // namespace onetap
