// Result of bloomery info, and its text.
#pragma once

#include "cli/commands/fpr_watch.hpp"

#include <bloomery/filter_facts.hpp>
#include <bloomery/judgement.hpp>
#include <bloomery/measure.hpp>
#include <bloomery/redis.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace bloomery::cli {

/// The expected FPR with more keys.
struct forecast_step {
  std::uint64_t more_percent = 0;
  double fpr = 0;
};

struct info_result {
  std::string name;  ///< as shown_name()
  filter_facts facts;
  std::optional<measured_rate> measured = {};
  bool cannot_measure = false;  ///< keys cannot be hashed: the secret is missing, or the hash is not built in
  std::vector<forecast_step> forecast = {};
  std::optional<std::vector<std::string>> page_problems = {};  ///< empty: pages were not checked
  fpr_judgement judgement = {};
  std::optional<redis_counters> client = {};  ///< for a shared filter: counters of this command's connections
};

/// The problem of the key log and a hint; empty without a problem.
std::string problem_of(const log_facts& log);

/// What a lookup reads: "8 probes per key", "2 blocks per key".
std::string probes_text(const params& p);

/// The page that info prints without --json.
std::string text_of(const info_result& r);

}  // namespace bloomery::cli
