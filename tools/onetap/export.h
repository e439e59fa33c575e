// What `onetap export` asks of runs, which need LibTorch.
#pragma once

#include <string>

namespace onetap::tool {

struct ExportArguments {
  std::string source, format, out;
  std::string checkpoint = "last";
};

// The hard network of a run as .safetensors.
void export_run(const ExportArguments& options);

}  // namespace onetap::tool
