#include "onetap/data/folder.h"

#include "onetap/base/fail.h"
#include "onetap/base/file.h"
#include "onetap/base/sha256.h"
#include "onetap/base/text.h"
#include "onetap/data/image_codec.h"
#include "onetap/data/source.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <mutex>
#include <set>
#include <system_error>

namespace fs = std::filesystem;

namespace onetap {
namespace {

class FolderDataset : public Dataset {
 public:
  FolderDataset(fs::path root, bool strict) : root_(std::move(root)), strict_(strict) {}

  void add_class(const std::string& folder, std::vector<std::string> files) {
    const auto label = static_cast<int64_t>(folders_.size());
    folders_.push_back({folder, size(), static_cast<int64_t>(files.size())});
    for (std::string& file : files) entries_.push_back({std::move(file), label});
  }

  int64_t size() const override { return static_cast<int64_t>(entries_.size()); }
  int64_t label(int64_t index) const override { return entries_.at(static_cast<size_t>(index)).label; }
  std::string describe(int64_t index) const override { return path(index).string(); }

  void read(int64_t index, Image& image) const override { read_reduced(index, {}, image); }

  // The next image of the class in the place of one that does not decode: labels stay right, and what a pass reads
  // depends on the files alone.
  void read_reduced(int64_t index, const EighthsNeeded& needed, Image& image) const override {
    const Folder& folder = folders_[static_cast<size_t>(label(index))];
    for (int64_t i = 0; i < folder.images; ++i) {
      const fs::path file = path(folder.first + (index - folder.first + i) % folder.images);
      const std::string bytes = read_file(file, uint64_t{1} << 30);
      try {
        return decode_image(bytes, file.string(), image, needed);
      } catch (const Error& problem) {
        const bool is_last = i + 1 == folder.images;
        if (strict_ || is_last || problem.kind() != ErrorKind::kData) throw;
        const std::lock_guard<std::mutex> lock(mutex_);
        unreadable_.insert(file.string());
      }
    }
  }

  std::vector<std::string> unreadable() const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return {unreadable_.begin(), unreadable_.end()};
  }

 private:
  struct Entry {
    std::string file;
    int64_t label;
  };
  struct Folder {
    std::string name;
    int64_t first, images;
  };

  fs::path path(int64_t index) const {
    const Entry& entry = entries_.at(static_cast<size_t>(index));
    return root_ / folders_[static_cast<size_t>(entry.label)].name / entry.file;
  }

  const fs::path root_;
  const bool strict_;
  std::vector<Folder> folders_;
  std::vector<Entry> entries_;
  mutable std::mutex mutex_;
  mutable std::set<std::string> unreadable_;
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

// The images of a class: of its folder and the folders below, as paths within it. Links to folders are not followed:
// they may lead in circles, or to the images of other classes. Fills source.skipped and source.other_files on the way.
class ClassImages {
 public:
  explicit ClassImages(DataSource& source) : source_(source) {}

  std::vector<std::string> list(const fs::path& directory) {
    add(directory, "", 0);
    return std::move(names_);
  }

 private:
  void add(const fs::path& directory, const fs::path& within, int depth) {
    constexpr int kMostDepth = 32;
    if (depth > kMostDepth) {
      fail_data("[data] expected folders at most {} deep below a class, got more ({})", kMostDepth, directory.string());
    }
    std::vector<fs::path> folders;  // after the list of this one is closed
    for_each_entry(directory, [&](const fs::directory_entry& entry) {
      const fs::path name = entry.path().filename();
      std::error_code error;
      if (is_image_name(name)) {
        // A link that leads nowhere stays: reading it says so, where leaving it out would hide that images are missing.
        if (entry.is_regular_file(error) || error || !entry.exists(error)) {
          names_.push_back((within / name).string());
        } else {
          source_.skipped.push_back(entry.path().string());
        }
      } else if (entry.is_regular_file(error)) {
        ++source_.other_files[lower_extension(name)];
      } else if (entry.is_directory(error)) {
        if (entry.is_symlink(error)) {
          source_.skipped.push_back(entry.path().string());
        } else {
          folders.push_back(name);
        }
      }
    });
    for (const fs::path& name : folders) add(directory / name, within / name, depth + 1);
  }

