// Generated C, piece by piece: what a network's steps become.
#pragma once

#include "onetap/emit/c_fragments.h"
#include "onetap/emit/c_program.h"
#include "onetap/emit/c_project.h"
#include "onetap/emit/c_text.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace onetap {

struct ConvForm;

class CSource {
 public:
  // kSizes: the lists of weights are counted, but not written.
  enum class Purpose { kText, kSizes };

  CSource(const TapNet& net, const CProgram& program, std::string name, Purpose purpose);

  std::string model() const;    // NAME.c
  std::string weights() const;  // NAME_weights.c
  const CSizes& sizes() const { return sizes_; }

 private:
  enum class Kind { kWeights, kPositions, kOther };

  void add_step(int index);
  // What stands in a step's row: its function, and the layer's description.
  std::pair<std::string, std::string> layer_of(const CStep& step);
  std::string add_input(const CStep& step);
  std::string add_pixel_input(const CStep& step);
  std::string add_output(const CStep& step);
  std::string add_value_scale(const char* type, int value);
  std::string add_conv(const CStep& step, std::string& layer);
  void add_float_conv(const CStep& step, std::string& layer, std::string& function);
  void add_int8_conv(const CStep& step, std::string& layer, std::string& function);
  std::pair<std::string, std::string> add_scales(const CStep& step);
  const Int8Step& int8_step(const CStep& step) const;
  bool gives_usual_bytes(const CStep& step, const ConvForm& form) const;
  std::string int8_pool_text(const CStep& step) const;
  std::string window_text(const Node& node) const;
  int64_t code_bytes(const ConvForm& form) const;

  // Defines a constant array of NAME_weights.c; returns its name, or NULL where it has no elements.
  template <typename T>
  std::string define_array(const char* type, const char* what, const std::vector<T>& values, const char* attribute = "",
                           std::string (*list)(const std::vector<T>&) = number_list);
  // Likewise, and counts its bytes.
  template <typename T>
  std::string add_array(Kind kind, const char* type, const char* what, const std::vector<T>& values,
                        const char* attribute = "", std::string (*list)(const std::vector<T>&) = number_list);
  std::string add_int8_weights(const ConvForm& form, bool is_image, bool is_listed);
  // What sums start from: a layer's bias, or one array or another, by whether there are vectors.
  std::string add_starts(const ConvForm& form, int bias_shift, bool moved);
  // Defines a constant array of NAME.c for the current step; returns its name.
  template <typename T>
  std::string add_list(const char* type, const std::vector<T>& values);
  // Defines a constant of NAME.c for the current step; returns its address.
  std::string add_constant(const std::string& type, const std::string& initializer, int64_t bytes);
  void count(Kind kind, int64_t bytes);
  int64_t step_index_bytes() const;  // of an entry of the list of rows
  int64_t stack_bytes() const;
  std::string order_text() const;
  std::string run_text() const;

  const TapNet& net_;
  const CProgram& program_;
  const std::string name_;
  const Purpose purpose_;
  int code_bits_ = 4;
  bool has_empty_ = false;
  int64_t positions_ = 1;   // of the largest kernel of a convolution
  int64_t places_ = 4;      // of the longest list that vectors are read by
  int64_t words_ = 0;       // of the longest list of words that several outputs read
  int64_t gathered_ = 0;    // words of the longest list of inputs that lie apart
  bool all_usual_ = true;   // whether every convolution gives usual bytes, or floats
  bool all_biased_ = true;  // whether every int8 convolution has a bias
  bool all_listed_ = true;  // whether no layer has more words than a list may have
  std::set<CFragment> fragments_;
  std::string values_, layers_, steps_, arrays_, declarations_;
  std::string current_;  // the step's name as part of an identifier
  CSizes sizes_;
};

template <typename T>
std::string CSource::define_array(const char* type, const char* what, const std::vector<T>& values,
                                  const char* attribute, std::string (*list)(const std::vector<T>&)) {
  if (values.empty()) return "NULL";
  std::string array = fmt::format("{}_{}_{}", name_, current_, what);
  if (purpose_ == Purpose::kSizes) return array;
  const std::string declaration = fmt::format("const {} {}[{}]", type, array, values.size());
  declarations_ += "extern " + declaration + ";\n";
  arrays_ += "\nextern " + declaration + ";\n" + declaration + attribute + " = {\n" + list(values) + "};\n";
  return array;
}

template <typename T>
std::string CSource::add_array(Kind kind, const char* type, const char* what, const std::vector<T>& values,
                               const char* attribute, std::string (*list)(const std::vector<T>&)) {
  count(kind, static_cast<int64_t>(values.size() * sizeof(T)));
  return define_array(type, what, values, attribute, list);
}

template <typename T>
std::string CSource::add_list(const char* type, const std::vector<T>& values) {
  layers_ += fmt::format("static const {} {}[] = {{{}}};\n", type, current_, fmt::join(values, ", "));
  count(Kind::kOther, static_cast<int64_t>(values.size() * sizeof(T)));
  return current_;
}

}  // namespace onetap
