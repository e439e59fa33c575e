#include "tools/onetap/opened_data.h"

#include "onetap/base/text.h"
#include "onetap/data/folder.h"
#include "onetap/data/source.h"
#include "tools/onetap/console.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

namespace onetap::tool {
namespace {

// "a, b and 3 more".
std::string some_of(const std::vector<std::string>& names) {
  constexpr size_t kNamed = 5;
  const size_t named = std::min(names.size(), kNamed);
  std::vector<std::string> shown(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(named));
  if (names.size() > named) shown.push_back(fmt::format("and {} more", names.size() - named));
  return join(shown, ", ");
}

}  // namespace

void warn_of_other_files(const std::map<std::string, int64_t>& files) {
  if (!files.empty()) console().warn(fmt::format("skipped files of unsupported formats: {}", other_files_text(files)));
}

void warn_of_skipped(const DataSource& source) {
  warn_of_other_files(source.other_files);
  if (const int64_t count = source.images_outside; count > 0) {
    console().warn(fmt::format("skipped {} outside of the class folders",
                               count == 1 ? "1 image" : fmt::format("{} images", count)));
  }
  if (const size_t count = source.skipped.size(); count > 0) {
    console().warn(fmt::format(
        "skipped {}: {}",
        count == 1 ? "1 path that is not a regular file" : fmt::format("{} paths that are not regular files", count),
        some_of(source.skipped)));
  }
}

std::string unreadable_warning(const DataSource& source) {
  std::set<std::string> names;  // parts of one folder name the same files
  for (const Dataset* data : {source.train.get(), source.validation.get(), source.test.get()}) {
    if (data == nullptr) continue;
    for (const std::string& name : data->unreadable()) names.insert(name);
  }
  if (names.empty()) return "";
  return fmt::format("{}: {}", unreadable_text(names.size()), some_of({names.begin(), names.end()}));
}

void warn_of_unreadable(const DataSource& source) {
  const std::string text = unreadable_warning(source);
  if (!text.empty()) console().warn(text);
}

std::shared_ptr<const DataSource> OpenedData::open(const std::string& spec) {
  std::shared_ptr<const DataSource>& source = opened_[spec];
  if (source == nullptr) {
    source = std::make_shared<DataSource>(open_data(spec));
    warn_of_skipped(*source);
  }
  return source;
}

void OpenedData::warn_of_unreadable() const {
  for (const auto& [spec, source] : opened_) {
    if (source != nullptr) tool::warn_of_unreadable(*source);
  }
}

}  // namespace onetap::tool
