// Data sets by what was typed, each opened once.
#pragma once

#include "onetap/data/dataset.h"

#include <map>
#include <memory>
#include <string>

namespace onetap::tool {

class OpenedData {
 public:
  std::shared_ptr<const DataSource> open(const std::string& spec);

 private:
  std::map<std::string, std::shared_ptr<const DataSource>> opened_;
};

}  // namespace onetap::tool
