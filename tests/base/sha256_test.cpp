#include "onetap/base/sha256.h"

#include "tests/support/support.h"

namespace onetap {
namespace {

std::string digest(const std::string& text, size_t piece) {
  Sha256 hash;
  for (size_t i = 0; i < text.size(); i += piece) hash.update(text.data() + i, std::min(piece, text.size() - i));
  return hash.hex();
}

// FIPS 180-4 examples.
TEST(Sha256, KnownAnswers) {
  EXPECT_EQ(digest("", 1), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(digest("abc", 3), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 7),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(digest(std::string(1000000, 'a'), 999), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, FileAndMemoryAgree) {
  const testing::TempDir dir;
  std::string text;
  for (int i = 0; i < 3000000; ++i) text += static_cast<char>(i * 7 + i / 251);
  testing::write_text(dir / "f", text);
  EXPECT_EQ(sha256_file(dir / "f"), digest(text, 64));
  testing::expect_error(ErrorKind::kData, "cannot open", [&] { sha256_file(dir / "missing"); });
}

}  // namespace
}  // namespace onetap
