#include "onetap/base/json.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <functional>
#include <optional>

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

std::string problem_of(const std::function<void()>& read) {
  try {
    read();
  } catch (const nlohmann::json::exception& problem) {
    return problem.what();
  }
  return "none";
}

TEST(Json, MembersOfEveryKind) {
  const auto object = parse_json(
      R"({"number": 1.5, "null": null, "numbers": [1, 2.5], "yes": true, "text": "a", "texts": ["a", ""], "object": {}})");
  EXPECT_EQ(json_number(object, "number"), 1.5);
  EXPECT_EQ(json_number_or_null(object, "number"), 1.5);
  EXPECT_EQ(json_number_or_null(object, "null"), std::nullopt);
  EXPECT_EQ(json_numbers(object, "numbers"), (std::vector<double>{1, 2.5}));
  EXPECT_TRUE(json_bool(object, "yes"));
  EXPECT_EQ(json_string(object, "text"), "a");
  EXPECT_EQ(json_strings(object, "texts"), (std::vector<std::string>{"a", ""}));
  EXPECT_EQ(json_list(object, "texts").size(), 2u);
  EXPECT_TRUE(json_object(object, "object").empty());
}

TEST(Json, MessagesSayWhatWasExpectedAndWhatCame) {
  const auto object = parse_json(
      R"({"text": "a", "list": [1, "b"], "object": {}, "yes": true, "long": "0123456789012345678901234567890123456789"})");
  EXPECT_EQ(problem_of([&] { json_number(object, "text"); }), "expected a number for 'text', got \"a\"");
  EXPECT_EQ(problem_of([&] { json_number(object, "long"); }), "expected a number for 'long', got a long string");
  EXPECT_EQ(problem_of([&] { json_number_or_null(object, "yes"); }), "expected a number for 'yes', got true");
  EXPECT_EQ(problem_of([&] { json_numbers(object, "list"); }), "expected a number for 'list', got \"b\"");
  EXPECT_EQ(problem_of([&] { json_numbers(object, "object"); }), "expected a list for 'object', got an object");
  EXPECT_EQ(problem_of([&] { json_bool(object, "list"); }), "expected true or false for 'list', got a list");
  EXPECT_EQ(problem_of([&] { json_string(object, "yes"); }), "expected a text for 'yes', got true");
  EXPECT_EQ(problem_of([&] { json_strings(object, "list"); }), "expected a text for 'list', got 1");
  EXPECT_EQ(problem_of([&] { json_object(object, "list"); }), "expected an object for 'list', got a list");
  EXPECT_EQ(problem_of([&] { whole_number(object, "absent"); }), "expected the key 'absent', got none");
  EXPECT_EQ(problem_of([&] { json_number(parse_json("[1]"), "a"); }), "expected a JSON object, got a list");
  EXPECT_EQ(problem_of([&] { json_number(parse_json("no"), "a"); }),
            "expected a JSON object, got text that is not JSON");
}

std::string nested(size_t depth) {
  return std::string(depth, '[') + std::string(depth, ']');
}

TEST(Json, DeepTextsAreRefusedBeforeTheyTakeMemory) {
  EXPECT_FALSE(parse_json(nested(64)).is_discarded());
  EXPECT_TRUE(parse_json(nested(65)).is_discarded());
  EXPECT_TRUE(parse_json(std::string(10'000'000, '[')).is_discarded());
  std::string objects;
  for (int i = 0; i < 65; ++i) objects += "{\"a\":";
  EXPECT_TRUE(parse_json(objects + "1" + std::string(65, '}')).is_discarded());
}

TEST(Json, ManyValuesAreRefused) {
  JsonLimits limits;
  limits.values = 5;  // a list, and one more than its commas inside
  EXPECT_FALSE(parse_json("[1,2,3,4]", limits).is_discarded());
  EXPECT_TRUE(parse_json("[1,2,3,4,5]", limits).is_discarded());
  EXPECT_TRUE(parse_json("[[],[],[]]", limits).is_discarded());
}

TEST(Json, BracketsAndCommasInStringsAreText) {
  JsonLimits limits;
  limits.depth = 1;
  limits.values = 3;
  const auto list = parse_json(R"(["[[[{{{,,,,\"[[,,\\\\", 2])", limits);
  ASSERT_TRUE(list.is_array());
  EXPECT_EQ(list.at(0), "[[[{{{,,,,\"[[,,\\\\");
}

}  // namespace
}  // namespace onetap
