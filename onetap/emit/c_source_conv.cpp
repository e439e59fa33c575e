#include "onetap/base/align.h"
#include "onetap/base/fail.h"
#include "onetap/emit/c_conv.h"
#include "onetap/emit/c_source.h"
#include "onetap/emit/c_text.h"

#include <algorithm>
#include <map>

namespace onetap {
namespace {

using F = CFragment;

// Sizes on a machine with addresses of 4 bytes.
constexpr int64_t kFloatConvBytes = 36, kInt8ConvBytes = 52, kScaleBytes = 16;
constexpr int64_t kMostWords = 64;    // of a list
constexpr int64_t kMostPlaces = 512;  // of bytes: longer lists would take too much of the stack

}  // namespace

int64_t CSource::code_bytes(const ConvForm& form) const {
  const int64_t bytes = form.codes == nullptr ? 0 : (form.row_codes() * code_bits_ + 7) / 8;
  constexpr int64_t kMost = 65535;  // the generated descriptors have 16 bits
  if (bytes > kMost) fail_usage("[emit] expected at most {} bytes of positions for an output, got {}", kMost, bytes);
  return bytes;
}

void CSource::add_float_conv(const CStep& step, std::string& layer, std::string& function) {
  const Node& node = *step.planned->node;
  const ConvForm form(net_, node);
  fragments_.insert(F::kConvFloat);
  const std::string weights = add_array(Kind::kWeights, "float", "weights", float_weights(form, node));
  std::vector<float> bias;
  if (form.bias != nullptr) {
    const float* values = floats_of(node, *form.bias);
    bias.assign(values, values + form.outputs);
    if (form.has_words()) bias.resize(static_cast<size_t>(round_up(form.outputs, int64_t{2})));  // outputs go by pairs
  }
  const std::string bias_name = add_array(Kind::kOther, "float", "bias", bias);
  std::string codes = "NULL";
  if (form.codes != nullptr) {
    codes = add_array(Kind::kPositions, "uint8_t", "positions",
                      packed_codes(*form.codes, code_bits_, static_cast<size_t>(form.row_codes())));
  }
  function = "conv";
  layer = add_constant(
      "Conv",
      fmt::format("{{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}}", window_text(node), form.outputs,
                  form.inputs, form.groups, form.block_inputs, form.blocks, form.share_outputs, code_bytes(form),
                  form.taps, step.planned->relu ? 1 : 0, weights, bias_name, codes),
      kFloatConvBytes);
}

// The scales that occur, and which of them each output has: at most as many as there are steps of weight scales.
std::pair<std::string, std::string> CSource::add_scales(const CStep& step) {
  const Int8Step& of = int8_step(step);
  // By the plan, which has no value of the caller's floats.
  const bool is_signed = program_.int8->value(step.planned->output).dtype == DType::kI8;
  std::vector<std::string> scales;
  std::map<std::string, uint8_t> index;
  std::vector<uint8_t> scale_of;
  for (size_t d = 0; d < of.requantize.size(); ++d) {
    const Requantize& by = of.requantize[d];
    const int32_t half = by.shift > 32 ? int32_t{1} << (by.shift - 33) : 0;
    const std::string text = fmt::format("{{{}, {}, {}, {}}}", by.multiplier, by.shift - 33, is_signed ? -half : half,
                                         of.residual_factor.empty() ? 0 : of.residual_factor[d]);
    const auto [found, is_new] = index.emplace(text, static_cast<uint8_t>(scales.size()));
    if (is_new) scales.push_back(text);
    scale_of.push_back(found->second);
  }
  if (scales.empty()) return {"NULL", "NULL"};
  if (scales.size() > 256) {  // what a byte can tell apart
    fail("[emit] expected at most 256 scales of a layer, got {} ('{}')", scales.size(), step.name);
  }
  const std::string name = current_ + "_scales";
  layers_ += fmt::format("static const Scale {}[] = {{\n    {},\n}};\n", name, fmt::join(scales, ",\n    "));
  count(Kind::kOther, kScaleBytes * static_cast<int64_t>(scales.size()));
  return {name, add_array(Kind::kOther, "uint8_t", "scale_of", scale_of)};
}

// Whether a convolution has a bias and gives bytes by scales that all shift, without a shift to the left where nothing
// is added.
bool CSource::gives_usual_bytes(const CStep& step, const ConvForm& form) const {
  const Int8Step& of = int8_step(step);
  const auto shifts = [](const Requantize& by) { return by.shift > 32; };
  if (!of.dequantize.empty() || form.bias == nullptr) return false;
  return (!of.residual_factor.empty() || of.left_shift == 0) &&
         std::all_of(of.requantize.begin(), of.requantize.end(), shifts);
}

std::string CSource::add_starts(const ConvForm& form, int bias_shift, bool moved) {
  std::vector<int16_t> bias;
  if (form.bias != nullptr) {
    const auto* values = form.bias->data<int16_t>();
    bias.assign(values, values + form.outputs);
  }
  const std::vector<int32_t> starts = int8_starts(form, bias_shift, moved);
  if (starts.empty()) return "NULL";
  arrays_ += "\n#ifdef VECTORS";
  const std::string with_vectors = define_array("int32_t", "start", starts);
  arrays_ += "#else\n";
  const std::string plain = add_array(Kind::kOther, "int16_t", "bias", bias);
  arrays_ += "#endif\n";
  return fmt::format("START({}, {})", plain, with_vectors);
}

std::string CSource::add_int8_weights(const ConvForm& form, bool is_image, bool is_listed) {
  if (!form.has_words()) return add_array(Kind::kWeights, "int8_t", "weights", int8_weights(form));
  const char* aligned = " WORD_ALIGNED";
  if (!is_image) {
    return add_array(Kind::kWeights, "int8_t", "weights", int8_words(form), aligned,
                     is_listed ? pair_list : number_list<int8_t>);
  }
  arrays_ += "\n#if defined(DSP) && !defined(VECTORS)";
  const std::vector<int8_t> image = int8_image(form), words = int8_words(form);
  const std::string packed = add_array(Kind::kWeights, "int8_t", "packed", image, aligned, pair_list);
  sizes_.without_dsp += static_cast<int64_t>(words.size()) - static_cast<int64_t>(image.size());
  arrays_ += "#else\n";
  const std::string weights = define_array("int8_t", "weights", words, aligned);
  arrays_ += "#endif\n";
  return fmt::format("PACKED({}, {})", packed, weights);
}

void CSource::add_int8_conv(const CStep& step, std::string& layer, std::string& function) {
  const Node& node = *step.planned->node;
  const Int8Step& of = int8_step(step);
  if (of.is_kept) {
    fail_usage("[emit] expected int8 weights in all layers of an int8 network, got floats ('{}'): quantize it too",
               node.name);
  }
  const ConvForm form(net_, node);
  const bool is_signed = program_.int8->value(step.inputs[0]).dtype == DType::kI8;
  const bool words = form.has_words(), is_listed = words && form.places() <= kMostWords;
  if (!words) {
    fragments_.insert(is_signed ? F::kConvSingleS8 : F::kConvSingleU8);
    function = "conv_single";
  } else if (form.has_image() && is_signed && is_listed) {
    fragments_.insert(F::kConvImageS8);
    function = "conv_image";
  } else if (form.codes == nullptr) {
    fragments_.insert(is_signed ? F::kConvDenseS8 : F::kConvDenseU8);
    function = "conv_dense";
  } else if (form.has_quads()) {
    fragments_.insert(is_signed ? F::kConvQuadsS8 : F::kConvQuadsU8);
    function = "conv_quads";
  } else {
    fragments_.insert(is_signed ? F::kConvBlocksS8 : F::kConvBlocksU8);
    function = "conv_blocks";
  }
  function += is_signed ? "_s8" : "_u8";
  const int bias_shift = net_.tensors(node).scale.bias_shift;
  const std::string weights = add_int8_weights(form, function == "conv_image_s8", is_listed);
  if (form.bias == nullptr) all_biased_ = false;
  const std::string starts = add_starts(form, bias_shift, words && !is_signed);
  if (is_listed) {
    words_ = std::max(words_, form.places());
  } else if (words) {
    all_listed_ = false;
  } else if (form.inputs * form.taps <= ConvForm::kWord * kMostWords) {
    gathered_ = std::max(gathered_, (form.inputs * form.taps + ConvForm::kWord - 1) / ConvForm::kWord);
  }
  if (form.groups == 1) {
    const int64_t places = words ? form.places() : std::min(form.places(), kMostPlaces);
    if (form.codes != nullptr || form.inputs <= 4) places_ = std::max(places_, round_up(places, int64_t{4}));
  }
  std::string codes = "NULL";
  if (form.codes != nullptr) {
    codes = add_array(Kind::kPositions, "uint8_t", "positions",
                      packed_codes(*form.codes, code_bits_, static_cast<size_t>(form.row_codes())));
  }
  const auto [scales, scale_of] = add_scales(step);
  const bool is_usual = gives_usual_bytes(step, form);
  if (!is_usual && of.dequantize.empty()) all_usual_ = false;
  const std::string dequantize = add_array(Kind::kOther, "float", "dequantize", of.dequantize);
  layer =
      add_constant("Conv",
                   fmt::format("{{{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}}}",
                               window_text(node), form.outputs, form.inputs, form.groups, form.block_inputs,
                               form.blocks, form.share_outputs, code_bytes(form), form.taps, bias_shift, of.left_shift,
                               is_usual ? 1 : 0, weights, starts, codes, scales, scale_of, dequantize),
                   kInt8ConvBytes);
}

}  // namespace onetap
