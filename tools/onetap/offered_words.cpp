#include "tools/onetap/offered_words.h"

#include "onetap/base/text.h"
#include "onetap/graph/zoo/zoo.h"

namespace onetap::tool {

CLI::Validator offered(const std::vector<std::string>& words) {
  // As CLI11's own validators describe themselves.
  return CLI::Validator([](std::string&) { return std::string(); }, "{" + join(words, ",") + "}");
}

std::vector<std::string> offered_words(const CLI::Option& option) {
  // "TEXT:{f32->0,f16->1}": CLI11 gives the words of a validator in its description alone.
  const std::string description = option.get_type_name();
  const size_t open = description.find('{'), close = description.find('}', open);
  std::vector<std::string> words;
  if (open == std::string::npos || close == std::string::npos) return words;
  for (const auto part : split(std::string_view(description).substr(open + 1, close - open - 1), ',')) {
    words.emplace_back(part.substr(0, part.find("->")));
  }
  return words;
}

std::vector<std::string> architecture_words() {
  std::vector<std::string> words;
  for (const ZooEntry& row : zoo()) {
    // "resnet20, 32, 44": the depths after the first stand alone.
    for (const auto part : split(row.name, ',')) {
      const std::string name(trim(part));
      const bool is_depth = !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
      words.push_back(is_depth ? row.spellings.front() + name : name);
    }
  }
  return words;
}

std::vector<std::string> checkpoint_words() {
  return {"last", "best"};
}

std::vector<std::string> data_words() {
  return {"shapes", "cifar10", "cifar100", "cifar10:", "cifar100:", "folder:"};
}

std::vector<std::string> device_words() {
  return {"auto", "cpu", "cuda"};
}

}  // namespace onetap::tool
