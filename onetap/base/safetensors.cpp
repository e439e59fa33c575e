#include "onetap/base/safetensors.h"

#include "onetap/base/bytes.h"
#include "onetap/base/crc32c.h"
#include "onetap/base/fail.h"
#include "onetap/base/file.h"
#include "onetap/base/json.h"
#include "onetap/base/safetensors_header.h"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <numeric>
#include <tuple>

namespace onetap {
namespace {

constexpr uint64_t kHeaderLimit = 100u << 20;  // the limit of the reference implementation

// Everything before the buffer: header length and header. Puts the tensors in the order of the buffer.
std::string front_of(std::vector<TensorView>& tensors, const Metadata& metadata) {
  // Wide types first, as the reference implementation does: every tensor stays aligned to its type.
  std::stable_sort(tensors.begin(), tensors.end(), [](const TensorView& a, const TensorView& b) {
    return dtype_bytes(a.dtype) > dtype_bytes(b.dtype);
  });
  // Put together by hand: an object of nlohmann's that keeps its order looks through all its keys for each new one.
  std::string text = "{";
  const auto add = [&](const std::string& name, const std::string& value) {
    text += fmt::format("{}{}:{}", text.size() > 1 ? "," : "", json_text(nlohmann::json(name)), value);
  };
  if (!metadata.empty()) add(kMetadataKey, json_text(nlohmann::json(metadata)));
  uint64_t offset = 0;
  for (const TensorView& tensor : tensors) {
    const uint64_t end = offset + tensor.bytes();
    add(tensor.name, fmt::format(R"({{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", dtype_name(tensor.dtype),
                                 fmt::join(tensor.shape, ","), offset, end));
    offset = end;
  }
  text += '}';
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return little_endian(uint64_t{text.size()}) + text;
}

}  // namespace

uint64_t TensorView::bytes() const {
  return checked_bytes(*this, name);
}

std::string safetensors_bytes(std::vector<TensorView> tensors, const Metadata& metadata) {
  std::string bytes = front_of(tensors, metadata);
  for (const TensorView& tensor : tensors) bytes.append(static_cast<const char*>(tensor.data), tensor.bytes());
  return bytes;
}

uint64_t safetensors_length(std::vector<TensorView> tensors, const Metadata& metadata) {
  uint64_t length = front_of(tensors, metadata).size();
  for (const TensorView& tensor : tensors) length += tensor.bytes();
  return length;
}

uint32_t write_safetensors(const std::filesystem::path& path, std::vector<TensorView> tensors,
                           const Metadata& metadata) {
  FileWriter writer(path);
  Crc32c crc;
  const auto write = [&](const void* bytes, size_t count) {
    crc.update(bytes, count);
    writer.write(bytes, count);
  };
  const std::string front = front_of(tensors, metadata);
  write(front.data(), front.size());
  for (const TensorView& tensor : tensors) write(tensor.data, tensor.bytes());
  writer.finish();
  return crc.value();
}

SafetensorsFile SafetensorsFile::parse(std::string bytes, std::string_view label) {
  if (bytes.size() < 8) {
    fail_data("[safetensors] expected at least 8 bytes, got {} ({})", bytes.size(), label);
  }
  uint64_t header_length = 0;
  for (size_t i = 0; i < 8; ++i) {
    header_length |= uint64_t{static_cast<uint8_t>(bytes[i])} << (8 * i);
  }
  if (header_length > kHeaderLimit || header_length > bytes.size() - 8) {
    fail_data("[safetensors] header length {} does not fit a file of {} bytes ({})", header_length, bytes.size(),
              label);
  }
  SafetensorsFile file;
  file.bytes_.assign(bytes.begin(), bytes.end());
  std::string().swap(bytes);
  const char* buffer = file.bytes_.data() + 8 + header_length;
  const uint64_t buffer_bytes = file.bytes_.size() - 8 - header_length;
  SafetensorsHeader header = parse_safetensors_header({file.bytes_.data() + 8, header_length}, label);
  file.metadata_ = std::move(header.metadata);
  // Stable: tensors without bytes lie at one place, and stay in the order of their names.
  std::stable_sort(header.entries.begin(), header.entries.end(),
                   [](const auto& a, const auto& b) { return std::tie(a.begin, a.end) < std::tie(b.begin, b.end); });
  uint64_t next = 0;
  for (SafetensorsHeader::Entry& item : header.entries) {
    if (item.begin != next || item.end > buffer_bytes) {
      fail_data("[safetensors] tensor '{}' expected at offset {} of {}, got [{}, {}] ({})", item.tensor.name, next,
                buffer_bytes, item.begin, item.end, label);
    }
    item.tensor.data = buffer + item.begin;
    next = item.end;
    file.tensors_.push_back(std::move(item.tensor));
  }
  if (next != buffer_bytes) {
    fail_data("[safetensors] {} bytes after the last tensor ({})", buffer_bytes - next, label);
  }
  file.by_name_.resize(file.tensors_.size());
  std::iota(file.by_name_.begin(), file.by_name_.end(), size_t{0});
  std::sort(file.by_name_.begin(), file.by_name_.end(),
            [&](size_t a, size_t b) { return file.tensors_[a].name < file.tensors_[b].name; });
  return file;
}

SafetensorsFile SafetensorsFile::read(const std::filesystem::path& path) {
  return parse(read_file(path), path.string());
}

const TensorView* SafetensorsFile::find(std::string_view name) const {
  const auto found = std::lower_bound(by_name_.begin(), by_name_.end(), name,
                                      [&](size_t at, std::string_view text) { return tensors_[at].name < text; });
  return found != by_name_.end() && tensors_[*found].name == name ? &tensors_[*found] : nullptr;
}

}  // namespace onetap
