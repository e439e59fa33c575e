// ONNX in a build without protobuf: the verbs say so.
#include "tools/onetap/missing_peer.h"
#include "tools/onetap/onnx.h"
#include "tools/onetap/verbs.h"

#include <fmt/format.h>

namespace onetap::tool {
namespace {

// What was to be compared by means of ONNX is left out; nothing else tells this from other errors of usage.
[[noreturn]] void needs_protobuf(const char* verb) {
  throw MissingPeer(fmt::format("[{}] this onetap was built without protobuf, which ONNX models need", verb));
}

}  // namespace

std::string onnx_bytes(const TapNet&, const OnnxArguments&) {
  needs_protobuf("onnx");
}

void add_import(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("import", "read a network from an ONNX model (not in this build)");
  verb->allow_extras();
  verb->callback([&action] { action = []() -> int { needs_protobuf("import"); }; });
}

}  // namespace onetap::tool
