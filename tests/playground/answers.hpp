// Checks of the API's answers.
#pragma once

#include "playground/json/json.hpp"

#include <gtest/gtest.h>

#include <regex>
#include <string>

namespace bloomery_tests {

using bloomery::playground::json;

/// Asserts that the error says what is wrong and what to do, and mentions no option of the command.
inline void expect_words(const json& answer) {
  ASSERT_TRUE(answer.contains("error")) << answer;
  const json& e = answer["error"];
  for (const char* name : {"code", "what", "way_out"}) EXPECT_NE(e[name], "") << name << " of " << answer;
  for (const auto& [name, value] : e.items()) {
    const std::string text = value.get<std::string>();
    EXPECT_FALSE(std::regex_search(text, std::regex("(^|[^a-z0-9])-{1,2}[a-z]"))) << name << " of " << answer;
    EXPECT_LT(text.size(), 400u);
  }
}

/// Asserts that the answer has all fields of an expected object, at every depth. Other values must be equal.
inline void expect_contains(const json& answer, const json& expected, const std::string& where = "") {
  if (!expected.is_object()) {
    EXPECT_EQ(answer, expected) << where;
    return;
  }
  ASSERT_TRUE(answer.is_object()) << where << ": " << answer;
  for (const auto& [name, value] : expected.items()) {
    EXPECT_TRUE(answer.contains(name)) << where << "." << name;
    if (answer.contains(name)) expect_contains(answer[name], value, where + "." + name);
  }
}

}  // namespace bloomery_tests
