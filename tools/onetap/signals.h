// SIGINT, SIGTERM and SIGHUP (unless nohup has it ignored) as a request to stop after the present step; a second SIGINT
// or SIGTERM ends at once.
#pragma once

#include <atomic>

namespace onetap::tool {

// Set by the handlers once install_signal_handlers() has been called.
extern std::atomic<bool> stop_requested;

void install_signal_handlers(bool speak = true);

// 129 after SIGHUP, 130 after SIGINT, 143 after SIGTERM.
int signal_exit_code();

}  // namespace onetap::tool
