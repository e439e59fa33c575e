// The functions of generated C: files in emit/c/, embedded by the build (onetap_embed), and which of them a network
// needs.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace onetap {

// In the order in which they must stand in a source.
enum class CFragment {
  kValues,
  kMemoryFloats,
  kMemoryPixels,
  kSteps,
  kTaps,
  kCodes,
  kInputFloat,
  kInputPixelsFloat,
  kOutputFloat,
  kConvFloat,
  kAddFloat,
  kReluFloat,
  kRelu6Float,
  kPoolFloat,
  kMeanFloat,
  kConcatFloat,
  kBytes,
  kInputInt8,
  kInputPixelsInt8,
  kOutputInt8,
  kRequantize,
  kVectors,
  kPairs,
  kConvInt8,
  kFinishVectors,
  kLists,
  kConvBytesVectors,
  kDsp,
  kConvGathered,
  kConvAny,
  kConvSingleU8,
  kConvSingleS8,
  kWords,
  kSumListed,
  kConvWords,
  kConvWordsVectors,
  kListBlocks,
  kListImage,
  kListQuads,
  kConvImageS8,
  kConvDenseU8,
  kConvDenseS8,
  kConvBlocksU8,
  kConvBlocksS8,
  kConvQuadsU8,
  kConvQuadsS8,
  kAddInt8,
  kReluInt8,
  kPoolInt8,
  kMeanInt8,
  kConcatInt8,
  kSubsample,
  kShift,
  kFlatten,
};

struct CFragmentInfo {
  CFragment fragment;
  std::string_view (*text)();
  int64_t code_bytes;  // of a Cortex-M4 at -Os
};

// The texts of these, and what they need, in order.
std::string fragment_text(const std::set<CFragment>& fragments);
int64_t fragment_code_bytes(const std::set<CFragment>& fragments);

}  // namespace onetap
