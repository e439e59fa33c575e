#include "onetap/emit/c_project.h"

#include "onetap/base/fail.h"
#include "onetap/base/random.h"
#include "onetap/base/version.h"
#include "onetap/emit/c_source.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace onetap {
namespace {

constexpr std::array kKeywords = {"auto",  "break",    "case",   "char",   "const",   "continue", "default",
                                  "do",    "double",   "else",   "enum",   "extern",  "float",    "for",
                                  "goto",  "if",       "inline", "int",    "long",    "register", "return",
                                  "short", "signed",   "sizeof", "static", "struct",  "switch",   "typedef",
                                  "union", "unsigned", "void",   "while",  "restrict"};

// Targets that CMake makes itself, and words of its commands.
constexpr std::array kCMakeNames = {"all",
                                    "clean",
                                    "edit_cache",
                                    "help",
                                    "install",
                                    "package",
                                    "package_source",
                                    "preinstall",
                                    "rebuild_cache",
                                    "test",
                                    "debug",
                                    "optimized",
                                    "general",
                                    "PUBLIC",
                                    "PRIVATE",
                                    "INTERFACE",
                                    "LINK_PUBLIC",
                                    "LINK_PRIVATE",
                                    "LINK_INTERFACE_LIBRARIES",
                                    "ALL_BUILD",
                                    "ZERO_CHECK",
                                    "INSTALL",
                                    "PACKAGE",
                                    "RUN_TESTS"};
// Headers of C, and those that glibc's and newlib's include: NAME.h would hide them from who includes them.
constexpr std::array kHeaders = {"assert",  "complex",  "ctype",    "errno",     "fenv",        "inttypes", "iso646",
                                 "limits",  "locale",   "math",     "setjmp",    "signal",      "stdarg",   "stdbool",
                                 "stddef",  "stdint",   "stdio",    "stdlib",    "string",      "tgmath",   "time",
                                 "wchar",   "wctype",   "stdalign", "stdatomic", "stdnoreturn", "threads",  "uchar",
                                 "arm_mve", "arm_acle", "features", "newlib"};

bool is_c_identifier(std::string_view name) {
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0) return false;
  if (std::any_of(name.begin(), name.end(),
                  [](unsigned char c) { return c > 127 || (std::isalnum(c) == 0 && c != '_'); }))
    return false;
  return std::find(kKeywords.begin(), kKeywords.end(), name) == kKeywords.end();
}

bool is_taken_name(std::string_view name) {
  const auto lists = [name](const auto& names) { return std::find(names.begin(), names.end(), name) != names.end(); };
  return lists(kCMakeNames) || lists(kHeaders);
}

// {0}: name, {1}: NAME.
std::string header_text(const TapNet& net, const CProgram& program, const std::string& name, const CSizes& sizes) {
  const CValue &in = program.value(program.plan().input), &out = program.values.back();
  const std::string upper = upper_case(name);
  const bool takes_pixels = program.takes_pixels();
  const auto triple = [](const std::array<float, 3>& values) {
    return fmt::format("{{{:#.9g}f, {:#.9g}f, {:#.9g}f}}", values[0], values[1], values[2]);
  };
  std::string text = generated_note(net, "how to call the network");
  text += fmt::format("#ifndef {0}_H\n#define {0}_H\n\n", upper);
  if (takes_pixels) text += "#include <stdint.h>\n\n";
  text += fmt::format("/* Bytes of memory that a run needs, beside about {} of the stack. */\n", sizes.stack);
  text += fmt::format("#define {}_ARENA_BYTES {}\n\n", upper, program.arena_bytes);
  text += takes_pixels
              ? "/* The input: pixels, bytes of 0 to 255. Planes of channels (red, green, blue), rows first. */\n"
              : "/* The input: planes of channels, rows first. */\n";
  text += fmt::format("#define {0}_INPUT_CHANNELS {1}\n#define {0}_INPUT_HEIGHT {2}\n#define {0}_INPUT_WIDTH {3}\n",
                      upper, in.channels, in.height, in.width);
  text += fmt::format("#define {}_INPUTS {}\n", upper, in.channels * in.height * in.width);
  if (takes_pixels) text += fmt::format("#define {}_TAKES_PIXELS 1\n", upper);
  text += fmt::format("#define {}_OUTPUTS {}\n\n", upper, out.channels * out.height * out.width);
  text += takes_pixels ? "/* The code scales pixels to (pixel / 255 - mean) / sd: red, green, blue. */\n"
                       : "/* Images are scaled to (pixel / 255 - mean) / sd: red, green, blue. */\n";
  text += fmt::format("#define {0}_MEAN {1}\n#define {0}_SD {2}\n\n", upper, triple(net.pixels.mean),
                      triple(net.pixels.sd));
  text += "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n";
  text += fmt::format(
      "/* Computes {0}_OUTPUTS floats from {0}_INPUTS{3}. `arena` has {0}_ARENA_BYTES bytes at a multiple of 4; what "
      "they\n"
      "   hold before and after is of no meaning. Calls with arenas of their own may run at the same time. */\n"
      "void {1}_run(const {2}* in, float* out, void* arena);\n\n",
      upper, name, c_type(program.takes), takes_pixels ? " pixels" : "");
  return text + "#ifdef __cplusplus\n}\n#endif\n\n#endif\n";
}

