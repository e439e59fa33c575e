// Image folders: root/{train,val}/CLASS/*.jpg, or root/CLASS/*.jpg, of which a share of every class becomes the test
// set. Classes are in the order of their names; the images of a class may lie in folders of its folder.
#pragma once

#include "onetap/data/dataset.h"

#include <filesystem>

namespace onetap {

struct FolderOptions {
  double test_share = 0.2;  // of every class, where the folder has no splits of its own
  uint64_t seed = 0;        // of that choice
  bool strict = false;      // an image that cannot be decoded is an error
};

// Lists the files (does not decode or open them). Links to files count as files; what is named like an image and is no
// file, and links to folders below a class, go to `skipped`; files of other formats are counted in `other_files`,
// images outside of the folders of classes in `images_outside`. kData for a missing split, an empty class, or classes
// that differ between the splits. The second split may be called val or test.
//
// Without splits, the files of a class are ordered by the SHA-256 of "SEED/CLASS/FILE", where FILE is the path within
// the folder of the class, and the first of them (the share, rounded, at least one) are the test set: the choice does
// not depend on where the folder lies, and hardly on what is added to it.
//
// In place of an image that cannot be decoded, the next one of its class that can is read, and unreadable() names it;
// kData if a class has none. One that cannot be opened is an error always.
DataSource open_folder(const std::filesystem::path& root, const FolderOptions& options = {});

// "9 .gif, 1 without an extension": DataSource::other_files for a message.
std::string other_files_text(const std::map<std::string, int64_t>& files);

// "2 images could not be decoded; ...": Dataset::unreadable() for a message.
std::string unreadable_text(size_t count);

}  // namespace onetap
