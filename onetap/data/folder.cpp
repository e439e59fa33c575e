#include "onetap/data/folder.h"

#include "onetap/base/fail.h"
#include "onetap/base/file.h"
#include "onetap/data/image_codec.h"

#include <algorithm>
#include <functional>
#include <system_error>

namespace fs = std::filesystem;

namespace onetap {
namespace {

class FolderDataset : public Dataset {
 public:
  explicit FolderDataset(fs::path root) : root_(std::move(root)) {}

  void add_class(const std::string& folder, std::vector<std::string> files) {
    const auto label = static_cast<int64_t>(folders_.size());
    folders_.push_back(folder);
    for (std::string& file : files) entries_.push_back({std::move(file), label});
  }

  int64_t size() const override { return static_cast<int64_t>(entries_.size()); }
  int64_t label(int64_t index) const override { return entries_.at(static_cast<size_t>(index)).label; }
  std::string describe(int64_t index) const override { return path(index).string(); }

  void read(int64_t index, Image& image) const override { read_reduced(index, {}, image); }

  void read_reduced(int64_t index, const EighthsNeeded& needed, Image& image) const override {
    const fs::path file = path(index);
    decode_image(read_file(file, uint64_t{1} << 30), file.string(), image, needed);
  }

 private:
  struct Entry {
    std::string file;
    int64_t label;
  };

  fs::path path(int64_t index) const {
    const Entry& entry = entries_.at(static_cast<size_t>(index));
    return root_ / folders_[static_cast<size_t>(entry.label)] / entry.file;
  }

  fs::path root_;
  std::vector<std::string> folders_;
  std::vector<Entry> entries_;
};

// Calls `each` with everything in `directory` whose name is not hidden.
void for_each_entry(const fs::path& directory, const std::function<void(const fs::directory_entry&)>& each) {
  std::error_code error;
  fs::directory_iterator entries(directory, error);
  if (error) fail_data("[data] cannot list {}: {}", directory.string(), error.message());
  for (const auto& entry : entries) {
    if (entry.path().filename().string()[0] != '.') each(entry);
  }
}

std::vector<std::string> list_classes(const fs::path& directory) {
  std::vector<std::string> names;
  for_each_entry(directory, [&](const fs::directory_entry& entry) {
    std::error_code ignored;
    if (entry.is_directory(ignored)) names.push_back(entry.path().filename().string());
  });
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> list_images(const fs::path& directory, std::vector<std::string>& skipped) {
  std::vector<std::string> names;
  for_each_entry(directory, [&](const fs::directory_entry& entry) {
    if (!is_image_name(entry.path())) return;
    std::error_code error;
    // A link that leads nowhere stays: reading it says so, where leaving it out would hide that images are missing.
    if (entry.is_regular_file(error) || error || !entry.exists(error)) {
      names.push_back(entry.path().filename().string());
    } else {
      skipped.push_back(entry.path().string());
    }
  });
  std::sort(names.begin(), names.end());
  return names;
}

std::unique_ptr<FolderDataset> open_split(const fs::path& root, const std::vector<std::string>& classes,
                                          std::vector<std::string>& skipped) {
  auto set = std::make_unique<FolderDataset>(root);
  for (const std::string& name : classes) {
    std::vector<std::string> files = list_images(root / name, skipped);
    if (files.empty()) {
      fail_data("[data] expected .jpg, .jpeg or .png files, got none ({})", (root / name).string());
    }
    set->add_class(name, std::move(files));
  }
  return set;
}

// kData unless every class of one split has a folder in `other`, the root of the other split.
void require_subset(const std::vector<std::string>& classes, const std::vector<std::string>& other_classes,
                    const fs::path& other) {
  for (const std::string& name : classes) {
    if (!std::binary_search(other_classes.begin(), other_classes.end(), name)) {
      fail_data("[data] expected the same classes in both splits, got no folder '{}' in {}", name, other.string());
    }
  }
}

}  // namespace

DataSource open_folder(const fs::path& root) {
  const fs::path train = root / "train";
  const fs::path test = fs::is_directory(root / "val") ? root / "val" : root / "test";
  for (const fs::path& split : {train, test}) {
    if (!fs::is_directory(split)) {
      fail_data("[data] expected {}/train/CLASS/*.jpg and {}/val/CLASS/*.jpg, got no folder {}", root.string(),
                root.string(), split.filename().string());
    }
  }
  DataSource source;
  source.spec = "folder:" + root.string();
  source.classes = list_classes(train);
  if (source.classes.size() < 2) {
    fail_data("[data] expected at least 2 class folders, got {} ({})", source.classes.size(), train.string());
  }
  const std::vector<std::string> test_classes = list_classes(test);
  require_subset(source.classes, test_classes, test);
  require_subset(test_classes, source.classes, train);
  source.train = open_split(train, source.classes, source.skipped);
  source.test = open_split(test, source.classes, source.skipped);
  std::sort(source.skipped.begin(), source.skipped.end());
  source.image_size = 0;
  source.normalisation = {{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}};
  return source;
}

}  // namespace onetap
