// The text of bloomery info: one line per fact.
#include "cli/commands/info_text.hpp"

#include "app/numbers.hpp"
#include "cli/commands/common.hpp"
#include "cli/commands/removal.hpp"
#include "cli/commands/shared_filter.hpp"
#include "cli/commands/window.hpp"
#include "cli/text/color.hpp"

#include <bloomery/fold.hpp>
#include <bloomery/formats.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace bloomery::cli {

namespace {

// Lines of a name and a value.
class page {
 public:
  void line(std::string_view name, std::string_view value) { text_ += fmt::format("{:<14}{}\n", name, value); }
  void warning(std::string_view value) {
    text_ += painted(fmt::format("{:<14}", "WARNING"), tone::warning, STDOUT_FILENO) + std::string(value) + "\n";
  }
  void indented(std::string_view value) { text_ += fmt::format("  {}\n", value); }
  const std::string& text() const noexcept { return text_; }

 private:
  std::string text_;
};

std::string kind_line(const filter_facts& f) {
  const params& p = f.parameters;
  const std::string first = f.shared || f.chain ? "shared, " : f.static_keys ? "static, " : "";
  if (f.chain) return first + "scheme " + chain_scheme;
  if (!p.scheme.empty()) return first + "scheme " + p.scheme;
  return fmt::format("{}{}, hash {}, keys {}", first, p.layout, p.hash, name_of(p.keys));
}

std::string size_line(const filter_facts& f) {
  const params& p = f.parameters;
  const std::string probes = probes_text(p);
  if (f.chain) {
    return fmt::format("{} of {} ({} each), {}", counted(f.chain->growths + 1, "bitmap"),
                       bytes_text(p.geometry.bits / 8), counted(p.geometry.bits, "bit"), probes);
  }
  if (f.shared) {
    const bool one = f.shared->layers <= 1;
    return fmt::format("{} in {} of {} {}{}, {}", bytes_text(f.bytes), counted(f.shared->shards, "shard"),
                       one ? "1 layer," : fmt::format("up to {} layers,", f.shared->layers),
                       counted(f.shared->lines_per_shard, "block"), one ? "" : " in the first", probes);
  }
  if (f.static_keys) {
    const std::uint64_t keys = f.static_keys->keys;
    const double bits_per_key = static_cast<double>(f.bits) / static_cast<double>(std::max<std::uint64_t>(keys, 1));
    return fmt::format("{}{}, in {}", bytes_text(f.bytes),
                       keys == 0 ? "" : fmt::format(", {:.4g} bits per key", bits_per_key),
                       counted(f.static_keys->partitions, "partition"));
  }
  const std::string layers = f.layers.empty() ? "" : counted(f.layers.size(), f.window_copy ? "slice" : "layer") + ", ";
  return fmt::format("{} ({}, {}{})", bytes_text(f.bytes), counted(f.bits, "bit"), layers, probes);
}

std::string capacity_line(const filter_facts& f) {
  const params& p = f.parameters;
  if (p.capacity == 0) return "unknown number of keys";
  const std::string keys = counted(p.capacity, "key");
  if (f.layers.size() > 1 && !f.window && !f.window_copy)
    return fmt::format("{} in the first layer; {} for all layers", keys, rate_text(p.target_fpr));
  const std::string of = f.chain ? " per bitmap" : f.window ? " per window" : window_text(p);
  return fmt::format("{}{} at {}", keys, of, rate_text(p.target_fpr));
}

std::string count_line(const filter_facts& f) {
  const bool is_stale = f.file && !f.file->clean;
  const char* const how = is_stale ? "when last closed" : f.count_is_estimate ? "estimated" : "counted";
  if (f.window) {
    return fmt::format("{}; {} certainly new in the window ({})", count_text(f.window->insertions),
                       count_text(*f.insert_count), how);
  }
  const std::string keys = counted(*f.insert_count, "key");
  if (f.count_is_at_most) return "at most " + keys + ", " + how;
  const double losses = static_cast<double>(*f.insert_count) * f.expected_fpr.value_or(0);
  if (f.removals || f.count_is_estimate || is_stale || losses < noticeable_losses) return keys + ", " + how;
  return "at least " + keys + " (the certainly new ones)";
}

void add_keys(page& out, const filter_facts& f) {
  if (f.static_keys)
    return out.line("keys", counted(f.static_keys->keys, "distinct key") + " (exact); no keys can be added");
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
             std::isfinite(keys.value) ? text + ", from the bits" : "impossible, because all bits are set");
  }
  if (f.fill->cells != 0) {
    const char* const cells = f.quotient ? "slots" : cell_bits_of(f.parameters) == 4 ? "counters" : "bits";
    out.line("fill", fmt::format("{:.1f}% of the {}", f.fill->fill_ratio() * 100, cells));
  }
}