  DataSource& source_;
  std::vector<std::string> names_;
};

std::vector<std::string> list_images(const fs::path& directory, DataSource& source) {
  std::vector<std::string> names = ClassImages(source).list(directory);
  if (names.empty()) {
    fail_data("[data] expected .jpg, .jpeg, .png, .webp or .bmp files, got none ({}{})", directory.string(),
              source.other_files.empty() ? "" : "; " + other_files_text(source.other_files));
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Images beside the folders of classes or splits belong to no class.
void count_outside(const fs::path& directory, DataSource& source) {
  for_each_entry(directory, [&](const fs::directory_entry& entry) {
    std::error_code ignored;
    if (is_image_name(entry.path()) && entry.is_regular_file(ignored)) ++source.images_outside;
  });
}

std::shared_ptr<const Dataset> open_split(const fs::path& root, const FolderOptions& options, DataSource& source) {
  auto set = std::make_shared<FolderDataset>(root, options.strict);
  for (const std::string& name : source.classes) set->add_class(name, list_images(root / name, source));
  count_outside(root, source);
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

std::vector<std::string> two_classes(const fs::path& root) {
  std::vector<std::string> classes = list_classes(root);
  if (classes.size() < 2) {
    fail_data("[data] expected at least 2 class folders, got {} ({})", classes.size(), root.string());
  }
  return classes;
}

std::string split_key(const std::string& name, const std::string& file, uint64_t seed) {
  const std::string text = fmt::format("{}/{}/{}", seed, name, file);
  Sha256 hash;
  hash.update(text.data(), text.size());
  return hash.hex();
}

// Splits with other names would be taken for classes.
void refuse_splits_as_classes(const std::vector<std::string>& classes, const fs::path& root) {
  static const std::set<std::string> names = {"train", "training", "val", "valid", "validation", "test", "testing"};
  for (std::string name : classes) {
    std::transform(name.begin(), name.end(), name.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
    if (names.count(name) == 0) return;
  }
  fail_data("[data] expected the folders of the splits to be named train and val (or test), got {} ({})",
            join(classes, ", "), root.string());
}

void open_flat(const fs::path& root, const FolderOptions& options, DataSource& source) {
  source.classes = two_classes(root);
  refuse_splits_as_classes(source.classes, root);
  auto train = std::make_shared<FolderDataset>(root, options.strict);
  auto test = std::make_shared<FolderDataset>(root, options.strict);
  for (const std::string& name : source.classes) {
    const std::vector<std::string> files = list_images(root / name, source);
    if (files.size() < 2) {
      fail_data("[data] expected at least 2 images of a class, one to train and one to test with, got 1 ({})",
                (root / name).string());
    }
    std::vector<std::pair<std::string, std::string>> drawn;
    for (const std::string& file : files) drawn.emplace_back(split_key(name, file, options.seed), file);
    std::sort(drawn.begin(), drawn.end());
    const auto all = static_cast<int64_t>(files.size());
    const int64_t count = std::clamp<int64_t>(
        static_cast<int64_t>(std::lround(options.test_share * static_cast<double>(all))), 1, all - 1);
    std::vector<std::string> parts[2];
    for (int64_t i = 0; i < all; ++i) parts[i < count ? 1 : 0].push_back(drawn[static_cast<size_t>(i)].second);
    for (auto& part : parts) std::sort(part.begin(), part.end());
    train->add_class(name, std::move(parts[0]));
    test->add_class(name, std::move(parts[1]));
  }
  count_outside(root, source);
  source.train = train;
  source.test = test;
}

void open_splits(const fs::path& root, const FolderOptions& options, DataSource& source) {
  const fs::path train = root / "train";
  const fs::path test =
      fs::is_directory(root / "val") || !fs::is_directory(root / "test") ? root / "val" : root / "test";
  for (const fs::path& split : {train, test}) {
    if (!fs::is_directory(split)) {
      fail_data(
          "[data] expected {0}/train/CLASS/*.jpg and {0}/val/CLASS/*.jpg (or test), or {0}/CLASS/*.jpg alone, got {1}",
          root.string(), fs::is_directory(root) ? "no folder " + split.filename().string() : named_place(root));
    }
  }
  source.classes = two_classes(train);
  const std::vector<std::string> test_classes = list_classes(test);
  require_subset(source.classes, test_classes, test);
  require_subset(test_classes, source.classes, train);
  source.train = open_split(train, options, source);
  source.test = open_split(test, options, source);
  count_outside(root, source);
}

// Without one of the splits, and with folders of another name.
bool is_flat(const fs::path& root) {
  for (const char* split : {"train", "val", "test"}) {
    if (fs::is_directory(root / split)) return false;
  }
  return fs::is_directory(root) && !list_classes(root).empty();
}

}  // namespace

std::string other_files_text(const std::map<std::string, int64_t>& files) {
  std::vector<std::string> parts;
  for (const auto& [extension, count] : files) {
    parts.push_back(fmt::format("{} {}", count, extension.empty() ? "without an extension" : extension));
  }
  return join(parts, ", ");
}

std::string unreadable_text(size_t count) {
  return fmt::format("{} could not be decoded; the next image of the class is used instead",
                     count == 1 ? "1 image" : fmt::format("{} images", count));
}

DataSource open_folder(const fs::path& root, const FolderOptions& options) {
  DataSource source;
  source.spec = "folder:" + root.string();
  is_flat(root) ? open_flat(root, options, source) : open_splits(root, options, source);
  std::sort(source.skipped.begin(), source.skipped.end());
  source.image_size = 0;
  source.normalisation = usual_normalisation("folder");
  return source;
}

}  // namespace onetap
