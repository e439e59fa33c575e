// The ONNX of a build without protobuf, whatever this one has.
#include "tools/onetap/missing_peer.h"
#include "tools/onetap/onnx.h"

#include <gtest/gtest.h>

namespace onetap::tool {
namespace {

// `bench --against dense,onnxruntime` leaves the latter out.
TEST(OnnxMissing, IsAMissingPeer) {
  try {
    onnx_bytes(TapNet());
    FAIL() << "expected an error";
  } catch (const MissingPeer& problem) {
    EXPECT_EQ(problem.kind(), ErrorKind::kUsage);
    EXPECT_STREQ(problem.what(), "[onnx] this onetap was built without protobuf, which ONNX models need");
  }
}

}  // namespace
}  // namespace onetap::tool