template <typename T>
std::string list_text(const std::vector<T>& values, const char* format) {
  std::string text;
  for (size_t i = 0; i < values.size(); ++i) {
    if (i % 20 == 0) text += i == 0 ? "    " : "\n    ";
    text += fmt::format(fmt::runtime(format), values[i]);
    text += ',';
  }
  return text;
}

std::string selftest_text(const TapNet& net, const CProgram& program, const std::string& name,
                          const GoldenSample& golden) {
  static constexpr const char* kText = R"(#include "{name}.h"

#include <stdint.h>

#define GUARD 16 /* words on either side of the arena, which must stay as they are */
#define POISON 0xA5A5A5A5u

/* An input{unit}, and the output that the reference executor computes from it. */
static const {byte} golden_input[{NAME}_INPUTS] = {
{input}
};
static const float golden_output[{NAME}_OUTPUTS] = {
{output}
};

{floats}static float output[{NAME}_OUTPUTS];
static uint32_t memory[GUARD + ({NAME}_ARENA_BYTES + 3) / 4 + GUARD];

/* 0: the outputs match; 1: they do not; 2: something beside the arena was overwritten. */
int {name}_selftest(void);
int {name}_selftest(void) {
  const uint32_t words = sizeof memory / sizeof memory[0];
  for (uint32_t i = 0; i < words; ++i) memory[i] = POISON;
{convert}  {name}_run({in}, output, memory + GUARD);
  for (uint32_t i = 0; i < GUARD; ++i) {
    if (memory[i] != POISON || memory[words - 1 - i] != POISON) return 2;
  }
{compare}
  return 0;
}

#ifndef {NAME}_NO_MAIN
int main(void) {
  return {name}_selftest();
}
#endif
)";
  static constexpr const char* kConvert =
      "  for (int32_t i = 0; i < {NAME}_INPUTS; ++i) input[i] = (float)golden_input[i] / 64.0f;\n";
  // Integers give the same result everywhere; sums of floats depend on their order.
  static constexpr const char* kExact =
      "  for (int32_t i = 0; i < {NAME}_OUTPUTS; ++i) {\n"
      "    if (!(output[i] >= golden_output[i] && output[i] <= golden_output[i])) return 1;\n"
      "  }";
  static constexpr const char* kNear =
      "  float largest = 0.0f;\n"
      "  for (int32_t i = 0; i < {NAME}_OUTPUTS; ++i) {\n"
      "    const float size = golden_output[i] < 0.0f ? -golden_output[i] : golden_output[i];\n"
      "    if (size > largest) largest = size;\n"
      "  }\n"
      "  for (int32_t i = 0; i < {NAME}_OUTPUTS; ++i) {\n"
      "    const float difference = output[i] - golden_output[i];\n"
      "    if (!(difference <= 1e-4f * largest && difference >= -1e-4f * largest)) return 1;\n"
      "  }";
  std::string text = kText;
  const auto replace = [&](const std::string& from, const std::string& to) {
    for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
  };
  const bool takes_pixels = program.takes_pixels();
  replace("{unit}", takes_pixels ? " of pixels" : ", in units of 1/64");
  replace("{byte}", takes_pixels ? "uint8_t" : "int8_t");
  replace("{floats}", takes_pixels ? "" : "static float input[{NAME}_INPUTS];\n");
  replace("{convert}", takes_pixels ? "" : kConvert);
  replace("{in}", takes_pixels ? "golden_input" : "input");
  replace("{compare}", program.is_int8() ? kExact : kNear);
  replace("{input}", list_text(golden.input, "{}"));
  replace("{output}", list_text(golden.output, "{:#.9g}f"));
  replace("{name}", name);
  replace("{NAME}", upper_case(name));
  return generated_note(net, "self-test, which returns 0 if the outputs match") + text;
}

