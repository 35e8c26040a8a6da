// bloomery info FILTER: everything that a filter reports about itself, whatever its kind and wherever it is. A keyed
// filter in a file needs no secret. bloomery info --build is in info_build.cpp.
#include "app/numbers.hpp"
#include "app/signals.hpp"
#include "cli/commands/common.hpp"
#include "cli/commands/counting.hpp"
#include "cli/commands/fpr_watch.hpp"
#include "cli/commands/grammar.hpp"
#include "cli/commands/info_build.hpp"
#include "cli/commands/info_header.hpp"
#include "cli/commands/open_handle.hpp"
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
#include <string_view>
#include <vector>

namespace bloomery::cli {
namespace {

struct info_options {
  std::string filter;  ///< empty with `build`
  std::string secret;
  std::optional<std::uint64_t> queries;  ///< to measure the error with
  bool check_pages = false;
  file_check check = file_check::automatic;
  bool build = false;   ///< the program itself, instead of a filter
  bool header = false;  ///< the file's header alone
  chain_options chain;
  server_options server;
  bool json = false;
};

using json = nlohmann::ordered_json;

// The FPR with more keys than there are.
struct forecast_step {
  std::uint64_t more_percent = 0;
  double fpr = 0;
};

struct info_result {
  std::string name;  // as shown_name()
  filter_facts facts;
  std::optional<measured_rate> measured = {};
  bool needs_secret = false;  // to be measured
  std::vector<forecast_step> forecast = {};
  std::optional<std::vector<std::string>> page_problems = {};  // empty: pages were not checked
  fpr_judgement judgement = {};
  std::optional<redis_counters> client = {};  // of a shared filter: what this command did on its connections
};

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

// Reading a large file takes as long as its disk takes: on a terminal, says what is done.
void read_with_progress(const info_options& options, const filter_handle& filter) {
  constexpr std::uint64_t large = std::uint64_t{1} << 30;
  const any_filter* const local = filter.local();
  if (local == nullptr || local->byte_size() < large) return;
  progress bar(true, "checked");
  if (::isatty(STDERR_FILENO) != 0) {
    say(fmt::format("{}: reading {}; 'bloomery info --header' shows the parameters at once", options.filter,
                    bytes_text(local->byte_size())));
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
    throw error(errc::invalid_argument, {"a filter on servers has no pages with checksums", "--check", "", "",
                                         "leave it out: whether all of it is there is always checked"});
  }
  warn_of_clock(shown_name(options.filter), *filter);
  read_with_progress(options, *filter);
  filter->tick(0);  // a window by time: as of its newest generation
  info_result result{shown_name(options.filter),
                     filter->info(options.check_pages ? info_depth::everything : info_depth::bits)};
  measure(result, *filter, options);
  if (result.facts.fill) result.judgement = judge_fpr(result.facts);
  result.forecast = forecast_of(result.facts);
  if (options.check_pages) result.page_problems = inspect(options.filter, file_check::payload).problems;
  if (const redis_filter* const shared = redis::shared_filter_of(*filter)) result.client = shared->counters();
  return result;
}

// ---- text -----------------------------------------------------------------------------------------------------------

// Lines of a name and a value.
class page {
 public:
  void line(std::string_view name, std::string_view value) { text_ += fmt::format("{:<14}{}\n", name, value); }
  void indented(std::string_view value) { text_ += fmt::format("  {}\n", value); }
  const std::string& text() const noexcept { return text_; }

