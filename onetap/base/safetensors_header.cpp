#include "onetap/base/safetensors_header.h"

#include "onetap/base/fail.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>
#include <utility>

namespace onetap {
namespace {

constexpr size_t kTensorLimit = size_t{1} << 20;
constexpr size_t kMetadataLimit = size_t{1} << 16;
constexpr size_t kRankLimit = 64;
constexpr size_t kDepthLimit = 64;

[[noreturn]] void fail_twice(std::string_view name, std::string_view label) {
  fail_data("[safetensors] tensor '{}' appears twice ({})", name, label);
}

// Told of every value as it is read. `depth_` counts the lists and objects that are open: 1 is the header, 2 a tensor's
// description or the metadata, 3 a shape or offsets; what lies under other keys is passed over.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderReader(std::string_view label) : label_(label) {}

  SafetensorsHeader take() { return std::move(header_); }

  bool null() override { return other(); }
  bool boolean(bool) override { return other(); }
  bool number_integer(int64_t) override { return other(); }  // the negative ones
  bool number_float(double, const std::string&) override { return other(); }
  bool binary(binary_t&) override { return other(); }

  bool number_unsigned(uint64_t number) override {
    if (depth_ != 3 || list_ == nullptr) return other();
    if (list_->size() == kRankLimit || number > (uint64_t{1} << 62)) bad(key_.c_str());
    list_->push_back(static_cast<int64_t>(number));
    return true;
  }

  bool string(std::string& text) override {
    if (depth_ != 2) return other();
    if (in_metadata_) {
      header_.metadata[key_] = std::move(text);
      if (header_.metadata.size() > kMetadataLimit) {
        fail_data("[safetensors] expected at most {} entries of metadata, got more ({})", kMetadataLimit, label_);
      }
      return true;
    }
    if (key_ != "dtype") return other();
    const DTypeInfo* known = find_dtype(text);
    if (known == nullptr) bad("dtype");
    dtype_ = known->dtype;
    return true;
  }

  bool start_object(size_t) override {
    if (depth_ == 1) {
      in_metadata_ = name_ == kMetadataKey;
      if (in_metadata_ && std::exchange(has_metadata_, true)) fail_twice(name_, label_);
      dtype_.reset();
      shape_.reset();
      offsets_.reset();
    } else if (depth_ > 1) {
      other();
    }
    list_ = nullptr;
    return open();
  }

  bool start_array(size_t) override {
    const bool in_entry = depth_ == 2 && !in_metadata_;
    if (in_entry && key_ == "shape") {
      list_ = &shape_.emplace();
    } else if (in_entry && key_ == "data_offsets") {
      list_ = &offsets_.emplace();
    } else {
      other();
      list_ = nullptr;
    }
    return depth_ > 0 && open();
  }

  bool key(std::string& text) override {
    if (depth_ == 1) {
      name_ = std::move(text);
    } else if (depth_ == 2) {
      key_ = std::move(text);
    }
    return true;
  }

  bool end_object() override {
    if (--depth_ == 1 && !in_metadata_) finish_entry();
    return true;
  }
  bool end_array() override {
    --depth_;
    return true;
  }

  bool parse_error(size_t, const std::string&, const nlohmann::json::exception&) override { return false; }

 private:
  [[noreturn]] void bad(const char* what) const {
    fail_data("[safetensors] tensor '{}' has no valid {} ({})", name_, what, label_);
  }

  bool open() {
    if (++depth_ > kDepthLimit) {
      fail_data("[safetensors] expected a header of at most {} levels, got more ({})", kDepthLimit, label_);
    }
    return true;
  }

  // A value that is nothing we read: an error where we expect something else, of no matter anywhere else. False ends
  // the reading.
  bool other() const {
    if (depth_ == 1 && name_ == kMetadataKey) fail_data("[safetensors] __metadata__ is not an object ({})", label_);
    if (depth_ == 1) bad("description");
    if (depth_ == 2 && in_metadata_) fail_data("[safetensors] metadata '{}' is not a string ({})", key_, label_);
    if (depth_ == 2 && (key_ == "dtype" || key_ == "shape" || key_ == "data_offsets")) bad(key_.c_str());
    if (depth_ == 3 && list_ != nullptr) bad(key_.c_str());
    return depth_ > 0;
  }

  void finish_entry() {
    if (!dtype_) bad("dtype");
    if (!shape_) bad("shape");
    if (!offsets_ || offsets_->size() != 2) bad("data_offsets");
    if (header_.entries.size() == kTensorLimit) {
      fail_data("[safetensors] expected at most {} tensors, got more ({})", kTensorLimit, label_);
    }
    SafetensorsHeader::Entry entry;
    entry.tensor = {std::move(name_), *dtype_, *std::move(shape_), nullptr};
    entry.begin = static_cast<uint64_t>((*offsets_)[0]);
    entry.end = static_cast<uint64_t>((*offsets_)[1]);
    const uint64_t bytes = checked_bytes(entry.tensor, label_);
    if (entry.begin > entry.end || entry.end - entry.begin != bytes) {
      fail_data("[safetensors] tensor '{}' needs {} bytes, data_offsets are [{}, {}] ({})", entry.tensor.name, bytes,
                entry.begin, entry.end, label_);
    }
    header_.entries.push_back(std::move(entry));
  }

  const std::string_view label_;
  SafetensorsHeader header_;
  size_t depth_ = 0;
  std::string name_, key_;  // of the present value at depths 1 and 2
  bool in_metadata_ = false, has_metadata_ = false;
  std::vector<int64_t>* list_ = nullptr;  // the one that numbers at depth 3 go to
  std::optional<DType> dtype_;
  std::optional<std::vector<int64_t>> shape_, offsets_;
};

bool by_name(const SafetensorsHeader::Entry& a, const SafetensorsHeader::Entry& b) {
  return a.tensor.name < b.tensor.name;
}

}  // namespace

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

SafetensorsHeader parse_safetensors_header(std::string_view text, std::string_view label) {
  HeaderReader reader(label);
  if (!nlohmann::json::sax_parse(text, &reader)) fail_data("[safetensors] the header is not a JSON object ({})", label);
  SafetensorsHeader header = reader.take();
  std::sort(header.entries.begin(), header.entries.end(), by_name);
  const auto doubled = std::adjacent_find(header.entries.begin(), header.entries.end(),
                                          [](const auto& a, const auto& b) { return a.tensor.name == b.tensor.name; });
  if (doubled != header.entries.end()) fail_twice(doubled->tensor.name, label);
  return header;
}

}  // namespace onetap
