#include "onetap/base/json.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdint>

namespace onetap {
namespace {

TEST(Json, WholeNumbersAreWholeAndFit) {
  const auto object = parse_json(R"({"a": 7, "b": -1, "most": 9223372036854775807, "list": [0, 3]})");
  EXPECT_EQ(whole_number(object, "a"), 7);
  EXPECT_EQ(whole_number(object, "b", -1), -1);
  EXPECT_EQ(whole_number(object, "most"), INT64_MAX);
  EXPECT_EQ(whole_numbers(object, "list"), (std::vector<int64_t>{0, 3}));
}

TEST(Json, WhatIsNoWholeNumberIsRefusedByName) {
  const auto object = parse_json(
      R"({"huge": 1e62, "part": 1.5, "text": "7", "none": null, "over": 9223372036854775808, "low": -1, "list": [1, 1e62]})");
  for (const char* key : {"huge", "part", "text", "none", "over", "low", "list", "absent"}) {
    try {
      whole_number(object, key);
      ADD_FAILURE() << key;
    } catch (const nlohmann::json::exception& problem) {
      EXPECT_NE(std::string(problem.what()).find(key), std::string::npos) << problem.what();
    }
    EXPECT_THROW(whole_numbers(object, key), nlohmann::json::exception) << key;
  }
  EXPECT_THROW(whole_number(parse_json("no json"), "a"), nlohmann::json::exception);
  EXPECT_THROW(whole_number(parse_json("[1]"), "a"), nlohmann::json::exception);
}

}  // namespace
}  // namespace onetap
