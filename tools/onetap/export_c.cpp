// onetap export --to c: a frozen network as C99 for small devices, and what it needs there.
#include "tools/onetap/export_c.h"

#include "onetap/base/fail.h"
#include "onetap/base/file.h"
#include "onetap/base/json.h"
#include "onetap/base/naming_file.h"
#include "onetap/base/text.h"
#include "onetap/count/count.h"
#include "onetap/emit/c_program.h"
#include "onetap/emit/c_project.h"
#include "onetap/emit/dense_form.h"
#include "onetap/runtime/int8_reference.h"
#include "onetap/runtime/reference.h"
#include "onetap/tap/moved_kernel.h"
#include "onetap/tap/tap_file.h"
#include "tools/onetap/console.h"
#include "tools/onetap/output_file.h"
#include "tools/onetap/table.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <deque>
#include <iostream>
#include <optional>
#include <string>
#include <utility>

namespace onetap::tool {
namespace {

namespace fs = std::filesystem;

// The caller's input and output.
int64_t io_bytes(const CProgram& program) {
  const auto elements = [](const CValue& value) { return value.channels * value.height * value.width; };
  return c_type_bytes(program.takes) * elements(program.value(program.plan().input)) +
         c_type_bytes(CInput::kFloats) * elements(program.values.back());
}

void check_c_limits(const ExportCArguments& options, const CProgram& program, const CSizes& sizes) {
  // Nobody says for which processor: the larger of both.
  const int64_t flash = sizes.flash() + std::max<int64_t>(0, sizes.without_dsp);
  if (options.flash > 0 && flash > options.flash) {
    fail_usage("[export] expected at most {} bytes of flash, got {} (the largest layer, '{}', has {})", options.flash,
               flash, sizes.largest().name, sizes.largest().bytes());
  }
  const int64_t ram = sizes.arena + io_bytes(program) + sizes.stack;
  if (options.ram > 0 && ram > options.ram) {
    fail_usage(
        "[export] expected at most {} bytes of RAM, got {}: {} of the arena (most is in use around layer '{}'), {} of "
        "input and output{}, {} of stack",
        options.ram, ram, sizes.arena, sizes.arena_layer, io_bytes(program),
        !program.takes_pixels() ? " (less with --input pixels)" : "", sizes.stack);
  }
}

void write_c_folder(const fs::path& folder, const std::vector<CFile>& files) {
  std::vector<WholeFile> whole;
  // An empty folder stays the one that it is: it may be somebody's working directory.
  if (fs::is_directory(folder)) {
    const auto hold = DirectoryHold::take(folder);
    if (!hold) fail("[export] expected a folder that nobody else writes to, got {}", folder.string());
    check_output_folder("export", folder);  // again: another export may have filled it
    for (const CFile& file : files) whole.push_back({folder / file.name, file.text});
    return write_files_atomic(whole);
  }
  fs::path place = fs::absolute(folder).lexically_normal();
  if (!place.has_filename()) place = place.parent_path();  // "DIR/"
  StagedDirectory staged(place);
  for (const CFile& file : files) whole.push_back({staged.path() / file.name, file.text});
  write_files_atomic(whole);
  staged.commit();
}

CInput c_input(const ExportCArguments& options) {
  return options.input == "pixels" ? CInput::kPixels : CInput::kFloats;
}

// A network planned by both schedules, and what it needs by the chosen one.
struct SizeColumn {
  std::string title;
  CProgram rows, layers;
  const CProgram& chosen;
  CSizes sizes;
  double macs = 0;