std::string cmake_text(const std::string& name) {
  return fmt::format(
      "# Generated by onetap {1}. Use it with add_subdirectory() and link the target `{0}`, or compile {0}.c and\n"
      "# {0}_weights.c with the rest of your program.\n"
      "cmake_minimum_required(VERSION 3.10)\n"
      "project({0} C)\n\n"
      "add_library({0} STATIC {0}.c {0}_weights.c)\n"
      "target_include_directories({0} PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})\n"
      "set_target_properties({0} PROPERTIES C_STANDARD 99 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)\n\n"
      "# A program of its own, which firmware cannot have: not with add_subdirectory().\n"
      "if(CMAKE_SOURCE_DIR STREQUAL CMAKE_CURRENT_SOURCE_DIR)\n"
      "  add_executable({0}_selftest {0}_selftest.c)\n"
      "  target_link_libraries({0}_selftest PRIVATE {0})\n"
      "  set_target_properties({0}_selftest PROPERTIES C_STANDARD 99 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)\n\n"
      "  enable_testing()\n"
      "  add_test(NAME {0}_selftest COMMAND {0}_selftest)\n"
      "endif()\n",
      name, ONETAP_VERSION);
}

std::string readme_text(const TapNet& net, const CProgram& program, const std::string& name, const CSizes& sizes) {
  const std::string upper = upper_case(name);
  const bool takes_pixels = program.takes_pixels();
  const std::string buffers = fmt::format("static {1} in[{0}_INPUTS]{2} out[{0}_OUTPUTS];", upper,
                                          c_type(program.takes), takes_pixels ? ";\nstatic float" : ",");
  const char* input = takes_pixels
                          ? "planes of red, green and blue: pixels,\nbytes of 0 to 255. The code scales them to"
                          : "planes of red, green and blue, scaled to";
  std::string text = fmt::format("# {}\n\nGenerated by onetap {} from the network `{}` ({}).\n\n", name, ONETAP_VERSION,
                                 identifier_part(net.graph.name()), program.is_int8() ? "int8" : "float32");
  text += fmt::format(
      "| | bytes |\n|---|---:|\n| weights | {} |\n| positions of taps | {} |\n| bias, scales, tables | {} |\n"
      "| code, estimated (Cortex-M4, -Os) | {} |\n| RAM: the arena | {} |\n| stack, estimated (Cortex-M4) | {} |\n\n",
      sizes.weights, sizes.positions, sizes.other, sizes.code, sizes.arena, sizes.stack);
  text += fmt::format(
      "```c\n#include \"{0}.h\"\n\nstatic uint32_t arena[({1}_ARENA_BYTES + 3) / 4];\n"
      "{2}\n\n{0}_run(in, out, arena);\n```\n\n",
      name, upper, buffers);
  text += fmt::format(
      "The code is C99. It allocates nothing, writes to nothing but `out` and the arena, and includes `<stdint.h>` "
      "and\n"
      "`<stddef.h>` alone. Weights are `const` and stay in flash. The input is {3}\n"
      "(pixel / 255 - {0}_MEAN) / {0}_SD.\n\n"
      "Compile `{1}.c` and `{1}_weights.c` with the same flags: how weights are stored depends on the processor.\n\n"
      "`{1}_selftest.c` runs an input that travels along and returns 0 only if the outputs match what onetap computed\n"
      "({2}). Compile it for your device with -D{0}_NO_MAIN and call `{1}_selftest()`, or run it as a\n"
      "program:\n\n"
      "```sh\ncmake -S . -B build && cmake --build build && ctest --test-dir build\n```\n",
      upper, name, program.is_int8() ? "exactly" : "within 1e-4 of the largest output", input);
  if (!net.classes.empty()) {
    text += "\nOutputs:\n\n";
    for (size_t i = 0; i < net.classes.size(); ++i) text += fmt::format("{}. {}\n", i, identifier_part(net.classes[i]));
  }
  return text;
}

}  // namespace

