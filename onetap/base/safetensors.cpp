#include "onetap/base/safetensors.h"

#include "onetap/base/bytes.h"
#include "onetap/base/crc32c.h"
#include "onetap/base/fail.h"
#include "onetap/base/file.h"
#include "onetap/base/json.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <set>

namespace onetap {
namespace {

constexpr uint64_t kHeaderLimit = 100u << 20;  // the limit of the reference implementation
constexpr const char* kMetadataKey = "__metadata__";

// Bytes of a tensor, or a data error when the product leaves 63 bits.
uint64_t checked_bytes(const TensorView& tensor, std::string_view label) {
  uint64_t bytes = dtype_bytes(tensor.dtype);
  for (const int64_t extent : tensor.shape) {
    if (extent < 0 || (extent > 0 && bytes > (uint64_t{1} << 62) / static_cast<uint64_t>(extent))) {
      fail_data("[safetensors] impossible shape for tensor '{}' ({})", tensor.name, label);
    }
    bytes *= static_cast<uint64_t>(extent);
  }
  return bytes;
}

nlohmann::json parse_header(std::string_view text, std::string_view label) {
  std::set<std::string> seen;
  std::string doubled;
  const auto watch_keys = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& value) {
    if (event == nlohmann::json::parse_event_t::key && depth == 1 && !seen.insert(value.get<std::string>()).second) {
      doubled = value.get<std::string>();
    }
    return true;
  };
  nlohmann::json header = nlohmann::json::parse(text, watch_keys, /*allow_exceptions=*/false);
  if (header.is_discarded() || !header.is_object()) {
    fail_data("[safetensors] the header is not a JSON object ({})", label);
  }
  if (!doubled.empty()) fail_data("[safetensors] tensor '{}' appears twice ({})", doubled, label);
  return header;
}

struct Placed {
  TensorView tensor;
  uint64_t begin = 0;
  uint64_t end = 0;
};

Placed parse_entry(const std::string& name, const nlohmann::json& entry, std::string_view label) {
  Placed placed;
  placed.tensor.name = name;
  const auto bad = [&](const char* what) {
    fail_data("[safetensors] tensor '{}' has no valid {} ({})", name, what, label);
  };
  if (!entry.is_object()) bad("description");
  const auto dtype = entry.find("dtype");
  if (dtype == entry.end() || !dtype->is_string()) bad("dtype");
  const auto& spelled = dtype->get_ref<const std::string&>();
  const DTypeInfo* known = find_dtype(spelled);
  if (known == nullptr) bad("dtype");
  placed.tensor.dtype = known->dtype;

  const auto shape = entry.find("shape");
  if (shape == entry.end() || !shape->is_array()) bad("shape");
  for (const auto& extent : *shape) {
    if (!extent.is_number_unsigned() || extent.get<uint64_t>() > (uint64_t{1} << 62)) bad("shape");
    placed.tensor.shape.push_back(extent.get<int64_t>());
  }

  const auto offsets = entry.find("data_offsets");
  if (offsets == entry.end() || !offsets->is_array() || offsets->size() != 2 || !(*offsets)[0].is_number_unsigned() ||
      !(*offsets)[1].is_number_unsigned()) {
    bad("data_offsets");
  }
  placed.begin = (*offsets)[0].get<uint64_t>();
  placed.end = (*offsets)[1].get<uint64_t>();
  const uint64_t bytes = checked_bytes(placed.tensor, label);
  if (placed.begin > placed.end || placed.end - placed.begin != bytes) {
    fail_data("[safetensors] tensor '{}' needs {} bytes, data_offsets are [{}, {}] ({})", name, bytes, placed.begin,
              placed.end, label);
  }
  return placed;
}

// Everything before the buffer: header length and header. Puts the tensors in the order of the buffer.
std::string front_of(std::vector<TensorView>& tensors, const Metadata& metadata) {
  // Wide types first, as the reference implementation does: every tensor stays aligned to its type.
  std::stable_sort(tensors.begin(), tensors.end(), [](const TensorView& a, const TensorView& b) {
    return dtype_bytes(a.dtype) > dtype_bytes(b.dtype);
  });
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header[kMetadataKey] = metadata;
  uint64_t offset = 0;
  for (const TensorView& tensor : tensors) {
    const uint64_t end = offset + tensor.bytes();
    header[tensor.name] = {
        {"dtype", dtype_name(tensor.dtype)}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = json_text(header);
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
  const nlohmann::json header = parse_header({file.bytes_.data() + 8, header_length}, label);

  std::vector<Placed> placed;
  for (const auto& [name, entry] : header.items()) {
    if (name != kMetadataKey) {
      placed.push_back(parse_entry(name, entry, label));
      continue;
    }
    if (!entry.is_object()) fail_data("[safetensors] __metadata__ is not an object ({})", label);
    for (const auto& [key, value] : entry.items()) {
      if (!value.is_string()) {
        fail_data("[safetensors] metadata '{}' is not a string ({})", key, label);
      }
      file.metadata_[key] = value.get<std::string>();
    }
  }
  std::sort(placed.begin(), placed.end(),
            [](const Placed& a, const Placed& b) { return std::tie(a.begin, a.end) < std::tie(b.begin, b.end); });
  uint64_t next = 0;
  for (Placed& item : placed) {
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
  return file;
}

SafetensorsFile SafetensorsFile::read(const std::filesystem::path& path) {
  return parse(read_file(path), path.string());
}

const TensorView* SafetensorsFile::find(std::string_view name) const {
  for (const TensorView& tensor : tensors_) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

}  // namespace onetap
