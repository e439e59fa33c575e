// --target, of the verbs that run frozen networks by kernels of choice.
#pragma once

#include "onetap/base/text.h"
#include "onetap/kernels/kernel_set.h"
#include "tools/onetap/offered_words.h"

#include <CLI/CLI.hpp>

#include <string>

namespace onetap::tool {

// The model checks the name: what there is depends on build, CPU and type of the network.
inline void add_target_option(CLI::App& verb, std::string& target) {
  verb.add_option("--target", target, "kernels to use (default: ONETAP_TARGET, or the best for this CPU)")
      ->check(offered(target_names()))
      ->option_text(join(target_names(), "|"));
}

}  // namespace onetap::tool
