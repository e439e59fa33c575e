// What a person sees: messages and the progress line on stderr, data on stdout. Names in them may come from anywhere
// (files, folders, classes): here they lose what a terminal would obey, see printable() in onetap/base/utf8.h.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace onetap::tool {

class Console {
 public:
  enum class Colour { kAuto, kAlways, kNever };

  void configure(Colour colour, int verbosity);  // -1 quiet, 0 normal, 1 verbose

  bool is_quiet() const { return verbosity_ < 0; }
  bool is_verbose() const { return verbosity_ > 0; }
  bool shows_progress() const { return progress_; }

  // One line of text on stdout. What programs read instead (JSON, CSV) has its own way with names.
  void print(std::string_view text);

  // One line on stderr; `note` is silent with -q, `detail` speaks with -v only.
  void note(std::string_view text);
  void detail(std::string_view text);
  void warn(std::string_view text);
  void error(std::string_view text);

  // One line of another process on stderr. On a terminal it takes the place of that one's progress line, if there is
  // any.
  void relay(std::string_view text);

  // Replaces the line at the bottom of a terminal, at most ten times a second; nothing elsewhere.
  void progress(std::string_view text);
  void clear_progress();

 private:
  void line(std::string_view mark, std::string_view colour, std::string_view text);

  int verbosity_ = 0;
  bool colour_ = false;
  bool progress_ = false;
  bool progress_shown_ = false;
  std::chrono::steady_clock::time_point last_progress_;
};

// The one console of the process.
Console& console();

// "1h02m", "3m10s", "12s".
std::string duration_text(double seconds);
// 94.66 from 0.9466. Accuracies have at most six digits (right ones of some thousands of images): 80.6, not
// 80.60000000000001.
double percent(double share);
// "94.66 %" from 0.9466.
std::string percent_text(double share);
// "170.1 MB".
std::string bytes_text(double bytes);

}  // namespace onetap::tool
