// What to do without the training module: by how this onetap is distributed.
#pragma once

namespace onetap::tool {

// Ends "the training module is not installed".
const char* training_advice();

}  // namespace onetap::tool
