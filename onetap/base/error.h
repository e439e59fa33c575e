// The one exception type of the library. Verbs map its kind to an exit code.
#pragma once

#include <stdexcept>
#include <string>

namespace onetap {

// What went wrong, as far as a caller (or a shell script) can act on it.
enum class ErrorKind {
  kFailure,  // the machine or the run failed: disk full, loss became NaN, ...
  kUsage,    // the caller asked for something impossible: width 0, unknown key, ...
  kCheck,    // a check that was asked for did not hold
  kData,     // a file is missing or does not hold what it should
};

// Messages read "[module] expected X, got Y (where)", on one line: names in them may come from anywhere, so what a
// terminal would obey is spelled out and what is endless is cut (see printable() in utf8.h).
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message);

  ErrorKind kind() const noexcept { return kind_; }

  // 1 failure, 2 usage, 3 check failed, 4 bad or missing data.
  int exit_code() const noexcept;

 private:
  ErrorKind kind_;
};

}  // namespace onetap
