// How much memory a network may take: a small file can ask for any amount.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace onetap {

// `asked` bytes; 0: those of ONETAP_MEMORY, or 1 GiB. kUsage if it is negative, or if ONETAP_MEMORY is no size.
int64_t memory_limit(int64_t asked);

// "1500000" (bytes), "64K", "512M", "2G" (powers of 1024); kUsage, naming what was being set, for anything else.
int64_t parse_memory(std::string_view text, std::string_view name);

// Adds up what a network needs, without taking it.
class MemoryNeed {
 public:
  MemoryNeed(std::string network, int64_t limit) : network_(std::move(network)), limit_(limit) {}

  // `part` is for the message: "weights of 'conv1'".
  void add(int64_t bytes, const std::string& part);
  int64_t bytes() const { return bytes_; }
  // kUsage, with the size, its largest part and how to raise the limit, if it is more than the limit.
  void check() const;

 private:
  std::string network_;
  int64_t limit_;
  int64_t bytes_ = 0;
  int64_t largest_bytes_ = 0;
  std::string largest_part_;
};

}  // namespace onetap
