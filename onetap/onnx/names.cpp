#include "onetap/onnx/names.h"

#include "onetap/base/text.h"

#include <algorithm>
#include <cctype>

namespace onetap {
namespace {

constexpr size_t kMaxName = 180;  // a graph's names may be a little longer

std::string cleaned(std::string_view text) {
  std::string name;
  for (const char c : text.substr(0, kMaxName)) {
    const bool allowed = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
    if (c == '.' && (name.empty() || name.back() == '.')) continue;
    name += allowed ? c : '_';
  }
  while (!name.empty() && name.back() == '.') name.pop_back();
  return name;
}

}  // namespace

std::string layer_of_weight(std::string_view initialiser) {
  constexpr std::string_view kEnd = ".weight";
  if (initialiser.size() <= kEnd.size() || initialiser.substr(initialiser.size() - kEnd.size()) != kEnd) return "";
  const std::string_view layer = initialiser.substr(0, initialiser.size() - kEnd.size());
  return cleaned(layer) == layer ? std::string(layer) : "";
}

std::vector<std::string> operator_names(std::string_view name, std::string_view op_type) {
  if (name.empty()) return {cleaned(op_type)};
  if (name.front() != '/') {
    const size_t slash = name.find('/');
    if (slash == std::string_view::npos || name.find('/', slash + 1) != std::string_view::npos) return {cleaned(name)};
    return {cleaned(name.substr(0, slash)), cleaned(name)};  // as our own exports call what a node became
  }
  std::string path, before;
  const std::vector<std::string_view> parts = split(name.substr(1), '/');
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    const std::string part(parts[i]);
    const bool continues = !before.empty() && part.rfind(before + '.', 0) == 0;
    path += continues ? part.substr(before.size()) : (path.empty() ? "" : ".") + part;
    before = part;
  }
  const std::string last(parts.back());
  std::vector<std::string> names;
  if (!path.empty()) names.push_back(cleaned(path));
  names.push_back(cleaned(path.empty() ? last : path + '.' + last));
  return names;
}

bool NameTable::has_name_in_front(const std::string& name) const {
  for (size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1)) {
    if (names_.count(name.substr(0, dot)) > 0) return true;
  }
  return false;
}

bool NameTable::is_free(const std::string& name) const {
  return !name.empty() && names_.count(name) == 0 && fronts_.count(name) == 0 && !has_name_in_front(name);
}

std::string NameTable::take(const std::vector<std::string>& wishes) {
  const auto found = std::find_if(wishes.begin(), wishes.end(), [&](const std::string& wish) { return is_free(wish); });
  std::string name;
  if (found != wishes.end()) {
    name = *found;
  } else {
    std::string stem = wishes.empty() || wishes.back().empty() ? "node" : wishes.back();
    if (has_name_in_front(stem)) std::replace(stem.begin(), stem.end(), '.', '_');
    int64_t& number = numbers_[stem];
    for (name = stem; !is_free(name); name = stem + '_' + std::to_string(number + 1)) ++number;
  }
  names_.insert(name);
  for (size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1)) {
    fronts_.insert(name.substr(0, dot));
  }
  return name;
}

}  // namespace onetap
