// The safetensors file format: what checkpoints are made of, and what Python can open.
//
// u64 little-endian header length, a JSON header {name: {dtype, shape, data_offsets}} with an optional
// string-to-string "__metadata__", then one gap-free little-endian buffer.
#pragma once

#include "onetap/base/tensor.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace onetap {

// One tensor, row-major; `data` belongs to the caller (writing) or to the SafetensorsFile (reading).
struct TensorView {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  const void* data = nullptr;

  uint64_t bytes() const;
};

using Metadata = std::map<std::string, std::string>;

// The whole file in memory.
std::string safetensors_bytes(std::vector<TensorView> tensors, const Metadata& metadata = {});

// Its length, from names, types and shapes alone: `data` may be null.
uint64_t safetensors_length(std::vector<TensorView> tensors, const Metadata& metadata = {});

// Writes and syncs the file; the caller puts it in place (see StagedDirectory). Returns the CRC-32C of its bytes.
uint32_t write_safetensors(const std::filesystem::path& path, std::vector<TensorView> tensors,
                           const Metadata& metadata = {});

class SafetensorsFile {
 public:
  // Checks everything before use: lengths, types, shapes, overlaps, holes, trailing bytes, doubled names.
  // `label` names the file in error messages.
  static SafetensorsFile parse(std::string bytes, std::string_view label);
  static SafetensorsFile read(const std::filesystem::path& path);

  const std::vector<TensorView>& tensors() const { return tensors_; }
  const TensorView* find(std::string_view name) const;
  const Metadata& metadata() const { return metadata_; }

 private:
  std::vector<char> bytes_;          // a vector keeps its address when moved, so the views stay valid
  std::vector<TensorView> tensors_;  // in the order of the buffer
  std::vector<size_t> by_name_;      // places in it, in the order of their names
  Metadata metadata_;
};

}  // namespace onetap
