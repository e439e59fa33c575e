#include "onetap/journal/good_lines.h"

#include "onetap/base/fail.h"
#include "onetap/base/file.h"
#include "onetap/base/text.h"
#include "onetap/journal/attention_log.h"
#include "onetap/journal/metrics.h"

#include <system_error>

namespace onetap {

template <typename Line>
std::vector<Line> read_good_lines(const std::filesystem::path& path, std::vector<std::string>& notices) {
  std::vector<Line> lines;
  std::error_code error;
  if (!std::filesystem::exists(path, error) && !error) return lines;
  std::string text;
  try {
    text = read_file(path, uint64_t{1} << 30);
  } catch (const Error& problem) {
    notices.emplace_back(problem.what());
    return lines;
  }
  std::string first;  // says what is wrong; a file may hold millions
  size_t bad = 0;
  for_each_whole_line(text, [&](std::string_view line, size_t number) {
    try {
      lines.push_back(Line::parse(line, path.string() + ":" + std::to_string(number)));
    } catch (const Error& problem) {
      if (++bad == 1) first = problem.what();
    }
  });
  if (bad == 0) return lines;
  notices.push_back(bad == 1 ? first : fmt::format("{}; {} more lines are left out", first, bad - 1));
  return lines;
}

template std::vector<MetricLine> read_good_lines(const std::filesystem::path&, std::vector<std::string>&);
template std::vector<AttentionLine> read_good_lines(const std::filesystem::path&, std::vector<std::string>&);

}  // namespace onetap
