// Image folders: root/{train,val}/CLASS/*.{jpg,jpeg,png}, classes in the order of their names.
#pragma once

#include "onetap/data/dataset.h"

#include <filesystem>

namespace onetap {

// Lists the files (does not decode or open them). Links count as what they lead to; what is named like an image and is
// no file goes to `skipped`. kData for a missing split, an empty class, or classes that differ
// between the splits. The second split may be called val or test.
DataSource open_folder(const std::filesystem::path& root);

}  // namespace onetap
