// classes.json: how a network does on every class of its test set.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace onetap {

struct ClassScores {
  int64_t step = 0;  // of the training that was tested
  std::string form;  // hard, dense, ...
  std::vector<std::string> classes;
  // [label, answer]: images of a class by what they were taken for.
  std::vector<int64_t> confusion;
  double top5 = 0;  // share of images whose class is among the five best answers

  int64_t images(size_t label) const;  // of a class
  int64_t right(size_t label) const { return confusion[label * classes.size() + label]; }
  // The class that images of this one are most often predicted as, other than itself; itself if there is none.
  size_t mistaken_for(size_t label) const;

  std::string json() const;
  // kData naming `label` if the text is no such object, its lists have other lengths, or a count is negative.
  static ClassScores parse(std::string_view text, std::string_view label);
};

}  // namespace onetap
