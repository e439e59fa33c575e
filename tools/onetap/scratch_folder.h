// A folder for files that nobody is to keep.
#pragma once

#include "onetap/base/fail.h"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace onetap::tool {

// In the system's folder for such things; it goes with this.
class ScratchFolder {
 public:
  explicit ScratchFolder(const std::string& name) {
    namespace fs = std::filesystem;
    std::string pattern = (fs::temp_directory_path() / ("onetap-" + name + "-XXXXXX")).string();
    const char* made = ::mkdtemp(pattern.data());
    if (made == nullptr) fail("[{}] cannot make a folder in {}", name, fs::temp_directory_path().string());
    path_ = made;
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  std::string file(const char* name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace onetap::tool
