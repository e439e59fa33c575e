#include "onetap/fetch/download.h"

#include "onetap/base/fail.h"
#include "onetap/base/file.h"

#include <curl/curl.h>

#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

namespace fs = std::filesystem;

namespace onetap {
namespace {

constexpr long kOk = 200, kPartial = 206, kRangeNotSatisfiable = 416;

struct Transfer {
  CURL* handle = nullptr;
  const fs::path* part = nullptr;
  const FetchEvents* events = nullptr;
  uint64_t have = 0;                   // bytes on disk when this attempt began
  std::unique_ptr<FileWriter> writer;  // opened by the first byte of a good answer
  std::exception_ptr error;
};

size_t on_bytes(char* bytes, size_t, size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  try {
    if (!transfer.writer) {
      long status = 0;
      curl_easy_getinfo(transfer.handle, CURLINFO_RESPONSE_CODE, &status);
      // 200 to a range request: the server sends the whole file again.
      const bool append = status == kPartial;
      if (!append) transfer.have = 0;
      transfer.writer = std::make_unique<FileWriter>(*transfer.part,
                                                     append ? FileWriter::Mode::kAppend : FileWriter::Mode::kTruncate);
    }
    transfer.writer->write(bytes, count);
    return count;
  } catch (...) {
    transfer.error = std::current_exception();
    return 0;  // curl stops with CURLE_WRITE_ERROR
  }
}

int on_progress(void* user, curl_off_t total, curl_off_t done, curl_off_t, curl_off_t) {
  const auto& transfer = *static_cast<Transfer*>(user);
  if (transfer.events->progress && total > 0) {
    transfer.events->progress(
        {transfer.have + static_cast<uint64_t>(done), transfer.have + static_cast<uint64_t>(total)});
  }
  return 0;
}

// One attempt; returns "" when the file is whole, else why to try again. Throws where trying again is no use.
std::string attempt(const std::string& url, const fs::path& part, const FetchEvents& events) {
  const std::unique_ptr<CURL, void (*)(CURL*)> handle(curl_easy_init(), curl_easy_cleanup);
  if (!handle) fail("[fetch] libcurl does not start");
  Transfer transfer;
  transfer.handle = handle.get();
  transfer.part = &part;
  transfer.events = &events;
  std::error_code missing;
  const uint64_t size = fs::file_size(part, missing);
  transfer.have = missing ? 0 : size;

  CURL* curl = handle.get();
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(curl, CURLOPT_MAXREDIRS, 5L);
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, 30L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);  // a stalled connection counts as broken
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, 60L);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "onetap");
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_bytes);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &transfer);
  if (transfer.have > 0) {
    curl_easy_setopt(curl, CURLOPT_RANGE, fmt::format("{}-", transfer.have).c_str());
  }
  const CURLcode code = curl_easy_perform(curl);
  if (transfer.error) std::rethrow_exception(transfer.error);
  if (transfer.writer) transfer.writer->finish();

  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  // Nothing beyond what we have: it is whole (or not the same file: its checksum will tell).
  if (status == kRangeNotSatisfiable && transfer.have > 0) return "";
  if (code == CURLE_OK && (status == kOk || status == kPartial)) return "";
  if (code == CURLE_HTTP_RETURNED_ERROR && status >= 400 && status < 500 && status != 408 && status != 429) {
    fail("[fetch] the server answers {} to {}", status, url);
  }
  return code == CURLE_OK ? fmt::format("status {}", status) : curl_easy_strerror(code);
}

}  // namespace

void download(const std::string& url, const fs::path& part, int attempts, const FetchEvents& events) {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  std::string problem;
  for (int i = 0; i < attempts; ++i) {
    if (i > 0) {
      if (events.notice) events.notice(fmt::format("{}; trying again", problem));
      std::this_thread::sleep_for(std::chrono::milliseconds(500) * (1 << (i - 1)));
    }
    problem = attempt(url, part, events);
    if (problem.empty()) return;
  }
  fail("[fetch] gave up after {} attempts at {}: {} (the data received so far are kept; the same command resumes)",
       attempts, url, problem);
}

}  // namespace onetap
