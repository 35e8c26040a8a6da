// What bloomery info found out about a filter, and how it reads as text.
#pragma once

#include <bloomery/filter_facts.hpp>
#include <bloomery/measure.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace bloomery::cli {

/// The FPR with more keys than there are.
struct forecast_step {
  std::uint64_t more_percent = 0;
  double fpr = 0;
};

struct info_result {
  std::string name;  ///< as shown_name()
  filter_facts facts;
  std::optional<measured_rate> measured = {};
  bool needs_secret = false;  ///< to be measured
  std::vector<forecast_step> forecast = {};
  std::optional<std::vector<std::string>> page_problems = {};  ///< empty: pages were not checked
};

/// One line per fact, each with its name and a line end.
std::string text_of(const info_result& result);

/// How far the bits are from those that the count leads to: "by 7.2 standard deviations".
std::string distance_text(const fill_check& count);

/// What is wrong with the key log and what to do; empty without a problem.
std::string problem_of(const log_facts& log);

}  // namespace bloomery::cli
