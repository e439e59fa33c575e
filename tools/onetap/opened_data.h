// Data sets by what was typed, each opened once.
#pragma once

#include "onetap/data/dataset.h"

#include <map>
#include <memory>
#include <string>

namespace onetap::tool {

// One line on stderr about what an image folder holds beside files, if there is any.
void warn_of_skipped(const DataSource& source);

class OpenedData {
 public:
  std::shared_ptr<const DataSource> open(const std::string& spec);

 private:
  std::map<std::string, std::shared_ptr<const DataSource>> opened_;
};

}  // namespace onetap::tool
