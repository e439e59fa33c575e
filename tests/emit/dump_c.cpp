// Writes generated C of networks with random weights, for tests and measurements on other machines.
//   dump_c FOLDER ARCH WIDTH SHARE TYPE SCHEDULE [INPUT]
// ARCH: an architecture of the zoo, random:SEED, or signed (taps that read values of both signs). SHARE: dense, or what
// sal layers share (1, 4, 4x4, all, ...); -drop behind it leaves a quarter of the sets empty. TYPE: float or int8.
// SCHEDULE: rows or layers. INPUT: floats (default) or pixels. The sources go to FOLDER and are called net; what they
// need is printed.
#include "onetap/base/file.h"
#include "onetap/emit/c_project.h"
#include "onetap/graph/text.h"
#include "tests/emit/zoo_net.h"
#include "tests/quant/random_int8_net.h"

#include <fmt/format.h>

#include <cstdlib>
#include <iostream>

using namespace onetap;
using namespace onetap::testing;

namespace {

constexpr const char* kSigned =
    "onetap-net 1\nx = input 3x12x12\nc1 = conv x out=18 kernel=3 pad=1 bias=1\nc2 = conv c1 out=14 kernel=3 pad=1 "
    "stride=2 method=sal taps=1 share=2x4\nc3 = conv c2 out=13 kernel=3 pad=1 method=sal taps=2 share=4x4\ng = gap c3\n"
    "fc = linear g out=10\n";

TapNet network(const std::string& arch, int64_t width, const std::string& share) {
  if (arch.rfind("random:", 0) == 0) return random_net(static_cast<uint64_t>(std::atoll(arch.c_str() + 7)));
  if (arch == "signed") return random_tap_net(frozen_form(parse_network(kSigned)).graph, 1);
  NetSpec spec;
  spec.arch = arch;
  if (width > 0) spec.width = width;
  return zoo_net(spec, share);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7 && argc != 8) return 2;
  try {
    TapNet net = network(argv[2], std::atoll(argv[3]), argv[4]);
    if (std::string(argv[5]) == "int8") net = quantized(net, 1);
    net.pixels = kPixels;
    CProjectOptions options;
    options.name = "net";
    options.mode = std::string(argv[6]) == "rows" ? RowMode::kRows : RowMode::kLayers;
    if (argc == 8 && std::string(argv[7]) == "pixels") options.input = CInput::kPixels;
    const CProject project = c_project(net, options, golden_of(net, options.input));
    const std::filesystem::path folder = argv[1];
    make_directories(folder);
    for (const CFile& file : project.files) write_file_atomic(folder / file.name, file.text);
    const CSizes& sizes = project.sizes;
    std::cout << fmt::format("weights {} positions {} tables {} code {} ram {} stack {}\n", sizes.weights,
                             sizes.positions, sizes.other, sizes.code, sizes.arena, sizes.stack);
    if (std::getenv("DUMP_TEXT") != nullptr) std::cout << network_text(net.graph);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
