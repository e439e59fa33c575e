#include "tools/onetap/console.h"

#include "onetap/base/utf8.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sys/ioctl.h>
#include <unistd.h>

namespace onetap::tool {
namespace {

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

bool is_dumb_terminal() {
  const char* term = std::getenv("TERM");
  return term == nullptr || std::string_view(term) == "dumb";
}

size_t terminal_columns() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

// A terminal that is gone or a full disk behind stderr ends nothing: fmt::print would throw.
template <typename... T>
void show(fmt::format_string<T...> format, T&&... values) {
  const std::string text = fmt::format(format, std::forward<T>(values)...);
  (void)!std::fwrite(text.data(), 1, text.size(), stderr);
}

// Another process may colour its lines: ESC [ numbers m.
std::string without_colours(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    const size_t end = text.substr(0, 2) == "\033[" ? text.find_first_not_of("0123456789;", 2) : std::string_view::npos;
    const bool is_colour = end != std::string_view::npos && text[end] == 'm';
    if (!is_colour) plain += text[0];
    text.remove_prefix(is_colour ? end + 1 : 1);
  }
  return plain;
}

}  // namespace

Console& console() {
  static Console instance;
  return instance;
}

void Console::configure(Colour colour, int verbosity) {
  const bool terminal = ::isatty(STDERR_FILENO) != 0;
  verbosity_ = verbosity;
  colour_ =
      colour == Colour::kAlways || (colour == Colour::kAuto && terminal && !is_set("NO_COLOR") && !is_dumb_terminal());
  progress_ = terminal && !is_dumb_terminal() && verbosity >= 0;
}

void Console::line(std::string_view mark, std::string_view colour, std::string_view text) {
  clear_progress();
  const std::string shown = printable(text);
  if (colour_ && !mark.empty()) {
    show("\033[{}m{}\033[0m{}\n", colour, mark, shown);
  } else {
    show("{}{}\n", mark, shown);
  }
}

void Console::print(std::string_view text) {
  std::cout << printable(text) << '\n';
}

void Console::note(std::string_view text) {
  if (!is_quiet()) line("", "", text);
}
void Console::detail(std::string_view text) {
  if (is_verbose()) line("", "", text);
}
void Console::warn(std::string_view text) {
  line("warning: ", "33", text);
}
void Console::error(std::string_view text) {
  line("onetap: ", "31", text);
}

void Console::relay(std::string_view text) {
  show("{}{}\n", progress_ ? "\r\033[K" : "", printable(without_colours(text)));
}

void Console::progress(std::string_view text) {
  if (!progress_) return;
  const auto now = std::chrono::steady_clock::now();
  if (progress_shown_ && now - last_progress_ < std::chrono::milliseconds(100)) return;
  last_progress_ = now;
  progress_shown_ = true;
  // Names apart, our progress texts are ASCII, so characters are columns.
  show("\r{}\033[K", encode_utf8(decode_utf8(printable(text)).substr(0, terminal_columns() - 1)));
  std::fflush(stderr);
}

void Console::clear_progress() {
  if (!progress_shown_) return;
  show("\r\033[K");
  progress_shown_ = false;
}

std::string duration_text(double seconds) {
  const auto total = static_cast<long long>(std::llround(std::max(0.0, std::min(seconds, 1e9))));
  if (total >= 3600) return fmt::format("{}h{:02}m", total / 3600, total % 3600 / 60);
  if (total >= 60) return fmt::format("{}m{:02}s", total / 60, total % 60);
  return fmt::format("{}s", total);
}

double percent(double share) {
  return std::round(share * 1e10) / 1e8;
}

std::string percent_text(double share) {
  return fmt::format("{:.2f} %", 100 * share);
}

std::string bytes_text(double bytes) {
  const char* const units[] = {"B", "kB", "MB", "GB"};
  size_t unit = 0;
  while (bytes >= 1000 && unit < 3) {
    bytes /= 1000;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", bytes, unit == 0 ? 0 : 1, units[unit]);
}

}  // namespace onetap::tool
