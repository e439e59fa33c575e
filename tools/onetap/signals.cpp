#include "tools/onetap/signals.h"

#include <csignal>
#include <unistd.h>

namespace onetap::tool {

std::atomic<bool> stop_requested{false};

namespace {

volatile std::sig_atomic_t signal_number = 0;
bool speaks = true;

void on_signal(int number) {
  // The end of a terminal is told twice: by the shell and by the kernel.
  if (stop_requested.exchange(true)) {
    if (number != SIGHUP) ::_exit(128 + number);
    return;
  }
  signal_number = number;
  if (!speaks) return;
  static const char kMessage[] = "\nstopping after this step, with a checkpoint (a second signal stops at once)\n";
  (void)!::write(STDERR_FILENO, kMessage, sizeof(kMessage) - 1);
}

}  // namespace

void install_signal_handlers(bool speak) {
  speaks = speak;
  struct sigaction action {};
  action.sa_handler = on_signal;
  ::sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  // The end of the terminal, unless nohup has told it to be ignored.
  struct sigaction hangup {};
  if (::sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler != SIG_IGN) {
    ::sigaction(SIGHUP, &action, nullptr);
  }
}

int signal_exit_code() {
  const int number = signal_number;
  return 128 + (number != 0 ? number : SIGTERM);
}

}  // namespace onetap::tool
