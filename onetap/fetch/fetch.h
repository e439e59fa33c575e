// Downloading a data set: resumable, verified, unpacked in one piece or not at all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace onetap {

struct FetchOptions {
  std::string name;                 // cifar10 or cifar100
  std::filesystem::path directory;  // the folder of the archive appears inside it
  std::string url;                  // "" for the official address
  std::string sha256;               // "" for the official archive's
  int attempts = 5;                 // a broken connection is taken up again where it broke
  bool keep_archive = false;
};

struct FetchProgress {
  uint64_t done = 0;
  uint64_t total = 0;  // 0 while unknown
};

struct FetchEvents {
  std::function<void(const FetchProgress&)> progress;
  std::function<void(const std::string&)> notice;
};

// Returns the folder that now holds the files; does nothing if they are there already.
// kFailure when the server cannot be reached or the disk is full (what came so far is kept for the next try),
// kData when the archive's SHA-256 is not the expected one (nothing is kept).
std::filesystem::path fetch_dataset(const FetchOptions& options, const FetchEvents& events);

std::vector<std::string> fetchable_datasets();

}  // namespace onetap
