#include "onetap/onnx/model_source.h"

#include "onetap/base/fail.h"
#include "onetap/base/file.h"
#include "onetap/base/half.h"
#include "onetap/base/text.h"
#include "onetap/onnx/wire_check.h"

#include <cstring>
#include <fstream>
#include <limits>
#include <optional>

namespace onetap {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxModelBytes = std::numeric_limits<int32_t>::max();  // of a model: protobuf reads no more

// What numbers of a type are read into.
template <typename Stored, typename To>
std::vector<To> converted(const std::string& raw) {
  std::vector<To> values(raw.size() / sizeof(Stored));
  for (size_t i = 0; i < values.size(); ++i) {
    Stored value;
    std::memcpy(&value, raw.data() + i * sizeof(Stored), sizeof(Stored));
    values[i] = static_cast<To>(value);
  }
  return values;
}

std::vector<float> from_halves(const std::string& raw) {
  std::vector<float> values(raw.size() / 2);
  for (size_t i = 0; i < values.size(); ++i) {
    uint16_t half = 0;
    std::memcpy(&half, raw.data() + 2 * i, 2);
    values[i] = float_from_half(half);
  }
  return values;
}

std::vector<float> from_bfloats(const std::string& raw) {
  std::vector<float> values(raw.size() / 2);
  for (size_t i = 0; i < values.size(); ++i) {
    uint32_t bits = 0;
    std::memcpy(reinterpret_cast<char*>(&bits) + 2, raw.data() + 2 * i, 2);
    std::memcpy(&values[i], &bits, 4);
  }
  return values;
}

// One row per type of tensors that a network may have.
struct TypeRow {
  onnx::Tensor::DataType type;
  size_t bytes;
  OnnxNumbers (*from_raw)(const std::string& raw);
};
const TypeRow kTypes[] = {
    {onnx::Tensor::FLOAT, 4, [](const std::string& raw) -> OnnxNumbers { return converted<float, float>(raw); }},
    {onnx::Tensor::DOUBLE, 8, [](const std::string& raw) -> OnnxNumbers { return converted<double, float>(raw); }},
    {onnx::Tensor::FLOAT16, 2, [](const std::string& raw) -> OnnxNumbers { return from_halves(raw); }},
    {onnx::Tensor::BFLOAT16, 2, [](const std::string& raw) -> OnnxNumbers { return from_bfloats(raw); }},
    {onnx::Tensor::INT64, 8, [](const std::string& raw) -> OnnxNumbers { return converted<int64_t, int64_t>(raw); }},
    {onnx::Tensor::INT32, 4, [](const std::string& raw) -> OnnxNumbers { return converted<int32_t, int64_t>(raw); }},
    {onnx::Tensor::INT8, 1, [](const std::string& raw) -> OnnxNumbers { return converted<int8_t, int64_t>(raw); }},
    {onnx::Tensor::UINT8, 1, [](const std::string& raw) -> OnnxNumbers { return converted<uint8_t, int64_t>(raw); }},
    {onnx::Tensor::BOOL, 1, [](const std::string& raw) -> OnnxNumbers { return converted<uint8_t, int64_t>(raw); }},
};

// They are held in 64 bits, eight times what bytes take in the file.
constexpr int64_t kMostWholeNumbers = int64_t{1} << 27;

bool is_integer(onnx::Tensor::DataType type) {
  return type == onnx::Tensor::INT64 || type == onnx::Tensor::INT32 || type == onnx::Tensor::INT8 ||
         type == onnx::Tensor::UINT8 || type == onnx::Tensor::BOOL;
}

template <typename To, typename Field>
std::vector<To> values_of(const Field& field) {
  std::vector<To> values;
  values.reserve(static_cast<size_t>(field.size()));
  for (const auto value : field) values.push_back(static_cast<To>(value));
  return values;
}

// Of a tensor whose numbers lie in a field of their type.
OnnxNumbers typed_values(const onnx::Tensor& tensor) {
  switch (tensor.data_type()) {
    case onnx::Tensor::FLOAT:
      return values_of<float>(tensor.float_data());
    case onnx::Tensor::DOUBLE:
      return values_of<float>(tensor.double_data());
    case onnx::Tensor::INT64:
      return values_of<int64_t>(tensor.int64_data());
    case onnx::Tensor::FLOAT16:
    case onnx::Tensor::BFLOAT16: {
      std::string raw(static_cast<size_t>(tensor.int32_data_size()) * 2, '\0');
      for (int i = 0; i < tensor.int32_data_size(); ++i) {
        const auto bits = static_cast<uint16_t>(tensor.int32_data(i));
        std::memcpy(&raw[static_cast<size_t>(i) * 2], &bits, 2);
      }
      return tensor.data_type() == onnx::Tensor::FLOAT16 ? from_halves(raw) : from_bfloats(raw);
    }
    default:
      return values_of<int64_t>(tensor.int32_data());
  }
}

std::optional<std::string> entry_of(const onnx::Tensor& tensor, std::string_view key) {
  for (const onnx::Entry& entry : tensor.external_data()) {
    if (entry.key() == key) return entry.value();
  }
  return std::nullopt;
}

bool is_below(const fs::path& path, const fs::path& folder) {
  const fs::path relative = path.lexically_relative(folder);
  return !relative.empty() && *relative.begin() != "..";
}

}  // namespace

