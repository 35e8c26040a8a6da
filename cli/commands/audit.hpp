// analyze --exec: measures the filter of another program and judges whether it keeps its target FPR.
//
// docs/audit.md describes the lines that the program reads and writes.
#pragma once

#include "app/experiment.hpp"
#include "cli/commands/options.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace bloomery::cli {

struct audit_options {
  std::string command;                        ///< --exec, for sh -c; empty: no audit
  std::optional<std::uint64_t> milliseconds;  ///< --timeout

  bool is_wanted() const noexcept { return !command.empty(); }
};

/// Adds --exec and --timeout. The options of the command that --exec excludes must exist.
void add_audit(command& c, audit_options& o);

/// The filter that the program should behave like: of layout classic, unless another layout or a scheme is given. With
/// both bits and a rate, the target FPR is the rate.
params expected_of_audit(making_options wanted, std::uint64_t capacity, double default_rate);

/// The default number of queries per run.
std::uint64_t queries_of_audit(const experiment& e);

/// Carries out the experiment with the program as its filter, and prints the result.
/// @param carry_out  the experiment, with its progress bar
/// @return found if the target FPR is kept, otherwise nothing
exit_status audit(const audit_options& options, const making_options& wanted, const common_options& common,
                  experiment& e, const std::function<std::vector<measured_point>(const experiment&)>& carry_out);

}  // namespace bloomery::cli
