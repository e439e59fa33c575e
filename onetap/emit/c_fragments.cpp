#include "onetap/emit/c_fragments.h"

#include <vector>

namespace onetap {
namespace c_files {

std::string_view values_c();
std::string_view memory_floats_c();
std::string_view memory_pixels_c();
std::string_view steps_c();
std::string_view taps_c();
std::string_view codes_c();
std::string_view input_float_c();
std::string_view input_pixels_float_c();
std::string_view output_float_c();
std::string_view conv_float_c();
std::string_view add_float_c();
std::string_view relu_float_c();
std::string_view relu6_float_c();
std::string_view pool_float_c();
std::string_view mean_float_c();
std::string_view concat_float_c();
std::string_view bytes_c();
std::string_view input_int8_c();
std::string_view input_pixels_int8_c();
std::string_view output_int8_c();
std::string_view requantize_c();
std::string_view vectors_c();
std::string_view pairs_c();
std::string_view conv_int8_c();
std::string_view finish_mve_c();
std::string_view lists_mve_c();
std::string_view conv_bytes_mve_c();
std::string_view dsp_c();
std::string_view conv_gathered_c();
std::string_view conv_single_c();
std::string_view conv_single_u8_c();
std::string_view conv_single_s8_c();
std::string_view words_c();
std::string_view sum_listed_c();
std::string_view conv_words_c();
std::string_view conv_words_mve_c();
std::string_view list_blocks_c();
std::string_view list_image_c();
std::string_view list_quads_c();
std::string_view conv_image_s8_c();
std::string_view conv_dense_u8_c();
std::string_view conv_dense_s8_c();
std::string_view conv_blocks_u8_c();
std::string_view conv_blocks_s8_c();
std::string_view conv_quads_u8_c();
std::string_view conv_quads_s8_c();
std::string_view add_int8_c();
std::string_view relu_int8_c();
std::string_view pool_int8_c();
std::string_view mean_int8_c();
std::string_view concat_int8_c();
std::string_view subsample_c();
std::string_view shift_c();
std::string_view flatten_c();

}  // namespace c_files

namespace {

using F = CFragment;

struct Row {
  CFragmentInfo info;
  std::vector<F> needs;
};

const std::vector<Row>& table() {
  static const std::vector<Row> rows = {
      {{F::kValues, c_files::values_c, 0}, {}},
      {{F::kMemoryFloats, c_files::memory_floats_c, 0}, {}},
      {{F::kMemoryPixels, c_files::memory_pixels_c, 0}, {}},
      {{F::kSteps, c_files::steps_c, 150}, {F::kValues}},
      {{F::kTaps, c_files::taps_c, 340}, {}},
      {{F::kCodes, c_files::codes_c, 16}, {}},
      {{F::kInputFloat, c_files::input_float_c, 80}, {}},
      {{F::kInputPixelsFloat, c_files::input_pixels_float_c, 130}, {}},
      {{F::kOutputFloat, c_files::output_float_c, 90}, {}},
      {{F::kConvFloat, c_files::conv_float_c, 660}, {F::kTaps, F::kCodes}},
      {{F::kAddFloat, c_files::add_float_c, 120}, {}},
      {{F::kReluFloat, c_files::relu_float_c, 70}, {}},
      {{F::kRelu6Float, c_files::relu6_float_c, 90}, {}},
      {{F::kPoolFloat, c_files::pool_float_c, 260}, {F::kTaps}},
      {{F::kMeanFloat, c_files::mean_float_c, 120}, {}},
      {{F::kConcatFloat, c_files::concat_float_c, 110}, {}},
      {{F::kBytes, c_files::bytes_c, 0}, {}},
      {{F::kInputInt8, c_files::input_int8_c, 262}, {}},
      {{F::kInputPixelsInt8, c_files::input_pixels_int8_c, 150}, {}},
      {{F::kOutputInt8, c_files::output_int8_c, 110}, {F::kBytes}},
      {{F::kRequantize, c_files::requantize_c, 26}, {}},
      {{F::kVectors, c_files::vectors_c, 0}, {}},
      {{F::kPairs, c_files::pairs_c, 0}, {F::kVectors}},
      {{F::kConvInt8, c_files::conv_int8_c, 792}, {F::kTaps, F::kCodes, F::kBytes, F::kRequantize, F::kVectors}},
      {{F::kFinishVectors, c_files::finish_mve_c, 0}, {}},
      {{F::kLists, c_files::lists_mve_c, 0}, {}},
      {{F::kConvBytesVectors, c_files::conv_bytes_mve_c, 0}, {}},
      {{F::kDsp, c_files::dsp_c, 0}, {}},
      {{F::kConvGathered, c_files::conv_gathered_c, 148}, {F::kDsp}},
      {{F::kConvAny, c_files::conv_single_c, 0},
       {F::kConvInt8, F::kFinishVectors, F::kLists, F::kConvBytesVectors, F::kConvGathered}},
      {{F::kConvSingleU8, c_files::conv_single_u8_c, 1170}, {F::kConvAny}},
      {{F::kConvSingleS8, c_files::conv_single_s8_c, 1170}, {F::kConvAny}},
      {{F::kWords, c_files::words_c, 0}, {F::kConvInt8, F::kDsp}},
      {{F::kSumListed, c_files::sum_listed_c, 0}, {F::kWords}},
      {{F::kConvWords, c_files::conv_words_c, 344}, {F::kSumListed, F::kConvWordsVectors}},
      {{F::kConvWordsVectors, c_files::conv_words_mve_c, 0}, {F::kFinishVectors, F::kLists}},
      {{F::kListBlocks, c_files::list_blocks_c, 0}, {F::kConvWords}},
      {{F::kListImage, c_files::list_image_c, 0}, {F::kListBlocks}},
      {{F::kListQuads, c_files::list_quads_c, 0}, {F::kConvWords}},
      {{F::kConvImageS8, c_files::conv_image_s8_c, 164}, {F::kListImage}},
      {{F::kConvDenseU8, c_files::conv_dense_u8_c, 120}, {F::kListBlocks}},
      {{F::kConvDenseS8, c_files::conv_dense_s8_c, 120}, {F::kListBlocks}},
      {{F::kConvBlocksU8, c_files::conv_blocks_u8_c, 165}, {F::kListBlocks}},
      {{F::kConvBlocksS8, c_files::conv_blocks_s8_c, 165}, {F::kListBlocks}},
      {{F::kConvQuadsU8, c_files::conv_quads_u8_c, 188}, {F::kListQuads}},
      {{F::kConvQuadsS8, c_files::conv_quads_s8_c, 188}, {F::kListQuads}},
      {{F::kAddInt8, c_files::add_int8_c, 130}, {F::kBytes}},
      {{F::kReluInt8, c_files::relu_int8_c, 80}, {F::kBytes}},
      {{F::kPoolInt8, c_files::pool_int8_c, 390}, {F::kTaps, F::kBytes, F::kRequantize}},
      {{F::kMeanInt8, c_files::mean_int8_c, 200}, {F::kBytes, F::kRequantize}},
      {{F::kConcatInt8, c_files::concat_int8_c, 130}, {F::kBytes}},
      {{F::kSubsample, c_files::subsample_c, 110}, {}},
      {{F::kShift, c_files::shift_c, 160}, {F::kTaps, F::kCodes}},
      {{F::kFlatten, c_files::flatten_c, 110}, {}},
  };
  return rows;
}

std::set<F> with_needs(const std::set<F>& fragments) {
  std::set<F> all = fragments;
  for (size_t before = 0; before != all.size();) {
    before = all.size();
    for (const Row& row : table()) {
      if (all.count(row.info.fragment) > 0) all.insert(row.needs.begin(), row.needs.end());
    }
  }
  return all;
}

}  // namespace

std::string fragment_text(const std::set<CFragment>& fragments) {
  const std::set<F> all = with_needs(fragments);
  std::string text;
  for (const Row& row : table()) {
    if (all.count(row.info.fragment) > 0) text.append(row.info.text()).append("\n");
  }
  return text;
}

int64_t fragment_code_bytes(const std::set<CFragment>& fragments) {
  const std::set<F> all = with_needs(fragments);
  int64_t bytes = 0;
  for (const Row& row : table()) {
    if (all.count(row.info.fragment) > 0) bytes += row.info.code_bytes;
  }
  return bytes;
}

}  // namespace onetap
