#include "tools/onetap/opened_data.h"

#include "onetap/data/source.h"

namespace onetap::tool {

std::shared_ptr<const DataSource> OpenedData::open(const std::string& spec) {
  std::shared_ptr<const DataSource>& source = opened_[spec];
  if (source == nullptr) source = std::make_shared<DataSource>(open_data(spec));
  return source;
}

}  // namespace onetap::tool
