// --memory, of the verbs that run frozen networks.
#pragma once

#include "onetap/runtime/memory.h"

#include <CLI/CLI.hpp>

#include <string>

namespace onetap::tool {

inline void add_memory_option(CLI::App& verb, int64_t& bytes) {
  verb.add_option_function<std::string>(
          "--memory", [&bytes](const std::string& text) { bytes = parse_memory(text, "--memory"); },
          "refuse a network that needs more (default: ONETAP_MEMORY, or 1G)")
      ->option_text("SIZE");
}

}  // namespace onetap::tool