 private:
  std::string text_;
};

std::string kind_line(const filter_facts& f) {
  const params& p = f.parameters;
  const std::string first = f.shared || f.chain ? "shared, " : f.static_keys ? "sealed, " : "";
  if (f.chain) return first + "scheme " + chain_scheme;
  if (!p.scheme.empty()) return first + "scheme " + p.scheme;
  return fmt::format("{}{}, hash {}, keys {}", first, p.layout, p.hash, name_of(p.keys));
}

std::string size_line(const filter_facts& f) {
  const params& p = f.parameters;
  const std::string probes = counted(p.geometry.probes, "probe") + " a key";
  if (f.chain) {
    return fmt::format("{} of {} ({} each), {}", counted(f.chain->growths + 1, "bitmap"),
                       bytes_text(p.geometry.bits / 8), counted(p.geometry.bits, "bit"), probes);
  }
  if (f.shared) {
    const bool one = f.shared->layers <= 1;
    return fmt::format("{} in {} of {} {}{}, {}", bytes_text(f.bytes), counted(f.shared->shards, "shard"),
                       one ? "1 layer," : fmt::format("up to {} layers,", f.shared->layers),
                       counted(f.shared->lines_per_shard, "line"), one ? "" : " in the first", probes);
  }
  if (f.static_keys) {
    const std::uint64_t keys = f.static_keys->keys;
    const double bits_per_key = static_cast<double>(f.bits) / static_cast<double>(std::max<std::uint64_t>(keys, 1));
    return fmt::format("{}{}, in {}", bytes_text(f.bytes),
                       keys == 0 ? "" : fmt::format(", {:.4g} bits a key", bits_per_key),
                       counted(f.static_keys->partitions, "partition"));
  }
  const std::string layers = f.layers.empty() ? "" : counted(f.layers.size(), f.window_copy ? "slice" : "layer") + ", ";
  return fmt::format("{} ({}, {}{})", bytes_text(f.bytes), counted(f.bits, "bit"), layers, probes);
}

std::string capacity_line(const filter_facts& f) {
  const params& p = f.parameters;
  if (p.capacity == 0) return "an unknown number of keys";
  const std::string keys = counted(p.capacity, "key");
  const std::string of = f.chain ? " a bitmap" : f.window ? " of a window" : window_text(p);
  return fmt::format("{}{} at {}", keys, of, rate_text(p.target_fpr));
}

std::string count_line(const filter_facts& f) {
  const bool is_stale = f.file && !f.file->clean;
  const char* const how = is_stale ? "when last closed" : f.count_is_estimate ? "estimated" : "as counted";
  if (f.window) {
    return fmt::format("{}; {} certainly new in the window, {}", count_text(f.window->insertions),
                       count_text(*f.insert_count), how);
  }
  const std::string keys = counted(*f.insert_count, "key");
  if (f.count_is_at_most) return "at most " + keys + ", " + how;
  const double losses = static_cast<double>(*f.insert_count) * f.expected_fpr.value_or(0);
  if (f.counting || f.count_is_estimate || is_stale || losses < noticeable_losses) return keys + ", " + how;
  return "at least " + keys + ": those that were certainly new";
}

void add_keys(page& out, const filter_facts& f) {
  if (f.static_keys)
    return out.line("keys", counted(f.static_keys->keys, "distinct key") + ", exactly; it takes no more");
  if (f.insert_count) out.line(f.window ? "insertions" : "inserted", count_line(f));
  if (f.window) {
    out.line("generations", counted(f.window->keys_held(), "key") + " held, by generation:");
    for (const std::string& generation : generation_lines(*f.window)) out.line("", generation);
  }
  for (const std::string& slice : slice_lines(f)) out.line("slice", slice);
  if (!f.fill) return;
  if (f.fill->estimated_keys) {
    const estimate& keys = *f.fill->estimated_keys;
    const std::string text = f.chain ? counted(f.distinct_keys, "distinct key") : keys_text(keys, "distinct key");
    out.line("estimated",
             std::isfinite(keys.value) ? text + ", from the bits" : "no longer possible: all bits are set");
  }
  if (f.fill->cells != 0) {
    const char* const cells = cell_bits_of(f.parameters) == 4 ? "counters" : "bits";
    out.line("fill", fmt::format("{:.1f} % of the {}", f.fill->fill_ratio() * 100, cells));
  }
}

void add_growth(page& out, const filter_facts& f) {
  if (f.shared) {
    out.line("grows", !f.shared->grows    ? "not at all"
                      : f.shared->maximum ? "up to " + counted(*f.shared->maximum, "key")
                                          : "without limit");
  }
  if (!f.chain) return;
  out.line("growths", count_text(f.chain->growths));
  if (f.chain->ones.empty()) return;
  const std::uint64_t bits = f.parameters.geometry.bits;
  const std::uint64_t ones = f.chain->ones.back();
  out.line("newest", fmt::format("{} of {} set, {:.1f} %; above 50 % it grows", count_text(ones), counted(bits, "bit"),
                                 100 * static_cast<double>(ones) / static_cast<double>(bits)));
}

void add_counters(page& out, const filter_facts& f) {
  if (!f.counting) return;
  const std::uint64_t full = f.counting->full.value_or(0);
  const std::string taint = taint_text(f.counting->refused_removals, f.counting->unnoticed_removals);
  out.line("counters",
           fmt::format("{} of 4 bits; {}", count_text(f.counting->counters),
                       full == 0 ? "none is full" : count_text(full) + " full: they stay so, whatever is removed"));
  out.line("removals", taint.empty() ? "none of a key that was not there" : taint);
}

std::string judgement_text(const fpr_judgement& j) {
  const std::string rates = fmt::format("FPR now {}, target {}", rate_text(j.fpr), rate_text(j.target));
  if (j.is_broken()) return "broken: " + rates;
  if (j.verdict == fpr_verdict::kept) return "kept: " + rates;
  return fmt::format("kept within chance: {}; at capacity chance explains up to {}", rates, rate_text(j.limit));
}

void add_rates(page& out, const info_result& r) {
  const filter_facts& f = r.facts;
  if (f.fill) {
    out.line("error now", rate_text(f.fill->current_fpr) +
                              (f.static_keys      ? ", exact, whatever was put in"
                               : f.fill->is_exact ? ", certified from the bits"
                                                  : ", from the bits") +
                              (f.window ? ", at the newest generation" : ""));
  }
  if (f.expected_fpr && !f.static_keys) {
    out.line("predicted", f.distinct_keys < beyond_counting
                              ? fmt::format("{} for {}", rate_text(*f.expected_fpr), counted(f.distinct_keys, "key"))
                              : rate_text(*f.expected_fpr) + " for more keys than it can tell");
  }
  if (r.measured)
    out.line("measured", rate_with_interval(*r.measured));
  else if (r.needs_secret)
    out.line("measured", "not without its secret: add --secret KEYFILE");
  if (r.judgement.verdict != fpr_verdict::no_target) out.line("target FPR", judgement_text(r.judgement));
}

std::string keys_left_line(const filter_facts& f, const fpr_judgement& judgement) {
  const double target = f.parameters.target_fpr;
  if (target == 0) return "unknown";
  if (f.shared && f.shared->maximum) return count_text(*f.keys_left) + " of the most that were declared";
  if (*f.keys_left > 0) return fmt::format("{} until the error passes {}", count_text(*f.keys_left), rate_text(target));
  if (target >= 1) return "none: it is far too small, and says yes to nearly everything";
  return judgement.is_broken() ? "none: it is too full" : "none: it is full";
}

void add_future(page& out, const info_result& r) {
  const filter_facts& f = r.facts;
  if (f.keys_left && !f.static_keys) out.line("keys left", keys_left_line(f, r.judgement));
  if (!r.forecast.empty() && f.distinct_keys > 0 && f.fill->current_fpr < 1) {
    std::string text;
    for (const forecast_step& step : r.forecast) {
      text += fmt::format("{}{} with {} %{}", text.empty() ? "" : ", ", rate_text(step.fpr), step.more_percent,
                          text.empty() ? " more keys" : "");
    }
    out.line("forecast", text);
  }
  const std::uint64_t folds = r.forecast.empty() ? 0 : times_foldable(f.parameters);
  if (folds > 0) out.line("foldable", fmt::format("can be halved {}", times_text(folds)));
}

// What is wrong with the key log and what to do; empty without a problem.
std::string problem_of(const log_facts& log) {
  switch (log.problem) {
    case log_problem::none: return "";
    case log_problem::missing: return "missing: no keys can be added";
    case log_problem::of_another_filter: return log.problem_text + ": no keys can be added";
    case log_problem::incomplete: return log.problem_text + "; no keys can be added; see bloomery rebuild --salvage";
    case log_problem::damaged: return log.problem_text + "; see bloomery rebuild --salvage";
    case log_problem::unreadable: break;
  }
  return log.problem_text;
}

void add_log(page& out, const filter_facts& f) {
  if (!f.log) return;
  const log_facts& log = *f.log;
  if (log.is_open) {
    out.line("log", fmt::format("{}, {} with repetitions", bytes_text(log.bytes), counted(log.keys, "key")));
  }
  if (log.problem != log_problem::none) out.line("log", printable(problem_of(log)));
  if (log.has_torn_record) {
    out.line("", "its last record is not whole: being written, or torn by a kill; no key in it was reported as added");
  }
  if (log.was_read && log.problem == log_problem::none) out.line("", "all its records match their checksums");
  const double bits_per_key = 8.0 * static_cast<double>(f.file ? f.file->bytes : f.bytes) /
                              static_cast<double>(std::max<std::uint64_t>(f.distinct_keys, 1));
  out.line("grows", fmt::format("now {} in memory, {:.3g} bits a key; while growing {}",
                                bytes_text(f.file ? f.file->bytes : f.bytes), bits_per_key,
                                bytes_text(log.bytes_while_growing)));
}

void add_state(page& out, const info_result& r) {
  const filter_facts& f = r.facts;
  if (f.consistency && f.consistency->alarm) {
    const fill_check& count = f.consistency->count;
    out.line("ALARM", fmt::format("{} bits set than its count of keys explains, {}: see bloomery verify",
                                  count.deviation() > 0 ? "more" : "fewer", distance_text(count)));
  }
  if (f.expires_at) out.line("expires", moment_text(static_cast<std::uint64_t>(*f.expires_at) / 1000 * 1000));
  if (f.file) {
    out.line("state",
             f.file->clean
                 ? "clean"
                 : "not closed cleanly: a writer is at work, or was killed; the count is out of date, pages cannot be "
                   "verified");
    if (!f.file->metadata.empty()) out.line("note", printable(f.file->metadata));
  }
  if (!r.page_problems) return;
  out.line("pages", r.page_problems->empty() ? "all match their checksums" : "");
  for (const std::string& problem : *r.page_problems) out.indented(problem);
}

std::string text_of(const info_result& r) {
  const filter_facts& f = r.facts;
  const params& p = f.parameters;
  page out;
  out.line("filter", r.name);
  out.line("kind", kind_line(f));
  if (p.seed != 0) out.line("seed", std::to_string(p.seed));
  if (p.key_check != 0) out.line("secret", "check value " + key_check_text(p.key_check));
  if (f.window || f.window_copy) out.line("window", window_line(f));
  if (f.window_copy) out.line("copied", moment_text(f.window_copy->copied_at) + ", and described as of then");
  out.line("size", size_line(f));
  if (f.static_keys)
    out.line("lookup", fmt::format("3 fingerprints of {} bits", f.static_keys->fingerprint_bits));
  else
    out.line("made for", capacity_line(f));
  add_growth(out, f);
  add_keys(out, f);
  add_counters(out, f);
  add_rates(out, r);
  add_future(out, r);
  add_log(out, f);
  add_state(out, r);
  return out.text();
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
  if (f.fill) result["rate_now"] = f.fill->current_fpr;
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
  if (r.client) result["client"] = json_of(*r.client);
  return result;
}

// ---- options --------------------------------------------------------------------------------------------------------

void check_given(const info_options& options) {
  const auto refuse = [](const char* what, const char* option, const std::string& expected, const std::string& found) {
    throw error(errc::invalid_argument, {what, option, expected, found, "leave out one of the two"});
  };
  if (options.header && options.build) refuse("a program has no file header", "--build", "", "--header");
  if (options.header && (options.check_pages || options.queries)) {
    refuse("the header alone is read", "--header", "", options.queries ? "--queries" : "--check");
  }
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

exit_status info(const info_options& options) {
  check_given(options);
  if (options.build) return info_of_build(options.json);
  if (!redis_address::is_one(options.filter)) end_at_once_when_stopped();  // a server is left in order
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
  c.flag("--build", o.build, "describe this program: version, kernels, layouts, hashes, schemes");
  parsed(c, "--queries", o.queries, parse_count, "N",
         "absent keys to measure the FPR with; default: 1M, on Redis none");
  add_secret(c, o.secret);
  c.flag("--header", o.header, "read the file's header alone, one page");
  c.flag("--check", o.check_pages, "list the pages that differ from their checksums; exit status 1 if any");
  add_no_verify(c, o.check);
  c.flag("--json", o.json, "print the result as one JSON object").group(of_all_verbs);
  add_from_replicas(c, o.server);
  add_chain(c, o.chain);
  add_server(c, o.server);
  c.example("bloomery info users.bloom");
  c.example("bloomery info --json redis://cache/users");
  c.example("bloomery info --build");
}

}  // namespace bloomery::cli
