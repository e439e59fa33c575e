// ONNX in a build without protobuf: the verbs say so.
#include "onetap/base/fail.h"
#include "tools/onetap/onnx.h"
#include "tools/onetap/verbs.h"

namespace onetap::tool {
namespace {

[[noreturn]] void needs_protobuf(const char* verb) {
  fail_usage("[{}] this onetap was built without protobuf, which ONNX models need", verb);
}

}  // namespace

std::string onnx_bytes(const TapNet&, const OnnxArguments&) {
  needs_protobuf("export");
}

void add_import(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("import", "read a network from an ONNX model (not in this build)");
  verb->allow_extras();
  verb->callback([&action] { action = []() -> int { needs_protobuf("import"); }; });
}

}  // namespace onetap::tool
