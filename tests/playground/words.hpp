// Checks that hold for every error of the API.
#pragma once

#include "visitor.hpp"

#include <regex>
#include <string>

namespace bloomery_tests {

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

}  // namespace bloomery_tests
