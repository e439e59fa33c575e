// onetap export --to c.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace onetap::tool {

struct ExportCArguments {
  std::string source, out;
  std::optional<std::string> name;  // none: that of the .tap file
  std::string schedule = "rows";
  std::string input = "floats";
  int64_t flash = 0, ram = 0;  // limits in bytes; 0: none
  bool json = false;
};

// Writes a folder of C sources and prints what they need. kUsage, with nothing written, if that passes the limits.
void export_c(const ExportCArguments& options);

}  // namespace onetap::tool