ModelSource ModelSource::read(const fs::path& path) {
  ModelSource source = parse(read_file(path, kMaxModelBytes), path.string());
  source.folder_ = path.has_parent_path() ? path.parent_path() : fs::path(".");
  return source;
}

ModelSource ModelSource::parse(const std::string& bytes, std::string_view label) {
  ModelSource source;
  source.label_ = std::string(label);
  if (bytes.size() > kMaxModelBytes)
    fail_data("[onnx] expected a model below 2 GiB, got {} bytes ({})", bytes.size(), label);
  check_wire(bytes, label);
  if (!source.model_.ParseFromString(bytes) || !source.model_.has_graph() || source.model_.opset_import_size() == 0) {
    fail_data("[onnx] expected an ONNX model, got a file that is damaged or something else ({})", label);
  }
  return source;
}

OnnxConstant ModelSource::constant(const onnx::Tensor& tensor) const {
  if (static_cast<size_t>(tensor.dims_size()) > kMaxOnnxExtents) {
    fail_data("[onnx] expected a tensor of at most {} extents, got {} in '{}' ({})", kMaxOnnxExtents,
              tensor.dims_size(), tensor.name(), label_);
  }
  OnnxConstant constant;
  int64_t count = 1;
  for (const int64_t extent : tensor.dims()) {
    if (extent < 0 || (extent > 0 && count > kMaxOnnxWeights / extent)) {
      fail_data("[onnx] expected a tensor of at most 2^30 numbers, got an extent of {} in '{}' ({})", extent,
                tensor.name(), label_);
    }
    count *= extent;
    constant.dims.push_back(extent);
  }
  const TypeRow* row = nullptr;
  for (const TypeRow& candidate : kTypes) {
    if (candidate.type == tensor.data_type()) row = &candidate;
  }
  if (row == nullptr) {
    fail_data("[onnx] expected a tensor of floats or whole numbers, got type {} in '{}' ({})", tensor.data_type(),
              tensor.name(), label_);
  }
  if (is_integer(row->type) && count > kMostWholeNumbers) {
    fail_data("[onnx] expected a tensor of at most 2^27 whole numbers, got {} in '{}' ({})", count, tensor.name(),
              label_);
  }
  constant.type = tensor.data_type();
  const auto numbers = [](OnnxNumbers read) { return std::make_shared<const OnnxNumbers>(std::move(read)); };
  const uint64_t bytes = static_cast<uint64_t>(count) * row->bytes;
  if (tensor.data_location() == onnx::Tensor::EXTERNAL) {
    constant.values = numbers(row->from_raw(external_bytes(tensor, bytes)));
  } else if (tensor.has_raw_data()) {
    if (tensor.raw_data().size() != bytes) {
      fail_data("[onnx] expected {} bytes in tensor '{}', got {} ({})", bytes, tensor.name(), tensor.raw_data().size(),
                label_);
    }
    constant.values = numbers(row->from_raw(tensor.raw_data()));
  } else {
    constant.values = numbers(typed_values(tensor));
  }
  if (constant.count() != static_cast<size_t>(count)) {
    fail_data("[onnx] expected {} numbers in tensor '{}', got {} ({})", count, tensor.name(), constant.count(), label_);
  }
  return constant;
}

// The file must lie in the model's folder, also when links are followed: a model must not read what its reader may.
std::string ModelSource::external_bytes(const onnx::Tensor& tensor, uint64_t expected) const {
  const fs::path location = entry_of(tensor, "location").value_or("");
  const auto refuse = [&](const char* what) {
    fail_data("[onnx] expected {} for tensor '{}', got '{}' ({})", what, tensor.name(), location.string(), label_);
  };
  if (folder_.empty()) refuse("data in the model itself");
  if (location.empty() || location.is_absolute()) refuse("a data file in the model's folder");
  for (const fs::path& part : location) {
    if (part == "..") refuse("a data file in the model's folder");
  }
  std::error_code error;
  const fs::path folder = fs::canonical(folder_, error);
  const fs::path path = error ? fs::path() : fs::canonical(folder / location, error);
  if (error || !fs::is_regular_file(path, error)) refuse("a data file that is there");
  if (!is_below(path, folder)) refuse("a data file in the model's folder, not a link out of it,");
  const uint64_t size = fs::file_size(path, error);
  const auto offset = parse_int(entry_of(tensor, "offset").value_or("0"));
  const auto length = parse_int(entry_of(tensor, "length").value_or(std::to_string(expected)));
  const bool fits = !error && offset && length && *offset >= 0 && static_cast<uint64_t>(*length) == expected &&
                    expected <= size && static_cast<uint64_t>(*offset) <= size - expected;
  if (!fits) {
    fail_data("[onnx] expected {} bytes for tensor '{}' at {} of '{}', got a file of {} ({})", expected, tensor.name(),
              entry_of(tensor, "offset").value_or("0"), location.string(), size, label_);
  }
  std::string bytes(expected, '\0');
  std::ifstream file(path, std::ios::binary);
  file.seekg(*offset);
  if (!file.read(bytes.data(), static_cast<std::streamsize>(expected)) && expected > 0) {
    fail_data("[onnx] cannot read '{}' of tensor '{}' ({})", location.string(), tensor.name(), label_);
  }
  return bytes;
}

}  // namespace onetap
