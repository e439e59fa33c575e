#include "onetap/tap/test_fact.h"

#include "onetap/base/text.h"

#include <fmt/format.h>

namespace onetap {
namespace {

constexpr const char *kKey = "tested", *kBeforeKey = "before";
constexpr std::string_view kOf = " of ", kImages = " images, ";

std::string fact_text(const TestFact& fact) {
  return fmt::format("{}{}{}{}{}", fact.accuracy, kOf, fact.images, kImages, fact.data);
}

}  // namespace

void set_test_fact(TapNet& net, const TestFact& fact) {
  net.facts[kKey] = fact_text(fact);
}

void set_before_fact(TapNet& net, const TestFact& fact) {
  net.facts[kBeforeKey] = fact_text(fact);
}

std::optional<TestFact> test_fact(const TapNet& net) {
  const auto found = net.facts.find(kKey);
  if (found == net.facts.end()) return std::nullopt;
  const std::string_view text = found->second;
  const size_t of = text.find(kOf), images = text.find(kImages);
  if (of == std::string_view::npos || images == std::string_view::npos || images < of + kOf.size()) return std::nullopt;
  const auto accuracy = parse_double(text.substr(0, of));
  const auto count = parse_int(text.substr(of + kOf.size(), images - of - kOf.size()));
  if (!accuracy || !(*accuracy >= 0 && *accuracy <= 1) || !count || *count < 1) return std::nullopt;
  return TestFact{*accuracy, *count, std::string(text.substr(images + kImages.size()))};
}

std::optional<int64_t> frozen_step(const TapNet& net) {
  const auto fact = net.facts.find("step");
  return fact == net.facts.end() ? std::nullopt : parse_int(fact->second);
}

std::optional<std::string> other_step_text(const std::string& file, const TapNet& net, int64_t last_test) {
  const auto step = frozen_step(net);
  if (!step || *step == last_test || net.facts.count("checkpoint") > 0) return std::nullopt;
  return fmt::format("{} was frozen at step {}, the run's last test was at step {}", file, *step, last_test);
}

}  // namespace onetap