void add_growth(page& out, const filter_facts& f) {
  if (f.shared) {
    out.line("grows", !f.shared->grows    ? "no"
                      : f.shared->maximum ? "up to " + counted(*f.shared->maximum, "key")
                                          : "without limit");
  }
  if (!f.chain) return;
  out.line("growths", count_text(f.chain->growths));
  if (f.chain->ones.empty()) return;
  const std::uint64_t bits = f.parameters.geometry.bits;
  const std::uint64_t ones = f.chain->ones.back();
  out.line("newest", fmt::format("{} of {} set, {:.1f}%; above 50% a bitmap is added", count_text(ones),
                                 counted(bits, "bit"), 100 * static_cast<double>(ones) / static_cast<double>(bits)));
}

// How far the filter is from full. A key may have no room before all slots are used.
std::string room_text(const quotient_facts& q, std::uint64_t used) {
  if (q.grows_to > 0)
    return fmt::format("room for {} more keys until it doubles; at most {} keys",
                       count_text(q.keys_for - std::min(q.keys_for, used)), count_text(q.grows_to));
  if (used > q.keys_for) return "full: keys may be refused at any time";
  return fmt::format("room for {} more keys", count_text(q.keys_for - used));
}

void add_removals(page& out, const filter_facts& f) {
  if (f.counting) {
    const std::uint64_t full = f.counting->full.value_or(0);
    out.line("counters",
             fmt::format("{} of 4 bits; {}", count_text(f.counting->counters),
                         full == 0 ? "none is full" : count_text(full) + " full (removals no longer change these)"));
  }
  if (f.quotient) {
    const quotient_facts& q = *f.quotient;
    out.line("slots", fmt::format("{} of {} bits{}", count_text(q.slots), q.fingerprint_bits,
                                  f.fill ? "; " + room_text(q, f.fill->cells_set) : ""));
    if (q.full.value_or(0) > 0)
      out.line("copies", counted(*q.full, "key") + " with 15 copies or more (removals no longer change these)");
  }
  if (!f.removals) return;
  const std::string taint = taint_text(f.removals->refused, f.removals->unnoticed);
  out.line("removals", taint.empty() ? "no refused removals" : taint);
}

std::string judgement_text(const fpr_judgement& j) {
  const std::string rates = fmt::format("current FPR {}, target {}", rate_text(j.fpr), rate_text(j.target));
  if (j.is_broken()) return painted("above target", tone::bad, STDOUT_FILENO) + ": " + rates;
  if (j.verdict == fpr_verdict::kept) return painted("met", tone::good, STDOUT_FILENO) + ": " + rates;
  return fmt::format("{}: {}; by chance a full filter may reach {}",
                     painted("met within chance", tone::good, STDOUT_FILENO), rates, rate_text(j.limit));
}

void add_rates(page& out, const info_result& r) {
  const filter_facts& f = r.facts;
  if (f.fill) {
    out.line(f.fill->is_certain() ? "exact FPR" : "estimated FPR",
             rate_text(f.fill->current_fpr) +
                 (!f.static_keys                   ? ", from the bits"
                  : f.static_keys->has_absent_list ? ", for keys of neither list"
                                                   : ", for any keys") +
                 uncertainty_text(*f.fill) + (f.window ? ", at the newest generation" : ""));
  }
  if (f.expected_fpr && !f.static_keys) {
    out.line("expected FPR", f.distinct_keys < beyond_counting
                                 ? fmt::format("{} for {}", rate_text(*f.expected_fpr), counted(f.distinct_keys, "key"))
                                 : rate_text(*f.expected_fpr) + " for an uncountable number of keys");
  }
  if (r.measured)
    out.line("measured FPR", rate_with_interval(*r.measured));
  else if (r.cannot_measure)
    out.line("measured FPR", f.parameters.key_check != 0
                                 ? "unknown without the secret; add --secret KEYFILE"
                                 : fmt::format("unknown: hash {} is not built in", f.parameters.hash));
  if (r.judgement.verdict != fpr_verdict::no_target) out.line("target FPR", judgement_text(r.judgement));
}

std::string keys_left_line(const filter_facts& f, const fpr_judgement& judgement) {
  const double target = f.parameters.target_fpr;
  if (target == 0) return "unknown";
  if (f.shared && f.shared->maximum) return count_text(*f.keys_left) + " until the declared maximum";
  if (f.quotient && *f.keys_left > 0 &&
      *f.keys_left + f.distinct_keys >= std::max(f.quotient->keys_for, f.quotient->grows_to))
    return count_text(*f.keys_left) + " until the filter is full";
  if (*f.keys_left > 0) return fmt::format("{} until the FPR exceeds {}", count_text(*f.keys_left), rate_text(target));
  if (target >= 1) return "none: the filter is far too small";
  return judgement.is_broken() ? "none: the filter is overfull" : "none: the filter is full";
}

