#include "onetap/graph/text.h"

#include "onetap/base/fail.h"
#include "onetap/base/file.h"
#include "onetap/base/text.h"
#include "onetap/graph/attributes.h"
#include "onetap/graph/op.h"

#include <algorithm>

namespace onetap {
namespace {

constexpr const char* kMagic = "onetap-net";
constexpr int64_t kVersion = 1;
constexpr uint64_t kMaxBytes = 32u << 20;

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

  static Shape shape(std::string_view text) {
    Shape extents;
    for (const auto side : split(text, 'x')) extents.push_back(attribute_number("the input shape", side));
    return extents;
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
    try {
      read_words(node, parts);
      graph_.add(std::move(node));
    } catch (const Error& problem) {
      error(std::string(without_module(problem.what())));
    }
  }

  // Inputs and attributes: everything behind the op.
  void read_words(Node& node, const std::vector<std::string_view>& parts) const {
    AttributeTexts attributes;
    for (size_t i = 3; i < parts.size(); ++i) {
      const size_t equals = parts[i].find('=');
      if (equals != std::string_view::npos) {
        const std::string_view key = parts[i].substr(0, equals);
        const bool again =
            std::any_of(attributes.begin(), attributes.end(), [&](const auto& given) { return given.first == key; });
        if (again) fail_usage("'{}' is given twice", key);
        attributes.emplace_back(key, parts[i].substr(equals + 1));
      } else if (node.op != Op::kInput) {
        node.inputs.emplace_back(parts[i]);
      } else {
        if (!node.shape.empty()) fail_usage("an input has one shape");
        node.shape = shape(parts[i]);
      }
    }
    set_attributes(node, attributes);
  }

  Graph graph_;
  int64_t line_number_ = 0;
};

}  // namespace

std::string network_text(const Graph& graph) {
  std::string text = fmt::format("{} {}\nnetwork {}\n", kMagic, kVersion, graph.name());
  const auto put = std::back_inserter(text);
  for (const Node& node : graph.nodes()) {
    fmt::format_to(put, "{} = {}", node.name, op_info(node.op).name);
    if (node.op == Op::kInput) fmt::format_to(put, " {}", shape_text(node.shape));
    for (const std::string& input : node.inputs) fmt::format_to(put, " {}", input);
    for (const auto& [key, value] : attribute_texts(node)) fmt::format_to(put, " {}={}", key, value);
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
