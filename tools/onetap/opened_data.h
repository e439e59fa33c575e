// Data sets by what was typed, each opened once.
#pragma once

#include "onetap/data/dataset.h"

#include <map>
#include <memory>
#include <string>

namespace onetap::tool {

// A line on stderr about files of other formats, counted by extension; none where there are none.
void warn_of_other_files(const std::map<std::string, int64_t>& files);

// One line on stderr each about what an image folder holds beside the images of classes: files of other formats, images
// of no class, and what is no file.
void warn_of_skipped(const DataSource& source);

// Names images that could not be decoded so far: others of their class were read instead.
std::string unreadable_warning(const DataSource& source);  // empty where there are none
void warn_of_unreadable(const DataSource& source);

class OpenedData {
 public:
  std::shared_ptr<const DataSource> open(const std::string& spec);
  // Of all that were opened: once their images have been read.
  void warn_of_unreadable() const;

 private:
  std::map<std::string, std::shared_ptr<const DataSource>> opened_;
};

}  // namespace onetap::tool
