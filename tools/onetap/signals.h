// SIGINT and SIGTERM as a request to stop after the present step; a second one ends at once.
#pragma once

#include <atomic>

namespace onetap::tool {

// Set by the handlers once install_signal_handlers() has been called.
extern std::atomic<bool> stop_requested;

void install_signal_handlers(bool speak = true);

// 130 after SIGINT, 143 after SIGTERM.
int signal_exit_code();

}  // namespace onetap::tool