  SizeColumn(std::string name, const TapNet& net, const ExportCArguments& options)
      : title(std::move(name)),
        rows(net, RowMode::kRows, c_input(options)),
        layers(net, RowMode::kLayers, c_input(options)),
        chosen(options.schedule == "rows" ? rows : layers),
        sizes(c_sizes(net, chosen)),
        macs(count_network(net.graph, CountRules::kPaper).macs) {}
};

nlohmann::ordered_json size_json(const SizeColumn& column) {
  const CSizes& sizes = column.sizes;
  return {{"weights", sizes.weights},
          {"positions", sizes.positions},
          {"tables", sizes.other},
          {"code", sizes.code},
          {"flash", sizes.flash()},
          {"flash_without_dsp", sizes.flash() + sizes.without_dsp},
          {"ram", sizes.arena},
          {"input_and_output", io_bytes(column.chosen)},
          {"stack", sizes.stack},
          {"ram_in_all", sizes.arena + io_bytes(column.chosen) + sizes.stack},
          {"ram_layers", column.layers.arena_bytes},
          {"ram_rows", column.rows.arena_bytes},
          {"macs", column.macs}};
}

void print_c_sizes(const ExportCArguments& options, const std::deque<SizeColumn>& columns) {
  if (options.json) {
    nlohmann::ordered_json object = {{"out", options.out}, {"input", options.input}};
    object["network"] = size_json(columns[0]);
    if (columns.size() > 1) object["dense"] = size_json(columns[1]);
    std::cout << json_text(object, 2) << '\n';
    return;
  }
  using A = Table::Align;
  std::vector<Table::Column> heads = {{"bytes"}};
  for (const SizeColumn& column : columns) heads.push_back({column.title, A::kRight});
  Table table(heads);
  const auto add = [&](const std::string& title, const auto& number) {
    std::vector<std::string> cells = {title};
    for (const SizeColumn& column : columns) cells.push_back(with_thousands(static_cast<double>(number(column))));
    table.add(cells);
  };
  add("weights", [](const SizeColumn& c) { return c.sizes.weights; });
  add("positions", [](const SizeColumn& c) { return c.sizes.positions; });
  add("bias, scales, tables", [](const SizeColumn& c) { return c.sizes.other; });
  add("code (estimated)", [](const SizeColumn& c) { return c.sizes.code; });
  add("flash", [](const SizeColumn& c) { return c.sizes.flash(); });
  if (columns[0].sizes.without_dsp != 0) {
    add("flash without DSP", [](const SizeColumn& c) { return c.sizes.flash() + c.sizes.without_dsp; });
  }
  table.rule();
  add("RAM, layer by layer", [](const SizeColumn& c) { return c.layers.arena_bytes; });
  add("RAM, row by row", [](const SizeColumn& c) { return c.rows.arena_bytes; });
  add("input and output", [](const SizeColumn& c) { return io_bytes(c.chosen); });
  add("stack (estimated)", [](const SizeColumn& c) { return c.sizes.stack; });
  add("RAM in all", [](const SizeColumn& c) { return c.sizes.arena + io_bytes(c.chosen) + c.sizes.stack; });
  table.rule();
  add("MACs", [](const SizeColumn& c) { return c.macs; });
  std::cout << table.text();
}

// What functions and files are called.
std::string project_name(const ExportCArguments& options) {
  if (options.name) {
    check_c_name(*options.name);
    return *options.name;
  }
  const std::string stem = fs::path(options.source).stem().string(), name = c_identifier_of(stem);
  if (name != stem) console().note(fmt::format("functions and files are called {} (--name)", name));
  return name;
}

// An input, and what the reference makes of it.
GoldenSample golden_sample(const TapNet& net, CInput kind) {
  GoldenSample golden = golden_input(net.graph, kind);
  const std::vector<float> input = golden.input_floats(net);
  golden.output = net.is_int8() ? Int8Reference(net).run(input.data()) : run_reference(net, input.data());
  if (!std::all_of(golden.output.begin(), golden.output.end(), [](float value) { return std::isfinite(value); })) {
    fail("[export] expected finite outputs, got nan or inf");
  }
  return golden;
}

}  // namespace

void export_c(const ExportCArguments& options) {
  const fs::path source = options.source;
  const std::string name = project_name(options);
  check_output_folder("export", options.out);
  TapNet net = read_tap(source);
  const auto& nodes = net.graph.nodes();
  const bool is_pruned = std::any_of(nodes.begin(), nodes.end(), [](const Node& n) { return n.op == Op::kTapConv; });
  active_shifts_to_convs(net);  // which have a C form
  std::deque<SizeColumn> columns;
  const CProject project = naming_file(source, [&] {
    const SizeColumn& column = columns.emplace_back(name, net, options);
    check_c_limits(options, column.chosen, column.sizes);  // before anything is computed
    return c_project(net, column.chosen, name, golden_sample(net, c_input(options)));
  });
  write_c_folder(options.out, project.files);
  std::optional<TapNet> dense;  // which its column refers to
  if (is_pruned) {
    dense = dense_form(net);
    columns.emplace_back("dense", *dense, options);
  }
  print_c_sizes(options, columns);
}

}  // namespace onetap::tool
