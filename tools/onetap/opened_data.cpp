#include "tools/onetap/opened_data.h"

#include "onetap/base/text.h"
#include "onetap/data/folder.h"
#include "onetap/data/source.h"
#include "tools/onetap/console.h"

#include <fmt/format.h>

namespace onetap::tool {

void warn_of_other_files(const std::map<std::string, int64_t>& files) {
  if (!files.empty())
    console().warn(fmt::format("left out files that are not read as images: {}", other_files_text(files)));
}

void warn_of_skipped(const DataSource& source) {
  constexpr size_t kNamed = 5;
  warn_of_other_files(source.other_files);
  if (source.skipped.empty()) return;
  const size_t count = source.skipped.size(), named = std::min(count, kNamed);
  std::vector<std::string> names(source.skipped.begin(), source.skipped.begin() + static_cast<std::ptrdiff_t>(named));
  if (count > named) names.push_back(fmt::format("and {} more", count - named));
  console().warn(fmt::format("left out {} named like images that are not regular files: {}",
                             count == 1 ? "1 path" : fmt::format("{} paths", count), join(names, ", ")));
}

std::shared_ptr<const DataSource> OpenedData::open(const std::string& spec) {
  std::shared_ptr<const DataSource>& source = opened_[spec];
  if (source == nullptr) {
    source = std::make_shared<DataSource>(open_data(spec));
    warn_of_skipped(*source);
  }
  return source;
}

}  // namespace onetap::tool