void add_future(page& out, const info_result& r) {
  const filter_facts& f = r.facts;
  if (f.keys_left && !f.static_keys) out.line("keys left", keys_left_line(f, r.judgement));
  if (!r.forecast.empty() && f.distinct_keys > 0 && f.fill->current_fpr < 1) {
    std::string text;
    for (const forecast_step& step : r.forecast) {
      text += fmt::format("{}{} with {}%{}", text.empty() ? "" : ", ", rate_text(step.fpr), step.more_percent,
                          text.empty() ? " more keys" : "");
    }
    out.line("forecast", text);
  }
  const std::uint64_t folds = r.forecast.empty() ? 0 : times_foldable(f.parameters);
  if (folds > 0) out.line("foldable", fmt::format("can be halved {}", times_text(folds)));
}

void add_log(page& out, const filter_facts& f) {
  if (!f.log) return;
  const log_facts& log = *f.log;
  if (log.is_open) {
    out.line("log", fmt::format("{}, {} including repetitions", bytes_text(log.bytes), counted(log.keys, "key")));
  }
  if (log.problem != log_problem::none) out.line("log", printable(problem_of(log)));
  if (log.has_torn_record) {
    out.line("",
             "the last record is incomplete (being written, or cut by a kill); none of its keys was reported as added");
  }
  if (log.was_read && log.problem == log_problem::none) out.line("", "all records match their checksums");
  const double bits_per_key = 8.0 * static_cast<double>(f.file ? f.file->bytes : f.bytes) /
                              static_cast<double>(std::max<std::uint64_t>(f.distinct_keys, 1));
  out.line("grows", fmt::format("yes; now {} in memory ({:.3g} bits per key), {} while growing",
                                bytes_text(f.file ? f.file->bytes : f.bytes), bits_per_key,
                                bytes_text(log.bytes_while_growing)));
}

void add_state(page& out, const info_result& r) {
  const filter_facts& f = r.facts;
  if (f.consistency && f.consistency->alarm) {
    const fill_check& count = f.consistency->count;
    out.warning(fmt::format("{} bits are set than the key count explains, {}; see 'bloomery verify'",
                            count.deviation() > 0 ? "more" : "fewer", distance_text(count)));
  }
  if (f.expires_at) out.line("expires", moment_text(static_cast<std::uint64_t>(*f.expires_at) / 1000 * 1000));
  if (f.file && f.file->format.empty()) {
    out.line("state",
             f.file->clean
                 ? "clean"
                 : "not closed cleanly (a writer is active or was killed); the key count is outdated, and pages cannot "
                   "be verified");
  }
  if (f.file && !f.file->metadata.empty()) out.line("note", printable(f.file->metadata));
  if (!r.page_problems) return;
  out.line("pages", r.page_problems->empty() ? "all match their checksums" : "");
  for (const std::string& problem : *r.page_problems) out.indented(problem);
}

}  // namespace

std::string problem_of(const log_facts& log) {
  switch (log.problem) {
    case log_problem::none: return "";
    case log_problem::missing: return "missing; no keys can be added";
    case log_problem::of_another_filter: return log.problem_text + "; no keys can be added";
    case log_problem::incomplete: return log.problem_text + "; no keys can be added; see 'bloomery rebuild --salvage'";
    case log_problem::damaged: return log.problem_text + "; see 'bloomery rebuild --salvage'";
    case log_problem::unreadable: break;
  }
  return log.problem_text;
}

std::string probes_text(const params& p) {
  return counted(p.geometry.probes, family_of(p) == family::quotient ? "block" : "probe") + " per key";
}

std::string text_of(const info_result& r) {
  const filter_facts& f = r.facts;
  const params& p = f.parameters;
  page out;
  out.line("filter", r.name);
  out.line("kind", kind_line(f));
  if (f.file && !f.file->format.empty()) {
    out.line("format",
             fmt::format("{}: {}; opened for reading only", f.file->format, find_file_format(f.file->format)->system));
  }
  if (p.seed != 0) out.line("seed", std::to_string(p.seed));
  if (!p.salts().empty()) out.line("salts", salts_text(p.salts()));
  if (p.key_check != 0) out.line("secret", "check value " + key_check_text(p.key_check));
  if (f.window || f.window_copy) out.line("window", window_line(f));
  if (f.window_copy) out.line("copied", moment_text(f.window_copy->copied_at) + "; all figures are as of that time");
  out.line("size", size_line(f));
  if (f.static_keys)
    out.line("lookup", fmt::format("{} of {}",
                                   counted(p.geometry.probes == 1 ? 64 : p.geometry.probes,
                                           p.geometry.probes == 1 ? "slot" : "fingerprint"),
                                   counted(f.static_keys->fingerprint_bits, "bit")) +
                           (f.static_keys->has_absent_list ? ", then 64 slots of 1 bit" : ""));
  else
    out.line("capacity", capacity_line(f));
  add_growth(out, f);
  add_keys(out, f);
  add_removals(out, f);
  add_rates(out, r);
  add_future(out, r);
  add_log(out, f);
  add_state(out, r);
  return out.text();
}

}  // namespace bloomery::cli
