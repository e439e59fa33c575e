// Which data sets a reproduction can be trained on.
#pragma once

#include "onetap/reproduce/experiment.h"

#include <map>
#include <string>
#include <vector>

namespace onetap::tool {

// From what was typed after --data, and the cache that `onetap data fetch` fills: specs by the names of
// experiment_data(). kUsage for a set that no experiment uses, kData for a folder that does not hold its set.
std::map<std::string, std::string> find_experiment_data(const std::vector<std::string>& specs);

// How to get a data set that is missing.
std::string fetch_advice(const std::string& name);

}  // namespace onetap::tool
