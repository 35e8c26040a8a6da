// bloomery info FILTER: shows the parameters and the state of a filter of any kind, in a file or on Redis. For a keyed
// filter in a file no secret is needed. The text is in info_text.cpp, bloomery info --build in info_build.cpp.
#include "app/numbers.hpp"
#include "app/signals.hpp"
#include "cli/commands/common.hpp"
#include "cli/commands/container.hpp"
#include "cli/commands/fpr_watch.hpp"
#include "cli/commands/grammar.hpp"
#include "cli/commands/info_build.hpp"
#include "cli/commands/info_header.hpp"
#include "cli/commands/info_text.hpp"
#include "cli/commands/open_handle.hpp"
#include "cli/commands/removal.hpp"
#include "cli/commands/shared_filter.hpp"
#include "cli/commands/window.hpp"
#include "cli/io/output.hpp"
#include "cli/io/progress.hpp"

#include <bloomery/error.hpp>
#include <bloomery/filter_facts.hpp>
#include <bloomery/fold.hpp>
#include <bloomery/judgement.hpp>
#include <bloomery/mapped_storage.hpp>
#include <bloomery/measure.hpp>
#include <bloomery/redis/address.hpp>
#include <bloomery/redis/handle.hpp>

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

namespace bloomery::cli {
namespace {

struct info_options {
  std::string filter;  ///< empty with `build`
  std::string secret;
  std::optional<std::uint64_t> queries;  ///< absent keys to measure the FPR with
  bool check_pages = false;
  file_check check = file_check::automatic;
  bool build = false;   ///< describe the program instead of a filter
  bool header = false;  ///< read only the header of the file
  std::string column;   ///< of a Parquet file
  chain_options chain;
  server_options server;
  bool json = false;
};

using json = nlohmann::ordered_json;

// ---- collecting facts -----------------------------------------------------------------------------------------------

// Random absent keys to look up unless the command line gives their number.
std::uint64_t usual_queries(const filter_handle& filter, const filter_facts& facts) {
  constexpr std::uint64_t usual = 1'000'000;                // takes some hundredths of a second
  constexpr std::uint64_t large = std::uint64_t{16} << 30;  // larger filters: each lookup may be a seek of the disk
  if (filter.capabilities().is_remote || facts.bytes >= large) return 0;
  // The keys of a scheme are hashed one by one, slowly.
  return facts.parameters.scheme.empty() ? usual : queries_of_scheme(facts.parameters, usual / 20);
}

void measure(info_result& result, filter_handle& filter, const info_options& options) {
  const std::uint64_t queries = options.queries.value_or(usual_queries(filter, result.facts));
  if (!filter.capabilities().can_look_up) {
    result.cannot_measure = options.queries.value_or(1) > 0;
    return;
  }
  if (queries == 0) return;
  result.measured = measure_rate(filter, queries, 0, 0, [] { return stop_signal() == 0; });
  if (stop_signal() != 0) throw interrupted();
}

// Empty for filters whose FPR does not follow from a number of keys.
std::vector<forecast_step> forecast_of(const filter_facts& facts) {
  std::vector<forecast_step> steps;
  if (!facts.file || !facts.fill->estimated_keys || facts.layers.size() > 1) return steps;
  for (const std::uint64_t percent : {10u, 50u, 100u}) {
    const double more = static_cast<double>(facts.distinct_keys) * (1 + 0.01 * static_cast<double>(percent));
    const auto keys = static_cast<std::uint64_t>(std::llround(std::min(more, static_cast<double>(beyond_counting))));
    steps.push_back({percent, expected_fpr(facts.parameters, keys)});
  }
  return steps;
}

// Reading a large file may take minutes: shows the progress on a terminal.
void read_with_progress(const info_options& options, const filter_handle& filter) {
  constexpr std::uint64_t large = std::uint64_t{1} << 30;
  const any_filter* const local = filter.local();
  if (local == nullptr || local->byte_size() < large) return;
  progress bar(true, "checked");
  if (::isatty(STDERR_FILENO) != 0) {
    say(fmt::format("{}: reading {}; 'bloomery info --header' shows the parameters without reading the file",
                    options.filter, bytes_text(local->byte_size())));
  }
  const auto bytes = static_cast<double>(local->byte_size());
  local->verify([&](double share) {
    if (bar.due()) {
      bar.show({.bytes_read = static_cast<std::uint64_t>(share * bytes),
                .bytes_total = local->byte_size(),
                .counts_keys = false});
    }
    return true;
  });
}

info_result find_out(const info_options& options) {
  const std::unique_ptr<filter_handle> filter =
      open_handle({.name = options.filter,
                   .secret = options.secret,
                   .chain = options.chain,
                   .server = options.server,
                   .quiet = true,
                   .facts_only = true,
                   .check = options.check_pages ? file_check::header : options.check,
                   .takes_layers = true});
  if (options.check_pages && filter->capabilities().is_remote) {
    throw error(errc::invalid_argument,
                {"a filter on servers has no page checksums", "--check", "", "", "leave out --check"});
  }
  const any_filter* const local = filter->local();
  if (options.check_pages && local != nullptr && local->opened_from() != nullptr &&
      !local->opened_from()->format.empty()) {
    throw error(errc::invalid_argument,
                {"files of other systems have no page checksums", "--check", "a file of bloomery",
                 "format " + local->opened_from()->format, "leave out --check"});
  }
  warn_of_clock(shown_name(options.filter), *filter);
  read_with_progress(options, *filter);
  filter->tick(0);  // for a window of time: as of its newest generation
  info_result result{shown_name(options.filter),
                     filter->info(options.check_pages ? info_depth::everything : info_depth::bits)};
  measure(result, *filter, options);
  if (result.facts.fill) result.judgement = judge_fpr(result.facts);
  result.forecast = forecast_of(result.facts);
  if (options.check_pages) result.page_problems = inspect(options.filter, file_check::payload).problems;
  if (const redis_filter* const shared = redis::shared_filter_of(*filter)) result.client = shared->counters();
  return result;
}

// ---- JSON -----------------------------------------------------------------------------------------------------------

json seconds_or_null(const std::optional<std::int64_t>& milliseconds) {
  return milliseconds ? json(static_cast<double>(*milliseconds) / 1000) : json(nullptr);
}

void add_kind(json& result, const filter_facts& f) {
  const params& p = f.parameters;
  result["layout"] = text_or_null(p.layout);
  if (f.shared || f.static_keys) {
    result["family"] = name_of(family_of(p));
  } else {
    result["scheme"] = text_or_null(f.chain ? chain_scheme : p.scheme);
    result["salts"] = salts_json(p.salts());
  }
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
  if (f.static_keys) result["absent_list"] = f.static_keys->has_absent_list;
  if (f.shared) result["first_bits"] = p.geometry.bits;
  if (!f.layers.empty()) result["layers"] = f.layers.size();
  result["probes"] = p.geometry.probes;
  if (f.static_keys) result["partitions"] = f.static_keys->partitions;
  result["capacity"] = p.capacity;
  result["target_rate"] = p.target_fpr;
  if (f.shared) {
    const double window = static_cast<double>(p.window().milliseconds()) / 1000;
    result.update({{"growth", !f.shared->grows    ? "none"
                              : f.shared->maximum ? "to_maximum"
                                                  : "unlimited"},
                   {"most_keys", number_or_null(f.shared->maximum)},
                   {"window_seconds", p.has_window() ? json(window) : json(nullptr)}});
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
  if (f.window || f.window_copy) result["window"] = f.window ? window_json(*f.window) : window_copy_json(f);
  if (f.fill && f.fill->estimated_keys) {
    result["estimated_keys"] = cli::number_or_null(f.fill->estimated_keys->value);
    if (f.consistency) result["estimated_keys_sigma"] = cli::number_or_null(f.fill->estimated_keys->sigma);
  }
  if (f.fill && f.fill->cells != 0) result["fill"] = f.fill->fill_ratio();
}

void add_rates(json& result, const info_result& r) {
  const filter_facts& f = r.facts;
  if (f.fill) {
    result["rate_now"] = f.fill->current_fpr;
    result["rate_now_within"] = f.fill->is_exact ? json(f.fill->uncertainty) : json(nullptr);
  }
  if (f.expected_fpr) {
    result["predicted_rate"] = *f.expected_fpr;
    result["predicted_for_keys"] = f.distinct_keys;
  }
  result["measured_rate"] = r.measured ? json_of(*r.measured) : json(nullptr);
  add_verdict(result, r.judgement);
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

json json_of(const redis_counters& c) {
  return {{"exchanges", c.exchanges},
          {"retries", c.retries},
          {"reconnects", c.reconnects},
          {"redirects", c.redirects},
          {"description_changes", c.description_changes},
          {"growths", c.growths},
          {"restarts_seen", c.restarts_seen},
          {"resent_groups", c.resent_groups}};
}

json json_of(const info_result& r) {
  const filter_facts& f = r.facts;
  json result = {{"filter", r.name}};
  add_kind(result, f);
  add_size(result, f);
  add_keys(result, f);
  add_rates(result, r);
  if (f.file) {
    result.update({{"format", text_or_null(f.file->format)}, {"clean", f.file->clean}, {"note", f.file->metadata}});
  }
  if (f.log) result["log"] = json_of(*f.log, f);
  if (f.counting)
    result.update({{"counters", f.counting->counters}, {"counters_full", number_or_null(f.counting->full)}});
  if (f.quotient) {
    result.update({{"slots", f.quotient->slots},
                   {"slots_for_keys", f.quotient->keys_for},
                   {"grows_to", f.quotient->grows_to == 0 ? json(nullptr) : json(f.quotient->grows_to)},
                   {"slots_used", f.fill ? json(f.fill->cells_set) : json(nullptr)},
                   {"fingerprint_bits", f.quotient->fingerprint_bits},
                   {"fingerprints_full", number_or_null(f.quotient->full)}});
  }
  if (f.removals) {
    result.update({{"tainted", f.removals->refused > 0},
                   {"refused_removals", f.removals->refused},
                   {"unnoticed_removals", cli::number_or_null(f.removals->unnoticed)}});
  }
  if (r.page_problems) result["problems"] = *r.page_problems;
  if (r.client) result["client"] = json_of(*r.client);
  return result;
}

// ---- options --------------------------------------------------------------------------------------------------------

void check_given(const info_options& options) {
  const auto refuse = [](const char* what, const char* option, const std::string& expected, const std::string& found) {
    throw error(errc::invalid_argument, {what, option, expected, found, "leave out one of the two options"});
  };
  if (options.header && options.build) refuse("the program has no file header", "--build", "", "--header");
  if (options.header && (options.check_pages || options.queries)) {
    refuse("only the header is read", "--header", "", options.queries ? "--queries" : "--check");
  }
  if (!options.build) {
    if (!options.filter.empty()) return;
    throw error(errc::invalid_argument,
                {"missing argument", "info", "FILTER or --build", "neither", "see bloomery info --help"});
  }
  const char* const about_filters = options.queries           ? "--queries"
                                    : !options.secret.empty() ? "--secret"
                                                              : given_of(options.server, {}, options.chain);
  const char* const what = "this describes the program, not a filter";
  if (!options.filter.empty()) refuse(what, "--build", "no FILTER", "'" + options.filter + "'");
  if (options.check_pages) refuse("the program has no pages to check", "--build", "", "--check");
  if (about_filters != nullptr) refuse(what, "--build", "", about_filters);
}

void refuse_for(const container_kind& container, const info_options& options) {
  const char* const unused = options.check_pages                            ? "--check"
                             : options.queries                              ? "--queries"
                             : !options.secret.empty()                      ? "--secret"
                             : options.chain.capacity                       ? "--capacity"
                             : options.chain.rate && options.column.empty() ? "--rate"
                                                                            : nullptr;
  if (unused == nullptr) return;
  throw error(errc::invalid_argument, {std::string("this option does not apply to ") + container.name, unused, "", "",
                                       std::string("leave out ") + unused});
}

exit_status info(const info_options& options) {
  check_given(options);
  if (options.build) return info_of_build(options.json);
  if (!redis_address::is_one(options.filter)) end_at_once_when_stopped();  // exchanges with servers are completed
  const bool is_chain = !options.chain.scheme.empty();
  const bool may_be_container = !redis_address::is_one(options.filter) && !is_chain && !options.header;
  const container_kind* const container = may_be_container ? container_of(options.filter) : nullptr;
  if (!options.column.empty() && (container == nullptr || !container->has_columns)) {
    throw error(errc::invalid_argument, {"this is not a Parquet file", options.filter, "", "", "leave out --column"});
  }
  if (container != nullptr) {
    refuse_for(*container, options);
    return container->info({options.filter, options.column, options.chain.rate, options.json});
  }
  if (options.header) return info_of_header(options.filter, options.json);
  const info_result result = find_out(options);
  output out(STDOUT_FILENO, "standard output");
  out.write(options.json ? json_line(json_of(result)) : text_of(result));
  out.flush();
  const bool has_bad_pages = result.page_problems && !result.page_problems->empty();
  const bool has_bad_log = options.check_pages && result.facts.log && result.facts.log->problem != log_problem::none;
  return has_bad_pages || has_bad_log ? exit_status::nothing : exit_status::found;
}

}  // namespace

void add_info(command_line& line) {
  command& c = line.root.subcommand("info", "show a filter's parameters, fill ratio and false-positive rate");
  auto& o = line.options_of(c, info);
  c.positional("FILTER", o.filter, file_or_address).file();
  c.flag("--build", o.build, "describe this program: version, kernels, layouts, hashes and schemes");
  parsed(c, "--queries", o.queries, parse_count, "N",
         "number of lookups that measure the FPR; default: 1M, or 0 on Redis");
  add_secret(c, o.secret);
  c.flag("--header", o.header, "read only the header of the file (one page)");
  c.flag("--check", o.check_pages, "list the pages with wrong checksums; exit status 1 if there are any");
  add_no_verify(c, o.check);
  c.option("--column", o.column, "NAME", "show the filters of a column of a Parquet file");
  c.flag("--json", o.json, "print the result as one JSON object").group(of_all_verbs);
  add_from_replicas(c, o.server);
  add_chain(c, o.chain);
  c.find("--rate")->describe("false-positive rate of each bitmap, or target of a Parquet column");
  add_server(c, o.server);
  c.example("bloomery info users.bloom");
  c.example("bloomery info --json redis://cache/users");
  c.example("bloomery info --column user_id orders.parquet");
}

}  // namespace bloomery::cli
