// The choices of a recipe: enums, and the one table of the words that stand for them in recipes, flags and help texts.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace onetap {

enum class Shortcut { kA, kB };  // where shapes change: subsample and zero-pad, or a 1x1 convolution
enum class InitRule { kDefault, kFanOut };
enum class Binarize { kHard, kRound };
enum class AugmentChoice { kAuto, kNone, kCrop, kStrong, kResizedCrop };
enum class OptimizerChoice { kSgd, kAdamW };
enum class LrSchedule { kStep, kCosine };
enum class Precision { kAuto, kFp32, kTf32, kBf16 };
enum class Quantize { kNone, kInt8 };
enum class EngineChoice { kAuto, kPlain, kCaptured, kFused };

template <typename Choice>
struct Spelling {
  Choice value;
  const char* word;
};

// Choices<E>::kAll: the words of E, in the order in which help texts list them.
template <typename Choice>
struct Choices;

template <>
struct Choices<Shortcut> {
  static constexpr Spelling<Shortcut> kAll[] = {{Shortcut::kA, "A"}, {Shortcut::kB, "B"}};
};
template <>
struct Choices<InitRule> {
  static constexpr Spelling<InitRule> kAll[] = {{InitRule::kDefault, "default"}, {InitRule::kFanOut, "fan-out"}};
};
template <>
struct Choices<Binarize> {
  static constexpr Spelling<Binarize> kAll[] = {{Binarize::kHard, "hard"}, {Binarize::kRound, "round"}};
};
template <>
struct Choices<AugmentChoice> {
  static constexpr Spelling<AugmentChoice> kAll[] = {{AugmentChoice::kAuto, "auto"},
                                                     {AugmentChoice::kNone, "none"},
                                                     {AugmentChoice::kCrop, "crop"},
                                                     {AugmentChoice::kStrong, "strong"},
                                                     {AugmentChoice::kResizedCrop, "resized-crop"}};
};
template <>
struct Choices<OptimizerChoice> {
  static constexpr Spelling<OptimizerChoice> kAll[] = {{OptimizerChoice::kSgd, "sgd"},
                                                       {OptimizerChoice::kAdamW, "adamw"}};
};
template <>
struct Choices<LrSchedule> {
  static constexpr Spelling<LrSchedule> kAll[] = {{LrSchedule::kStep, "step"}, {LrSchedule::kCosine, "cosine"}};
};
template <>
struct Choices<Precision> {
  static constexpr Spelling<Precision> kAll[] = {
      {Precision::kAuto, "auto"}, {Precision::kFp32, "fp32"}, {Precision::kTf32, "tf32"}, {Precision::kBf16, "bf16"}};
};
template <>
struct Choices<Quantize> {
  static constexpr Spelling<Quantize> kAll[] = {{Quantize::kNone, "none"}, {Quantize::kInt8, "int8"}};
};
template <>
struct Choices<EngineChoice> {
  static constexpr Spelling<EngineChoice> kAll[] = {{EngineChoice::kAuto, "auto"},
                                                    {EngineChoice::kPlain, "plain"},
                                                    {EngineChoice::kCaptured, "captured"},
                                                    {EngineChoice::kFused, "fused"}};
};

template <typename Choice>
std::vector<std::string> choice_words() {
  std::vector<std::string> words;
  for (const auto& spelling : Choices<Choice>::kAll) words.emplace_back(spelling.word);
  return words;
}

template <typename Choice>
std::string choice_word(Choice value) {
  for (const auto& spelling : Choices<Choice>::kAll) {
    if (spelling.value == value) return spelling.word;
  }
  return "";  // no enumerator: refused where the recipe is checked
}

template <typename Choice>
std::optional<Choice> parse_choice(std::string_view word) {
  for (const auto& spelling : Choices<Choice>::kAll) {
    if (word == spelling.word) return spelling.value;
  }
  return std::nullopt;
}

}  // namespace onetap
