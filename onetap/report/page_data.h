// What the report page knows about its runs, as the JSON its script reads. Every number the page shows is computed
// here.
#pragma once

#include "onetap/report/page.h"

#include <string>
#include <vector>

namespace onetap {

// One JSON object without any '<', so that it can stand inside a script element.
std::string page_data(const std::vector<ReportRun>& runs);

}  // namespace onetap
