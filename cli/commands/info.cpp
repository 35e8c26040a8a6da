// bloomery info FILTER: everything that a filter reports about itself, whatever its kind and wherever it is. A keyed
// filter in a file needs no secret. bloomery info --build is in info_build.cpp.
#include "app/signals.hpp"
#include "cli/commands/commands.hpp"
#include "cli/commands/info_text.hpp"
#include "cli/commands/open_handle.hpp"
#include "cli/commands/shared_filter.hpp"
#include "cli/commands/window.hpp"
#include "cli/io/output.hpp"

#include <bloomery/error.hpp>
#include <bloomery/fold.hpp>
#include <bloomery/mapped_storage.hpp>
#include <bloomery/measure.hpp>

#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace bloomery::cli {
namespace {

using json = nlohmann::ordered_json;

// ---- finding out ----------------------------------------------------------------------------------------------------

// Random absent keys to look up unless the command line gives their number.
std::uint64_t usual_queries(const filter_handle& filter, const filter_facts& facts) {
  constexpr std::uint64_t usual = 1'000'000;                // some hundredths of a second
  constexpr std::uint64_t large = std::uint64_t{16} << 30;  // from where each may be a seek of the disk
  if (filter.capabilities().is_remote || facts.bytes >= large) return 0;
  // The keys of a scheme are hashed one by one, slowly.
  return facts.parameters.scheme.empty() ? usual : queries_of_scheme(facts.parameters, usual / 20);
}

void measure(info_result& result, filter_handle& filter, const info_options& options) {
  const std::uint64_t queries = options.queries.value_or(usual_queries(filter, result.facts));
  if (!filter.capabilities().can_look_up) {
    result.needs_secret = options.queries.value_or(1) > 0;
    return;
  }
  if (queries == 0) return;
  result.measured = measure_rate(filter, queries, 0, 0, [] { return stop_signal() == 0; });
  if (stop_signal() != 0) throw interrupted();
}

// Empty for filters whose FPR does not follow from a number of keys.
std::vector<forecast_step> forecast_of(const filter_facts& facts) {
  std::vector<forecast_step> steps;
  if (!facts.file || !facts.fill->estimated_keys) return steps;
  for (const std::uint64_t percent : {10u, 50u, 100u}) {
    const double more = static_cast<double>(facts.distinct_keys) * (1 + 0.01 * static_cast<double>(percent));
    const auto keys = static_cast<std::uint64_t>(std::llround(std::min(more, static_cast<double>(beyond_counting))));
    steps.push_back({percent, expected_fpr(facts.parameters, keys)});
  }
  return steps;
}

info_result find_out(const info_options& options) {
  const std::unique_ptr<filter_handle> filter = open_handle({.name = options.filter,
                                                             .secret = options.secret,
                                                             .chain = options.chain,
                                                             .server = options.server,
                                                             .quiet = true,
                                                             .facts_only = true});
  if (options.check_pages && filter->capabilities().is_remote) {
    throw error(errc::invalid_argument, {"a filter on servers has no pages with checksums", "--check", "", "",
                                         "leave it out: whether all of it is there is always checked"});
  }
  filter->tick(0);  // a window by time: as of its newest generation
  info_result result{shown_name(options.filter),
                     filter->info(options.check_pages ? info_depth::everything : info_depth::bits)};
  measure(result, *filter, options);
  result.forecast = forecast_of(result.facts);
  if (options.check_pages) result.page_problems = inspect(options.filter, file_check::payload).problems;
  return result;
}

// ---- JSON -----------------------------------------------------------------------------------------------------------

json text_or_null(const std::string& text) { return text.empty() ? json(nullptr) : json(text); }

template <class Number>
json number_or_null(const std::optional<Number>& number) {
  return number ? json(*number) : json(nullptr);
}

json seconds_or_null(const std::optional<std::int64_t>& milliseconds) {
  return milliseconds ? json(static_cast<double>(*milliseconds) / 1000) : json(nullptr);
}

void add_kind(json& result, const filter_facts& f) {
  const params& p = f.parameters;
  result["layout"] = text_or_null(p.layout);
  if (f.shared || f.static_keys)
    result["family"] = name_of(family_of(p));
  else
    result["scheme"] = text_or_null(f.chain ? chain_scheme : p.scheme);
  result.update({{"hash", text_or_null(p.hash)},
                 {"keys", name_of(p.keys)},
                 {"seed", p.seed},
                 {"key_check", text_or_null(p.key_check == 0 ? "" : key_check_text(p.key_check))}});
}

void add_size(json& result, const filter_facts& f) {
  const params& p = f.parameters;
  if (f.shared) {
    result.update({{"shards", f.shared->shards},
                   {"lines_of_a_shard", f.shared->lines_per_shard},
                   {"layers", f.shared->layers},
                   {"epoch", f.shared->epoch}});
  }
  result["bits"] = f.chain ? p.geometry.bits : f.bits;
  result["bytes"] = f.bytes;
  if (f.file) result["file_bytes"] = f.file->bytes;
  if (f.static_keys) result["width"] = f.static_keys->fingerprint_bits;
  if (f.shared) result["first_bits"] = p.geometry.bits;
  result["probes"] = p.geometry.probes;
  if (f.static_keys) result["partitions"] = f.static_keys->partitions;
  result["capacity"] = p.capacity;
  result["target_rate"] = p.target_fpr;
  if (f.shared) {
    const double window = static_cast<double>(p.window_milliseconds) / 1000;
    result.update({{"growth", !f.shared->grows    ? "none"
                              : f.shared->maximum ? "to_maximum"
                                                  : "unlimited"},
                   {"most_keys", number_or_null(f.shared->maximum)},
                   {"window_seconds", p.window_milliseconds == 0 ? json(nullptr) : json(window)}});
  }
  if (f.chain) result.update({{"growths", f.chain->growths}, {"ones", f.chain->ones}});
  if (f.shared || f.chain) result["expires_at"] = seconds_or_null(f.expires_at);
}

void add_keys(json& result, const filter_facts& f) {
  if (f.insert_count) {
    result["inserted"] = *f.insert_count;
    result["count_is_estimate"] = f.count_is_estimate;
  }
  if (f.static_keys) {
    const auto keys = static_cast<double>(f.static_keys->keys);
    result["bits_a_key"] = keys == 0 ? json(nullptr) : json(static_cast<double>(f.bits) / keys);
  }
  if (f.window) result["window"] = window_json(*f.window);
  if (f.fill && f.fill->estimated_keys) {
    result["estimated_keys"] = cli::number_or_null(f.fill->estimated_keys->value);
    if (f.consistency) result["estimated_keys_sigma"] = cli::number_or_null(f.fill->estimated_keys->sigma);
  }
  if (f.fill && f.fill->cells != 0) result["fill"] = f.fill->fill_ratio();
}

void add_rates(json& result, const info_result& r) {
  const filter_facts& f = r.facts;
  if (f.fill) result["rate_now"] = f.fill->current_fpr;
  if (f.expected_fpr) {
    result["predicted_rate"] = *f.expected_fpr;
    result["predicted_for_keys"] = f.distinct_keys;
  }
  result["measured_rate"] = r.measured ? json_of(*r.measured) : json(nullptr);
  if (f.keys_left || f.shared) result["keys_left"] = number_or_null(f.keys_left);
  if (!r.forecast.empty()) {
    result["forecast"] = json::array();
    for (const forecast_step& step : r.forecast) {
      result["forecast"].push_back({{"more_percent", step.more_percent}, {"rate", step.fpr}});
    }
    result["times_foldable"] = times_foldable(f.parameters);
  }
  if (f.consistency && f.fill->cells != 0) {
    const fill_check& count = f.consistency->count;
    result["alarm"] = f.consistency->alarm;
    result["bits_deviation"] = count.conclusive ? cli::number_or_null(count.deviation()) : json(nullptr);
  }
}

json json_of(const log_facts& log, const filter_facts& f) {
  const auto bits_per_key = [&](std::uint64_t bytes) {
    return 8.0 * static_cast<double>(bytes) / static_cast<double>(std::max<std::uint64_t>(f.distinct_keys, 1));
  };
  json result = {{"file", log.path}};
  if (log.is_open) result.update({{"keys", log.keys}, {"bytes", log.bytes}, {"generation", log.generation}});
  if (log.problem != log_problem::none) result["problem"] = problem_of(log);
  result.update({{"bits_a_key", bits_per_key(f.file ? f.file->bytes : f.bytes)},
                 {"bytes_while_growing", log.bytes_while_growing},
                 {"bits_a_key_while_growing", bits_per_key(log.bytes_while_growing)}});
  return result;
}

json json_of(const info_result& r) {
  const filter_facts& f = r.facts;
  json result = {{"filter", r.name}};
  add_kind(result, f);
  add_size(result, f);
  add_keys(result, f);
  add_rates(result, r);
  if (f.file) result.update({{"clean", f.file->clean}, {"note", f.file->metadata}});
  if (f.log) result["log"] = json_of(*f.log, f);
  if (f.counting) {
    result.update({{"counters", f.counting->counters},
                   {"counters_full", number_or_null(f.counting->full)},
                   {"tainted", f.counting->refused_removals > 0},
                   {"refused_removals", f.counting->refused_removals},
                   {"unnoticed_removals", cli::number_or_null(f.counting->unnoticed_removals)}});
  }
  if (r.page_problems) result["problems"] = *r.page_problems;
  return result;
}

// ---- options --------------------------------------------------------------------------------------------------------

void check_given(const info_options& options) {
  const auto refuse = [](const char* what, const char* option, const std::string& expected, const std::string& found) {
    throw error(errc::invalid_argument, {what, option, expected, found, "leave out one of the two"});
  };
  if (!options.build) {
    if (!options.filter.empty()) return;
    throw error(errc::invalid_argument, {"missing argument", "info", "the name of a FILTER, or --build", "neither",
                                         "see bloomery info --help"});
  }
  const char* const about_filters = options.queries           ? "--queries"
                                    : !options.secret.empty() ? "--secret"
                                                              : given_of(options.server, {}, options.chain);
  const char* const what = "this is about the program and not about a filter";
  if (!options.filter.empty()) refuse(what, "--build", "no FILTER", "'" + options.filter + "'");
  if (options.check_pages) refuse("there are no pages to check in a program", "--build", "", "--check");
  if (about_filters != nullptr) refuse(what, "--build", "", about_filters);
}

}  // namespace

exit_status info(const info_options& options) {
  check_given(options);
  if (options.build) return info_of_build(options.json);
  const info_result result = find_out(options);
  output out(STDOUT_FILENO, "standard output");
  out.write(options.json ? json_line(json_of(result)) : text_of(result));
  out.flush();
  const bool has_bad_pages = result.page_problems && !result.page_problems->empty();
  const bool has_bad_log = options.check_pages && result.facts.log && result.facts.log->problem != log_problem::none;
  return has_bad_pages || has_bad_log ? exit_status::nothing : exit_status::found;
}

}  // namespace bloomery::cli
