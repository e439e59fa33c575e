#include "onetap/data/cifar.h"

#include "onetap/base/fail.h"
#include "onetap/base/file.h"
#include "onetap/base/text.h"
#include "onetap/data/source.h"

namespace fs = std::filesystem;

namespace onetap {
namespace {

constexpr int64_t kPixels = int64_t{3} * 32 * 32;

const char* const kCifar10Names[] = {"airplane", "automobile", "bird",  "cat",  "deer",
                                     "dog",      "frog",       "horse", "ship", "truck"};

void check_size(int64_t size, const CifarLayout& layout, int64_t records, std::string_view label) {
  if (size == records * layout.record_bytes) return;
  fail_data("[data] expected {} bytes ({} records of {}), got {} ({})", records * layout.record_bytes, records,
            layout.record_bytes, size, label);
}

std::unique_ptr<MemoryDataset> read_split(const CifarLayout& layout, const fs::path& folder,
                                          const std::vector<CifarFile>& files) {
  auto images = std::make_unique<MemoryDataset>(3, 32, 32);
  int64_t total = 0;
  for (const CifarFile& file : files) total += file.records;
  images->reserve(total);
  for (const CifarFile& file : files) {
    const fs::path path = folder / file.name;
    parse_cifar(read_file(path, uint64_t{1} << 30), layout, file.records, path.string(), *images);
  }
  return images;
}

std::vector<std::string> class_names(Cifar kind, const CifarLayout& layout, const fs::path& folder) {
  std::vector<std::string> names;
  if (fs::exists(folder / layout.class_names)) {
    const std::string text = read_file(folder / layout.class_names, 1u << 20);
    for (const auto line : split(text, '\n')) {
      if (!trim(line).empty()) names.emplace_back(trim(line));
    }
  }
  if (static_cast<int64_t>(names.size()) == layout.classes) return names;
  if (kind == Cifar::k10) return {std::begin(kCifar10Names), std::end(kCifar10Names)};
  names.clear();
  for (int64_t i = 0; i < layout.classes; ++i) names.push_back(fmt::format("class {}", i));
  return names;
}

}  // namespace

const CifarLayout& cifar_layout(Cifar kind) {
  static const CifarLayout cifar10 = {"cifar10",
                                      "cifar-10-batches-bin",
                                      10,
                                      kPixels + 1,
                                      0,
                                      {{"data_batch_1.bin", 10000},
                                       {"data_batch_2.bin", 10000},
                                       {"data_batch_3.bin", 10000},
                                       {"data_batch_4.bin", 10000},
                                       {"data_batch_5.bin", 10000}},
                                      {"test_batch.bin", 10000},
                                      "batches.meta.txt"};
  static const CifarLayout cifar100 = {
      "cifar100",          "cifar-100-binary",    100, kPixels + 2, 1, {{"train.bin", 50000}},
      {"test.bin", 10000}, "fine_label_names.txt"};
  return kind == Cifar::k10 ? cifar10 : cifar100;
}

void parse_cifar(std::string_view bytes, const CifarLayout& layout, int64_t records, std::string_view label,
                 MemoryDataset& images) {
  check_size(static_cast<int64_t>(bytes.size()), layout, records, label);
  const auto* record = reinterpret_cast<const uint8_t*>(bytes.data());
  for (int64_t i = 0; i < records; ++i, record += layout.record_bytes) {
    const int64_t value = record[layout.label_offset];
    if (value >= layout.classes) {
      fail_data("[data] expected labels 0..{}, got {} in record {} ({})", layout.classes - 1, value, i, label);
    }
    images.add(record + layout.record_bytes - kPixels, value);
  }
}

fs::path find_cifar_folder(const CifarLayout& layout, const fs::path& directory) {
  for (const fs::path& folder : {directory, directory / layout.folder}) {
    if (fs::exists(folder / layout.test.name)) return folder;
  }
  // The archive most people have is the one for Python; say so instead of "no such file".
  const std::string python_folder = layout.classes == 10 ? "cifar-10-batches-py" : "cifar-100-python";
  const char* python_file = layout.classes == 10 ? "test_batch" : "test";
  if (fs::exists(directory / python_file) || fs::exists(directory / python_folder)) {
    fail_data(
        "[data] {} holds the Python version of {}; expected the binary version ({}): onetap data fetch {} --to {}",
        directory.string(), layout.name, layout.test.name, layout.name, directory.string());
  }
  fail_data("[data] expected {} in {} or in {} inside it: onetap data fetch {} --to {}", layout.test.name,
            directory.string(), layout.folder, layout.name, directory.string());
}

void check_cifar_sizes(const CifarLayout& layout, const fs::path& directory) {
  const fs::path folder = find_cifar_folder(layout, directory);
  std::vector<CifarFile> files = layout.train;
  files.push_back(layout.test);
  for (const CifarFile& file : files) {
    const fs::path path = folder / file.name;
    std::error_code error;
    const auto size = fs::file_size(path, error);
    if (error) fail_data("[data] cannot read {}: {}", path.string(), error.message());
    check_size(static_cast<int64_t>(size), layout, file.records, path.string());
  }
}

DataSource open_cifar(Cifar kind, const fs::path& directory) {
  const CifarLayout& layout = cifar_layout(kind);
  const fs::path folder = find_cifar_folder(layout, directory);
  DataSource source;
  source.spec = fmt::format("{}:{}", layout.name, directory.string());
  source.train = read_split(layout, folder, layout.train);
  source.test = read_split(layout, folder, {layout.test});
  source.classes = class_names(kind, layout, folder);
  source.image_size = 32;
  source.normalisation = usual_normalisation(layout.name);
  return source;
}

}  // namespace onetap
