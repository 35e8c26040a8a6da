// bloomery verify FILTER: compares the expected, exact and measured FPR of a filter, also with keys of the user.
//
//   $ bloomery verify users.bloom --present users.txt --absent others.txt
//
// The expected FPR follows from the key count, the exact FPR from the bits, and the measured FPR from lookups of absent
// keys. Exit status: 0 no problem; 1 a present key is missing, the filter does not match its key count, or it exceeds
// its target FPR by more than chance; 2 an error.
#include "app/numbers.hpp"
#include "app/signals.hpp"
#include "cli/commands/common.hpp"
#include "cli/commands/fpr_watch.hpp"
#include "cli/commands/grammar.hpp"
#include "cli/commands/open_handle.hpp"
#include "cli/commands/removal.hpp"
#include "cli/io/key_batch.hpp"
#include "cli/io/output.hpp"
#include "cli/text/color.hpp"

#include <bloomery/error.hpp>
#include <bloomery/hash.hpp>
#include <bloomery/judgement.hpp>
#include <bloomery/measure.hpp>

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace bloomery::cli {
namespace {

struct verify_options {
  std::string filter;
  std::string secret;
  input_options present;  ///< without files, nothing is checked
  input_options absent;   ///< without files, nothing is checked
  std::optional<std::uint64_t> queries;
  file_check check = file_check::automatic;
  server_options server;
  common_options common;
};

// ---- keys of the user -----------------------------------------------------------------------------------------------

bool less(key_hash a, key_hash b) { return a.hash64 != b.hash64 ? a.hash64 < b.hash64 : a.high64 < b.high64; }

// A set of keys, stored as 128-bit hashes: two of a billion keys collide with probability 1e-21.
class key_set {
 public:
  void add(const key_batch& batch, std::size_t i, key_kind kind) {
    hashes_.push_back(kind == key_kind::u64le ? xxh3{}(batch.integers[i]) : xxh3{}(batch.keys[i]));
  }

  /// To be called after the last add().
  void settle() {
    std::sort(hashes_.begin(), hashes_.end(), less);
    hashes_.erase(std::unique(hashes_.begin(), hashes_.end()), hashes_.end());
  }

  bool contains(key_hash hash) const {
    const auto at = std::lower_bound(hashes_.begin(), hashes_.end(), hash, less);
    return at != hashes_.end() && *at == hash;
  }

  const std::vector<key_hash>& hashes() const noexcept { return hashes_; }

 private:
  std::vector<key_hash> hashes_;
};

struct present_result {
  std::uint64_t keys = 0;
  std::uint64_t missing = 0;
  std::string first_missing;
};

struct absent_result {
  measured_rate rate;
  std::uint64_t present = 0;  // keys that are also in the file of present keys
};

present_result look_for_present(const lookup_pass& ask, key_kind kind, const verify_options& options,
                                key_set* remembered) {
  present_result result;
  const pass_options pass{options.common.threads, options.common.progress && !options.common.quiet, "present"};
  const bool whole = ask(options.present, pass, [&](key_batch& batch) {
    for (std::size_t i = 0; i < batch.keys.size(); ++i) {
      if (batch.may_contain(i)) continue;
      if (result.missing++ == 0) result.first_missing = std::string(batch.keys[i].substr(0, 200));
    }
    result.keys += batch.keys.size();
    for (std::size_t i = 0; remembered != nullptr && i < batch.keys.size(); ++i) remembered->add(batch, i, kind);
    return true;
  });
  if (!whole) throw interrupted();
  return result;
}

// Each key counts once, because a repeated false positive is not independent.
absent_result look_for_absent(const lookup_pass& ask, key_kind kind, const verify_options& options,
                              const key_set& present) {
  key_set reported, others;
  input_options inputs = options.present;  // with the same input format
  inputs.files = options.absent.files;
  const pass_options pass{options.common.threads, options.common.progress && !options.common.quiet, "absent"};
  const bool whole = ask(inputs, pass, [&](key_batch& batch) {
    for (std::size_t i = 0; i < batch.keys.size(); ++i) (batch.may_contain(i) ? reported : others).add(batch, i, kind);
    return true;
  });
  if (!whole) throw interrupted();
  reported.settle();
  others.settle();
  absent_result result;
  for (const key_set* keys : {&reported, &others}) {
    for (const key_hash hash : keys->hashes()) {
      if (present.contains(hash)) {
        ++result.present;
        continue;
      }
      ++result.rate.queries;
      result.rate.hits += keys == &reported ? 1 : 0;
    }
  }
  return result;
}

// ---- the verdict ----------------------------------------------------------------------------------------------------

struct findings {
  filter_facts facts;
  double fpr_afterwards = facts.fill->current_fpr;  // differs if another process changed the filter meanwhile
  measured_rate measured = {};
  std::uint64_t needed = 0;  // queries that would resolve the rate
  present_result present = {};
  absent_result absent = {};
  fpr_judgement judgement = {};

  double fpr() const { return facts.fill->current_fpr; }
  double uncertainty() const { return facts.fill->uncertainty; }
  bool certified() const { return facts.fill->is_exact; }
  bool has_changed() const { return fpr_afterwards != fpr(); }
  bool has_alarm() const { return facts.consistency && facts.consistency->alarm; }
};

// Why the FPR is only estimated from the number of set bits.
std::string why_uncertified(const filter_facts& facts) {
  if (facts.chain) return "servers only count the bits of a Guava chain";
  if (facts.shared && facts.shared->grows) return "the filter grows";
  if (facts.parameters.has_window()) return "the filter has a window";
  if (!facts.layers.empty() && !facts.expected_fpr) return "the filters of a table have different FPRs";
  if (!facts.layers.empty()) return "the layers share their hashes";
  return "the filter is larger than 64 MiB";
}

// Beyond chance: one in two million correct filters differs this much from the nearest of these rates.
bool differ(const measured_rate& measured, double lowest, double highest) {
  const double nearest = std::clamp(measured.rate(), lowest, std::min(highest, 1.0));
  return measured.queries > 0 && chance_of(measured.hits, measured.queries, nearest) < 2.9e-7;
}

// Whether absent keys are reported more often than at this rate, beyond chance.
bool exceeds(const measured_rate& measured, double rate) {
  return measured.rate() > rate && differ(measured, rate, rate);
}

// Whether lookups contradict the FPR of the bits, which is right within a factor.
bool differs_from_bits(const findings& f, const measured_rate& measured) {
  const auto [lowest, highest] = std::minmax({f.fpr(), f.fpr_afterwards});
  return f.certified() && differ(measured, lowest / f.uncertainty(), highest * f.uncertainty());
}

// The judgment of the FPR. If the FPR is an estimate, the measured FPR may show that the target FPR is exceeded.
fpr_judgement judge(const findings& f) {
  fpr_judgement result = judge_fpr(f.facts);
  if (f.certified() || result.verdict == fpr_verdict::no_target || !exceeds(f.measured, result.limit)) return result;
  result.fpr = f.measured.rate();
  result.verdict = fpr_verdict::broken;
  return result;
}

// The problems found, in words.
std::vector<std::string> complaints(const findings& f) {
  std::vector<std::string> result;
  if (f.present.missing > 0) {
    const bool forgets = f.facts.parameters.has_window();
    result.push_back(fmt::format(
        "{} of {} {} missing{}: the filter was built from other keys or with other options (--field, --crlf, --null), "
        "or it is damaged; see 'bloomery info --check'",
        count_text(f.present.missing), counted(f.present.keys, "present key"), f.present.missing == 1 ? "is" : "are",
        forgets ? " at the time of the newest key: they are older than the window" : ""));
    if (f.facts.removals && f.facts.removals->refused > 0) {
      const removal_facts& r = *f.facts.removals;
      result.push_back("the filter is " + taint_text(r.refused, r.unnoticed));
    }
  }
  if (f.has_alarm()) {
    const consistency_facts& bits = *f.facts.consistency;
    const double off = bits.count.deviation();
    result.push_back(fmt::format(
        "{} bits are set than expected for {}, {}: {}", off > 0 ? "more" : "fewer", counted(bits.keys, "key"),
        distance_text(bits.count),
        off > 0 ? "keys were chosen to fill the filter (pollution), the key count is too low, or pages are damaged"
                : "the key count is too high, or pages are damaged"));
  }
  if (differs_from_bits(f, f.measured)) {
    result.push_back("the measured FPR differs from the FPR of the bits: the hash does not match them");
  }
  const bool has_absent_list = f.facts.static_keys && f.facts.static_keys->has_absent_list;
  if (differs_from_bits(f, f.absent.rate) && !(has_absent_list && f.absent.rate.rate() < f.fpr())) {
    result.emplace_back(
        f.absent.rate.rate() > f.fpr()
            ? "the keys of --absent are reported more often than random keys: some were inserted after all, or they "
              "were chosen because they are false positives"
            : "the keys of --absent are reported less often than random keys: they were chosen because they are "
              "absent");
  }
  // The keys may be looked up in those filters of a table whose FPR is above the mean. It has no expected FPR.
  const bool has_one_rate = f.certified() || f.facts.expected_fpr;
  if (!f.certified() && has_one_rate && exceeds(f.absent.rate, std::max(f.judgement.limit, f.fpr()))) {
    result.emplace_back(
        "the keys of --absent are reported more often than the FPR allows: some were inserted after all, or they were "
        "chosen because they are false positives");
  }
  if (f.judgement.is_broken()) {
    result.push_back(fmt::format("above target: current FPR {}, target {}; build a larger filter",
                                 rate_text(f.judgement.fpr), rate_text(f.judgement.target)));
  }
  return result;
}

// The verdict without a problem: which rates were compared.
std::string verdict_on_a_sound_one(const findings& f) {
  const params& p = f.facts.parameters;
  if (!f.certified()) {
    return "no problem found, but the measured FPR was not compared with the bits, because " + why_uncertified(f.facts);
  }
  if (f.has_changed()) return "no problem found, but another process changed the filter meanwhile";
  const bool is_estimate = f.facts.count_is_estimate;
  if (f.facts.consistency && f.facts.consistency->count.conclusive && !is_estimate) {
    return "sound: all rates agree within chance";
  }
  const char* why = is_estimate        ? "is an estimate"
                    : f.facts.quotient ? "includes copies without a slot"
                    : p.scheme.empty() ? "is too large to be compared"
                                       : "of a scheme cannot be compared";
  if (f.measured.queries == 0) return fmt::format("no problem found, but the key count {}", why);
  return fmt::format("no problem found: the measured FPR agrees with the bits, but the key count {}", why);
}

void check_inputs(const verify_options& options) {
  const auto from_standard_input = [](const input_options& inputs) {
    return std::count(inputs.files.begin(), inputs.files.end(), "-");
  };
  if (from_standard_input(options.present) + from_standard_input(options.absent) > 1) {
    throw error(errc::invalid_argument, {"standard input can be read only once", "--present, --absent", "", "'-' twice",
                                         "use a file for one of the two"});
  }
}

void look_for_users_keys(const lookup_pass& ask, key_kind kind, const verify_options& options, findings& f) {
  key_set present;
  if (!options.present.files.empty()) {
    f.present = look_for_present(ask, kind, options, options.absent.files.empty() ? nullptr : &present);
    present.settle();
  }
  if (!options.absent.files.empty()) f.absent = look_for_absent(ask, kind, options, present);
}

// The number of queries that measures the rate with an error of 5%, at two standard deviations.
std::uint64_t queries_needed(double rate) { return rate > 0 ? queries_to_resolve(rate, 0.05, 2) : 0; }

// The text in which `word` is painted if the text begins with it.
std::string painted_start(const std::string& text, std::string_view word, tone t) {
  if (!text.starts_with(word)) return text;
  return painted(word, t, STDOUT_FILENO) + text.substr(word.size());
}

std::string size_line(const filter_facts& facts) {
  const params& p = facts.parameters;
  if (facts.shared) return size_text(p) + " in " + counted(facts.shared->shards, "shard");
  if (facts.layers.empty()) return size_text(p);
  const std::string parts = counted(facts.layers.size(), facts.expected_fpr ? "layer" : "filter");
  const std::string first = p.capacity == 0 ? "" : fmt::format("; the first for {}", counted(p.capacity, "key"));
  return fmt::format("{} in {} ({}){}", bytes_text(facts.bytes), parts, kind_text(p), first);
}

exit_status report(const verify_options& options, const findings& f) {
  const std::vector<std::string> wrong = complaints(f);
  const exit_status status = wrong.empty() ? exit_status::found : exit_status::nothing;
  if (options.common.quiet) return status;

  const filter_facts& facts = f.facts;
  const params& p = facts.parameters;
  const std::string shown = shown_name(options.filter);
  output out(STDOUT_FILENO, "standard output");
  if (options.common.json) {
    using json = nlohmann::ordered_json;
    const auto expected = [&](auto member) {
      return facts.consistency ? json(facts.consistency->count.expected.*member) : json();
    };
    json result = {{"filter", shown},
                   {"predicted", f.certified() && facts.expected_fpr ? json(*facts.expected_fpr) : json()},
                   {"predicted_for_keys", facts.expected_fpr ? json(facts.distinct_keys) : json()},
                   {"certified", f.certified() ? json(f.fpr()) : json()},
                   {"certified_within", f.certified() ? json(f.uncertainty()) : json()},
                   {"measured", json_of(f.measured)},
                   {"queries_to_resolve", f.needed},
                   {"target_rate", p.target_fpr},
                   {"count_is_estimate", facts.count_is_estimate || !facts.insert_count},
                   {"bits_set", facts.fill->cells_set},
                   {"bits_set_expected", expected(&estimate::value)},
                   {"bits_set_sigma", expected(&estimate::sigma)},
                   {"present", nullptr},
                   {"absent", nullptr},
                   {"complaints", wrong}};
    add_verdict(result, f.judgement);
    if (!options.present.files.empty()) {
      result["present"] = {{"keys", f.present.keys}, {"missing", f.present.missing}, {"first_missing", nullptr}};
      if (f.present.missing > 0) result["present"]["first_missing"] = f.present.first_missing;
    }
    if (!options.absent.files.empty()) {
      result["absent"] = json_of(f.absent.rate);
      result["absent"]["present_too"] = f.absent.present;
    }
    out.write(json_line(result));
  } else {
    const auto line = [&](const char* name, const std::string& value) {
      out.write(fmt::format("{:<14}{}\n", name, value));
    };
    line("filter", shown + ": " + size_line(facts));
    if (f.certified()) {
      const bool by_bits = facts.consistency && facts.distinct_keys != facts.consistency->keys;
      line("expected FPR",
           facts.distinct_keys >= beyond_counting
               ? rate_text(*facts.expected_fpr) + " for an uncountable number of keys"
               : fmt::format("{} for {}{}", rate_text(*facts.expected_fpr), counted(facts.distinct_keys, "key"),
                             by_bits ? ", estimated from the bits" : ""));
      line(facts.fill->is_certain() ? "exact FPR" : "estimated FPR",
           rate_text(f.fpr()) + ", from the bits" + uncertainty_text(*facts.fill));
    } else {
      line("estimated FPR",
           fmt::format("{}{}, from the number of set bits", rate_text(f.fpr()),
                       facts.expected_fpr ? " for " + counted(facts.distinct_keys, "key") : std::string()));
    }
    if (f.measured.queries > 0) {
      line("measured FPR", rate_with_interval(f.measured));
      if (f.measured.queries < f.needed) {
        line("", fmt::format("too few queries; --queries {} would measure it within 5%", f.needed));
      }
    }
    if (!options.present.files.empty()) {
      line("present", f.present.missing == 0
                          ? fmt::format("{}, all found", counted(f.present.keys, "key"))
                          : fmt::format("{}, {} {}, the first: '{}'", counted(f.present.keys, "key"),
                                        count_text(f.present.missing), painted("MISSING", tone::bad, STDOUT_FILENO),
                                        printable(f.present.first_missing)));
    }
    if (!options.absent.files.empty()) {
      line("absent", f.absent.rate.queries == 0 ? "no absent keys" : rate_with_interval(f.absent.rate));
      if (f.absent.present > 0) {
        line("",
             fmt::format("{} more are also in the file of present keys and not counted", count_text(f.absent.present)));
      }
    }
    for (const std::string& complaint : wrong)
      line(&complaint == &wrong.front() ? "verdict" : "", painted_start(complaint, "above target", tone::bad));
    if (wrong.empty()) line("verdict", painted_start(verdict_on_a_sound_one(f), "sound", tone::good));
  }
  out.flush();
  return status;
}

exit_status verify(const verify_options& options) {
  check_inputs(options);
  const std::unique_ptr<filter_handle> filter = open_handle({.name = options.filter,
                                                             .secret = options.secret,
                                                             .server = options.server,
                                                             .quiet = options.common.quiet,
                                                             .check = options.check,
                                                             .takes_layers = true});
  filter->tick(0);  // for a window of time: as of its newest generation
  findings f{filter->info(info_depth::everything)};
  const params& p = f.facts.parameters;

  // Limits the work to some seconds.
  const std::uint64_t most_queries = filter->capabilities().is_remote ? 2'000'000
                                     : p.scheme.empty()               ? 20'000'000
                                                                      : queries_of_scheme(p, 1'000'000);
  f.needed = queries_needed(f.fpr());
  const std::uint64_t queries = options.queries.value_or(
      std::clamp<std::uint64_t>(f.needed, std::min<std::uint64_t>(100'000, most_queries), most_queries));
  f.measured = measure_rate(*filter, queries, 0, options.common.threads, [] { return stop_signal() == 0; });
  if (stop_signal() != 0) throw interrupted();
  look_for_users_keys(lookups_in(*filter), p.keys, options, f);
  if (differs_from_bits(f, f.measured) || differs_from_bits(f, f.absent.rate))
    f.fpr_afterwards = filter->info(info_depth::everything).fill->current_fpr;
  f.judgement = judge(f);
  return report(options, f);
}

}  // namespace

void add_verify(command_line& line) {
  command& c = line.root.subcommand("verify", "compare a filter's expected, exact and measured false-positive rates");
  auto& o = line.options_of(c, verify);
  c.positional("FILTER", o.filter, file_or_address).required().file();
  add_key_shape(line, c, o.present);
  add_no_verify(c, o.check);
  c.option("--present", o.present.files, "FILE", "file of inserted keys, all of which must be found; -: stdin").file();
  c.option("--absent", o.absent.files, "FILE", "file of absent keys; measure the share that is reported as present")
      .file();
  parsed(c, "--queries", o.queries, parse_count, "N",
         "number of random absent keys to look up; default: depends on the rate");
  add_secret(c, o.secret);
  add_common(c, o.common, "print nothing; the exit status is the result");
  add_from_replicas(c, o.server);
  add_server(c, o.server);
  c.example("bloomery verify users.bloom");
  c.example("bloomery verify users.bloom --present users.txt");
  c.footer(
      "Exit status: 0 if no problem was found; 1 if a key of --present is missing, if the filter's bits contradict its "
      "key count, or if the filter exceeds its target FPR by more than chance explains; 2 on error.");
}

}  // namespace bloomery::cli
