// The shapes in docs/playground-api.md, for comparison with real answers.
#pragma once

#include "playground/json/json.hpp"

#include "support/files.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace bloomery_tests {

using bloomery::playground::json;

// The blocks "NAME = {...}" of the document, by name; words in capitals become strings.
inline std::map<std::string, std::vector<json>> documented() {
  const bytes page = read_file(BLOOMERY_SOURCE_DIR "/docs/playground-api.md");
  std::istringstream text(std::string(page.begin(), page.end()));
  std::map<std::string, std::vector<json>> shapes;
  std::string name, block;
  const auto end_block = [&] {
    if (!name.empty()) {
      const std::string quoted = std::regex_replace(block, std::regex(R"(([:\[] ?)([A-Z]+)\b)"), "$1\"$2\"");
      const json shape = json::parse(quoted, nullptr, false, true);
      EXPECT_FALSE(shape.is_discarded()) << name << " is not JSON with comments:\n" << quoted;
      shapes[name].push_back(shape);
    }
    name.clear();
    block.clear();
  };
  const std::regex start(R"(    ([A-Z]+) = (.*))");
  for (std::string line; std::getline(text, line);) {
    std::smatch found;
    if (std::regex_match(line, found, start)) {
      end_block();
      name = found[1];
      block = found[2].str() + "\n";
    } else if (!name.empty() && line.starts_with("     ")) {
      block += line + "\n";
    } else {
      end_block();
    }
  }
  end_block();
  return shapes;
}

// Fields that the document declares nullable, in addition to those it shows as null.
inline const std::regex may_be_null(
    "PARAMS\\.scheme|PLAN\\.(probes|layouts)|LOG\\.steps|KEY\\.(truth|numbers)|ASKED\\.false_positives|"
    "HISTORY\\.(keys_per_second|full_in|samples\\[\\]\\.(keys|rate))|FACTS\\.(keys|counted|estimated\\.(value|sigma)|"
    "window|keys_left)|"
    "INSPECTION\\.(changed_at|file_bytes|measured|forecast|growth|shards|nodes|heat|"
    "histogram(\\.(expected|chance|fits))?)");

// Fields shown as null whose other values are objects or numbers; all others are strings.
inline const std::regex object_or_null(
    "JOB\\.(result|error)|KEY\\.block|INSPECTION\\.(error|failed_at|expires_at|growth\\.most_keys)");

class shapes {
 public:
  // Whether an answer matches a shape at every depth; reports differences.
  void check(const json& answer, const std::string& name) {
    ASSERT_TRUE(all_.contains(name)) << name << " is not documented";
    seen_.insert(name);
    compare(answer, all_.at(name).front(), name);
  }
  const std::map<std::string, std::vector<json>>& all() const { return all_; }
  bool seen(const std::string& name) const { return seen_.contains(name); }

 private:
  static std::set<std::string> names_of(const json& object) {
    std::set<std::string> names;
    for (const auto& [name, value] : object.items()) names.insert(name);
    return names;
  }

  void compare(const json& answer, const json& shape, const std::string& where) {
    if (answer.is_null()) {
      EXPECT_TRUE(shape.is_null() || std::regex_match(where, may_be_null)) << where;
      return;
    }
    if (shape.is_null()) {
      EXPECT_TRUE(answer.is_string() || std::regex_match(where, object_or_null)) << where << ": " << answer;
      return;
    }
    if (shape.is_string() && all_.contains(shape.get<std::string>())) return check(answer, shape);
    if (shape.is_object()) {
      ASSERT_TRUE(answer.is_object()) << where << ": " << answer;
      EXPECT_EQ(names_of(answer), names_of(shape)) << where;
      for (const auto& [name, value] : shape.items()) {
        if (answer.contains(name)) compare(answer[name], value, where + "." + name);
      }
    } else if (shape.is_array()) {
      ASSERT_TRUE(answer.is_array()) << where << ": " << answer;
      for (const json& element : answer) {
        // Of several shapes, the one with the names of the answer.
        const auto alike = std::find_if(shape.begin(), shape.end(), [&](const json& one) {
          return !one.is_object() || names_of(one) == names_of(element);
        });
        compare(element, alike == shape.end() ? shape.front() : *alike, where + "[]");
      }
    } else {
      EXPECT_EQ(answer.is_string(), shape.is_string()) << where << ": " << answer;
      EXPECT_EQ(answer.is_boolean(), shape.is_boolean()) << where << ": " << answer;
      EXPECT_EQ(answer.is_number(), shape.is_number()) << where << ": " << answer;
    }
  }

  std::map<std::string, std::vector<json>> all_ = documented();
  std::set<std::string> seen_;
};

}  // namespace bloomery_tests
