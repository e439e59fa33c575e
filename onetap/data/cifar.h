// CIFAR-10 and CIFAR-100, binary version: records of label byte(s) and 3072 pixel bytes.
#pragma once

#include "onetap/data/dataset.h"

#include <filesystem>
#include <string_view>

namespace onetap {

enum class Cifar { k10, k100 };

struct CifarFile {
  const char* name;
  int64_t records;
};

struct CifarLayout {
  const char* name;    // "cifar10"
  const char* folder;  // the folder inside the official archive
  int64_t classes;
  int64_t record_bytes;  // 3073 or 3074
  int64_t label_offset;  // the fine label of CIFAR-100 is the second byte
  std::vector<CifarFile> train;
  CifarFile test;
  const char* class_names;  // a text file in the folder, one name a line
};

const CifarLayout& cifar_layout(Cifar kind);

// Adds the records of one file to `images`; kData naming `label` if the bytes are not exactly `records`
// records with labels in range.
void parse_cifar(std::string_view bytes, const CifarLayout& layout, int64_t records, std::string_view label,
                 MemoryDataset& images);

// Reads the folder itself or the archive's folder inside it.
DataSource open_cifar(Cifar kind, const std::filesystem::path& directory);

// The folder that holds the files: `directory` itself or the archive's folder inside it; kData if neither.
std::filesystem::path find_cifar_folder(const CifarLayout& layout, const std::filesystem::path& directory);

// kData unless every file is there and as long as its records: what can be known without reading them.
void check_cifar_sizes(const CifarLayout& layout, const std::filesystem::path& directory);

}  // namespace onetap
