// SHA-256 (FIPS 180-4), for checking downloads and checkpoint files.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

namespace onetap {

class Sha256 {
 public:
  void update(const void* bytes, size_t count);
  // The digest in lower-case hex; the object is spent afterwards.
  std::string hex();

 private:
  void block(const uint8_t* bytes);

  std::array<uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> pending_{};
  size_t pending_count_ = 0;
  uint64_t total_ = 0;
};

std::string sha256_file(const std::filesystem::path& path);

}  // namespace onetap
