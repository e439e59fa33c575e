#include "onetap/data/subset.h"

#include "onetap/base/fail.h"
#include "onetap/base/random.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace onetap {
namespace {

// The images of every class, each class in an order of its own that `seed` draws.
std::map<int64_t, std::vector<uint32_t>> drawn_by_class(const Dataset& data, uint64_t seed) {
  std::map<int64_t, std::vector<uint32_t>> classes;
  for (int64_t i = 0; i < data.size(); ++i) classes[data.label(i)].push_back(static_cast<uint32_t>(i));
  for (auto& [label, images] : classes) {
    const auto order =
        permutation(static_cast<uint32_t>(images.size()), Random(seed, Purpose::kSplit, static_cast<uint32_t>(label)));
    std::vector<uint32_t> drawn;
    for (const uint32_t i : order) drawn.push_back(images[i]);
    images = std::move(drawn);
  }
  return classes;
}

std::shared_ptr<const Dataset> subset(const std::shared_ptr<const Dataset>& data, std::vector<uint32_t> kept) {
  std::sort(kept.begin(), kept.end());
  return std::make_shared<SubsetDataset>(data, std::move(kept));
}

}  // namespace

std::shared_ptr<const Dataset> limited(std::shared_ptr<const Dataset> data, int64_t limit, uint64_t seed) {
  if (data->size() <= limit) return data;
  const auto classes = drawn_by_class(*data, seed);
  std::vector<uint32_t> kept;
  for (size_t round = 0; static_cast<int64_t>(kept.size()) < limit; ++round) {
    for (const auto& [label, images] : classes) {
      if (round < images.size() && static_cast<int64_t>(kept.size()) < limit) kept.push_back(images[round]);
    }
  }
  return subset(data, std::move(kept));
}

HeldOut hold_out(const std::shared_ptr<const Dataset>& data, double share, uint64_t seed) {
  std::vector<uint32_t> rest, held;
  for (const auto& [label, images] : drawn_by_class(*data, seed)) {
    if (images.size() < 2) {
      fail_data("[data] expected at least 2 training images of every class to hold some out, got {} of class {} ({})",
                images.size(), label, data->describe(images.front()));
    }
    const auto all = static_cast<int64_t>(images.size());
    const int64_t count =
        std::clamp<int64_t>(static_cast<int64_t>(std::lround(share * static_cast<double>(all))), 1, all - 1);
    held.insert(held.end(), images.begin(), images.begin() + count);
    rest.insert(rest.end(), images.begin() + count, images.end());
  }
  return {subset(data, std::move(rest)), subset(data, std::move(held))};
}

}  // namespace onetap
