#include "onetap/journal/kept_lines.h"

#include "onetap/base/fail.h"
#include "onetap/base/file.h"
#include "onetap/base/text.h"
#include "onetap/journal/attention_log.h"
#include "onetap/journal/metrics.h"

#include <optional>
#include <system_error>

namespace fs = std::filesystem;

namespace onetap {
namespace {

constexpr uint64_t kMaxBytes = uint64_t{1} << 30;

bool belongs(int64_t step, const RunState& state) {
  return step < state.step || (step == state.step && state.epoch_logged);
}

template <typename Line>
std::optional<Line> parse_good(std::string_view text) {
  try {
    return Line::parse(text, "");
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Why the first `bytes` of the text are not all the lines of the state; empty if they are.
template <typename Line>
std::string problem_of(const std::string& text, const RunState& state, uint64_t bytes) {
  if (text.size() < bytes) return fmt::format("expected at least {} bytes on record, got {}", bytes, text.size());
  if (bytes > 0 && text[bytes - 1] != '\n') return fmt::format("expected the end of a line at byte {}", bytes);
  const std::string_view whole = text;
  std::string problem;
  for_each_whole_line(whole.substr(0, bytes), [&](std::string_view line, size_t number) {
    const auto parsed = parse_good<Line>(line);
    if (problem.empty() && (!parsed || !belongs(parsed->step, state))) problem = fmt::format("line {}", number);
  });
  if (!problem.empty()) return problem;
  for_each_whole_line(whole.substr(bytes), [&](std::string_view line, size_t) {
    const auto parsed = parse_good<Line>(line);
    if (parsed && belongs(parsed->step, state)) problem = fmt::format("more than {} bytes on record", bytes);
  });
  return problem;
}

fs::path free_name(const fs::path& path) {
  fs::path aside = path;
  aside += ".damaged";
  for (int number = 2; fs::exists(aside); ++number) {
    aside = path;
    aside += fmt::format(".damaged-{}", number);
  }
  return aside;
}

}  // namespace

template <typename Line>
uint64_t kept_lines(const fs::path& path, const RunState& state, uint64_t bytes, const JournalNotice& notice) {
  std::error_code error;
  const std::string text = fs::exists(path, error) ? read_file(path, kMaxBytes) : std::string();
  const std::string problem = problem_of<Line>(text, state, bytes);
  if (problem.empty()) return bytes;
  std::string kept;
  int64_t dropped = 0;
  for_each_whole_line(text, [&](std::string_view line, size_t) {
    const auto parsed = parse_good<Line>(line);
    if (parsed && belongs(parsed->step, state)) {
      kept.append(line).append("\n");
    } else if (!parsed) {
      ++dropped;
    }
  });
  if (kept == text) {
    if (notice) notice(fmt::format("{} does not fit its checkpoint: {}", path.string(), problem));
    return kept.size();
  }
  const fs::path aside = free_name(path);
  write_file_atomic(aside, text);
  write_file_atomic(path, kept);
  if (notice) {
    notice(fmt::format("{} is damaged ({}): {} unreadable line(s) left out, the original file is {}", path.string(),
                       problem, dropped, aside.string()));
  }
  return kept.size();
}

template uint64_t kept_lines<MetricLine>(const fs::path&, const RunState&, uint64_t, const JournalNotice&);
template uint64_t kept_lines<AttentionLine>(const fs::path&, const RunState&, uint64_t, const JournalNotice&);

}  // namespace onetap
