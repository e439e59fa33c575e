// A frozen network as C99: sources that need a compiler and nothing else. docs/deploy.md has how to use them.
#pragma once

#include "onetap/emit/c_input.h"
#include "onetap/plan/row_plan.h"
#include "onetap/tap/tap_net.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace onetap {

struct CProgram;

struct CProjectOptions {
  std::string name;  // of functions and files; a C identifier
  RowMode mode = RowMode::kRows;
  CInput input = CInput::kFloats;
};

// What travels along for the self-test: an input of random bytes, and what the reference executor makes of it.
struct GoldenSample {
  static constexpr float kUnit = 1.0f / 64;

  CInput kind = CInput::kFloats;
  std::vector<int16_t> input;  // floats of value / 64, -127 to 127; or pixels, 0 to 255
  std::vector<float> output;

  // What the network, `net`, sees of it.
  std::vector<float> input_floats(const TapNet& net) const;
};
// Without the output.
GoldenSample golden_input(const Graph& graph, CInput kind = CInput::kFloats);

struct CFile {
  std::string name, text;
};

// Bytes, as they lie in flash. `other`: bias, scales, descriptions of layers and values, the order of rows.
struct CLayerSize {
  std::string name;
  int64_t weights = 0, positions = 0, other = 0;
  int64_t bytes() const { return weights + positions + other; }
};

struct CSizes {
  std::vector<CLayerSize> layers;
  int64_t weights = 0, positions = 0, other = 0;
  int64_t without_dsp = 0;  // what weights take more on processors without DSP instructions, and with vectors
  int64_t code = 0;         // machine code, as measured for a Cortex-M4 at -Os function by function: an estimate
  int64_t stack = 0;        // of a run on a Cortex-M4, an estimate
  int64_t arena = 0;
  std::string arena_layer;  // whose value decides how large the arena is

  int64_t flash() const { return weights + positions + other + code; }
  const CLayerSize& largest() const;  // of the layers
};

struct CProject {
  std::vector<CFile> files;
  CSizes sizes;
};

// kUsage if functions and files cannot have the name: it is no C identifier, or one of CMake's own targets or a header
// of C has it.
void check_c_name(std::string_view name);
// The nearest C identifier that is not taken: "model_int8" of "model-int8", "test_net" of "test".
std::string c_identifier_of(std::string_view name);

// kUsage as by check_c_name(), or if an op has no C form, or a shape or the memory passes the limits of
// the generated code. The sample's kind is the program's.
CProject c_project(const TapNet& net, const CProgram& program, const std::string& name, const GoldenSample& golden);
CProject c_project(const TapNet& net, const CProjectOptions& options, const GoldenSample& golden);
// Without the text, which takes longer than all else.
CSizes c_sizes(const TapNet& net, const CProgram& program);
CSizes c_sizes(const TapNet& net, RowMode mode);

}  // namespace onetap
