// What `onetap export` asks of runs, which need LibTorch.
#pragma once

#include "tools/onetap/onnx.h"

#include <string>

namespace onetap::tool {

struct ExportArguments {
  std::string source, format, out;
  std::string checkpoint = "last";
  OnnxArguments onnx;
};

// The hard network of a run as .safetensors. Of the training module.
void export_run(const ExportArguments& options);

}  // namespace onetap::tool
