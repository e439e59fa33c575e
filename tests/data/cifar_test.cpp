#include "onetap/data/cifar.h"

#include "tests/support/support.h"

namespace fs = std::filesystem;

namespace onetap {
namespace {

using testing::expect_error;
using testing::TempDir;
using testing::write_text;

// `records` records whose label bytes and pixels follow from their number.
std::string cifar_bytes(const CifarLayout& layout, int64_t records) {
  std::string bytes;
  for (int64_t i = 0; i < records; ++i) {
    std::string record(static_cast<size_t>(layout.record_bytes), '\0');
    record[0] = static_cast<char>(i % 7);  // the coarse label of CIFAR-100, or the label
    record[static_cast<size_t>(layout.label_offset)] = static_cast<char>(i % layout.classes);
    for (size_t p = 0; p < 3072; ++p) {
      record[record.size() - 3072 + p] = static_cast<char>(static_cast<size_t>(i) * 31 + p);
    }
    bytes += record;
  }
  return bytes;
}

TEST(Cifar, RecordsBecomePlanes) {
  for (const Cifar kind : {Cifar::k10, Cifar::k100}) {
    const CifarLayout& layout = cifar_layout(kind);
    MemoryDataset images(3, 32, 32);
    parse_cifar(cifar_bytes(layout, 150), layout, 150, "test", images);
    EXPECT_EQ(images.size(), 150);
    EXPECT_EQ(images.label(123), 123 % layout.classes);
    Image image;
    images.read(5, image);
    ASSERT_EQ(image.pixels.size(), 3072u);
    EXPECT_EQ(image.pixels[0], static_cast<uint8_t>(5 * 31));
    EXPECT_EQ(image.pixels[3071], static_cast<uint8_t>(5 * 31 + 3071));
  }
}

TEST(Cifar, RefusesWrongSizesAndLabels) {
  const CifarLayout& layout = cifar_layout(Cifar::k10);
  const auto parse = [&](const std::string& bytes, int64_t records) {
    MemoryDataset images(3, 32, 32);
    parse_cifar(bytes, layout, records, "file.bin", images);
  };
  const std::string ten = cifar_bytes(layout, 10);
  expect_error(ErrorKind::kData, "expected 30730 bytes (10 records of 3073), got 30729 (file.bin)",
               [&] { parse(ten.substr(0, 30729), 10); });
  expect_error(ErrorKind::kData, "got 30731", [&] { parse(ten + "x", 10); });
  expect_error(ErrorKind::kData, "got 0", [&] { parse("", 10); });
  std::string bad = ten;
  bad[3 * 3073] = 10;
  expect_error(ErrorKind::kData, "expected labels 0..9, got 10 in record 3", [&] { parse(bad, 10); });
}

void write_whole_set(const fs::path& folder) {
  const CifarLayout& layout = cifar_layout(Cifar::k10);
  const std::string batch = cifar_bytes(layout, 10000);
  for (const CifarFile& file : layout.train) write_text(folder / file.name, batch);
  write_text(folder / layout.test.name, batch);
}

TEST(Cifar, OpensAFolderAndTheArchivesFolderInsideIt) {
  const TempDir dir;
  write_whole_set(dir / "cifar-10-batches-bin");
  for (const fs::path& where : {dir.path(), dir / "cifar-10-batches-bin"}) {
    const DataSource source = open_cifar(Cifar::k10, where);
    EXPECT_EQ(source.train->size(), 50000);
    EXPECT_EQ(source.test->size(), 10000);
    EXPECT_EQ(source.classes.at(3), "cat");
  }
  EXPECT_NO_THROW(check_cifar_sizes(cifar_layout(Cifar::k10), dir.path()));
  fs::resize_file(dir / "cifar-10-batches-bin" / "data_batch_4.bin", 30729999);
  expect_error(ErrorKind::kData, "expected 30730000 bytes (10000 records of 3073), got 30729999",
               [&] { check_cifar_sizes(cifar_layout(Cifar::k10), dir.path()); });
  expect_error(ErrorKind::kData, "data_batch_4.bin", [&] { open_cifar(Cifar::k10, dir.path()); });
  fs::remove(dir / "cifar-10-batches-bin" / "data_batch_4.bin");
  expect_error(ErrorKind::kData, "cannot open", [&] { open_cifar(Cifar::k10, dir.path()); });
  expect_error(ErrorKind::kData, "data_batch_4.bin", [&] { check_cifar_sizes(cifar_layout(Cifar::k10), dir.path()); });
}

TEST(Cifar, MissingDataSaysHowToGetIt) {
  const TempDir dir;
  expect_error(ErrorKind::kData, "onetap data fetch cifar10", [&] { open_cifar(Cifar::k10, dir.path()); });
  fs::create_directories(dir / "cifar-10-batches-py");
  expect_error(ErrorKind::kData, "holds the Python version", [&] { open_cifar(Cifar::k10, dir.path()); });
}

}  // namespace
}  // namespace onetap
