#include "onetap/journal/run_sums.h"

#include "onetap/base/fail.h"
#include "onetap/base/file.h"
#include "onetap/base/sha256.h"
#include "onetap/base/text.h"

#include <optional>
#include <system_error>

namespace onetap {
namespace {

// As sha256sum prints it.
std::string sum_line(const std::string& name, std::string_view text) {
  Sha256 hash;
  hash.update(text.data(), text.size());
  return fmt::format("{}  {}\n", hash.hex(), name);
}

}  // namespace

std::string sums_text(const std::map<std::string, std::string>& files) {
  std::string lines;
  for (const auto& [name, text] : files) lines += sum_line(name, text);
  return lines;
}

std::string read_summed(const std::filesystem::path& file, const std::filesystem::path& sums, uint64_t limit) {
  std::string text = read_file(file, limit);
  std::error_code error;
  if (!std::filesystem::exists(sums, error) && !error) return text;
  const std::string expected = sum_line(file.filename().string(), text);
  bool found = false;
  for_each_whole_line(read_file(sums, 1u << 16), [&](std::string_view line, size_t) {
    found = found || line == std::string_view(expected).substr(0, expected.size() - 1);
  });
  if (found) return text;
  fail_data(
      "[run] expected {0} as it was when the run was created, got another by its checksum in {1}: one of them was "
      "damaged or edited ({2}; settings that may change are flags of 'onetap train --resume', others need a new run; "
      "without {1} the file is used as it is)",
      file.filename().string(), sums.filename().string(), file.string());
}

}  // namespace onetap