const CLayerSize& CSizes::largest() const {
  return *std::max_element(layers.begin(), layers.end(),
                           [](const CLayerSize& a, const CLayerSize& b) { return a.bytes() < b.bytes(); });
}

std::vector<float> GoldenSample::input_floats(const TapNet& net) const {
  const auto plane = static_cast<int64_t>(input.size()) / net.graph.input().shape[0];
  std::vector<float> floats;
  for (size_t i = 0; i < input.size(); ++i) {
    floats.push_back(kind == CInput::kPixels ? scaled_pixel(net.pixels, static_cast<int64_t>(i) / plane, input[i])
                                             : static_cast<float>(input[i]) * kUnit);
  }
  return floats;
}

GoldenSample golden_input(const Graph& graph, CInput kind) {
  GoldenSample golden;
  golden.kind = kind;
  Random random(1, Purpose::kRandomNet, 1);
  for (int64_t i = 0; i < element_count(graph.input().shape); ++i) {
    const auto number = [&](uint32_t count) { return static_cast<int>(random.below(count)); };
    golden.input.push_back(static_cast<int16_t>(kind == CInput::kPixels ? number(256) : number(255) - 127));
  }
  return golden;
}

void check_c_name(std::string_view name) {
  if (!is_c_identifier(name)) fail_usage("[emit] expected a name that is a C identifier, got '{}'", name);
  if (is_taken_name(name)) fail_usage("[emit] expected a name that neither CMake nor C uses, got '{}'", name);
}

std::string c_identifier_of(std::string_view name) {
  std::string identifier;
  for (const unsigned char c : name) identifier += c > 127 || std::isalnum(c) == 0 ? '_' : static_cast<char>(c);
  // Not in front alone: names that begin with an underscore are the compiler's.
  if (identifier.empty() || std::isalpha(static_cast<unsigned char>(identifier[0])) == 0) identifier.insert(0, "net_");
  return is_c_identifier(identifier) && !is_taken_name(identifier) ? identifier : identifier + "_net";
}

CProject c_project(const TapNet& net, const CProgram& program, const std::string& name, const GoldenSample& golden) {
  check_c_name(name);
  if (golden.kind != program.takes) fail("[emit] expected a golden sample of the program's input");
  const CSource source(net, program, name, CSource::Purpose::kText);
  CProject project;
  project.sizes = source.sizes();
  project.files = {{name + ".h", header_text(net, program, name, project.sizes)},
                   {name + ".c", source.model()},
                   {name + "_weights.c", source.weights()},
                   {name + "_selftest.c", selftest_text(net, program, name, golden)},
                   {"CMakeLists.txt", cmake_text(name)},
                   {"README.md", readme_text(net, program, name, project.sizes)}};
  return project;
}

CProject c_project(const TapNet& net, const CProjectOptions& options, const GoldenSample& golden) {
  return c_project(net, CProgram(net, options.mode, options.input), options.name, golden);
}

CSizes c_sizes(const TapNet& net, const CProgram& program) {
  return CSource(net, program, "net", CSource::Purpose::kSizes).sizes();
}

CSizes c_sizes(const TapNet& net, RowMode mode) {
  return c_sizes(net, CProgram(net, mode));
}

}  // namespace onetap
