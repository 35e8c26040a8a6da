// bloomery verify FILTER: does it keep its word? Its three error rates side by side, on the user's own keys too.
//
//   $ bloomery verify users.bloom --present users.txt --absent strangers.txt
//
// predicted: what its count of keys lets expect; certified: what its bits say; measured: absent keys that it reports.
// Exit status: 0 all is well; 1 a present key is missing, or the filter is not what it says it is; 2 an error.
#include "app/signals.hpp"
#include "cli/commands/commands.hpp"
#include "cli/commands/counting.hpp"
#include "cli/commands/error_facts.hpp"
#include "cli/commands/shared_filter.hpp"
#include "cli/io/key_batch.hpp"
#include "cli/io/output.hpp"
#include "cli/text/numbers.hpp"

#include <bloomery/census.hpp>
#include <bloomery/error.hpp>
#include <bloomery/hash.hpp>
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

// ---- the user's keys ------------------------------------------------------------------------------------------------

bool less(key_hash a, key_hash b) { return a.lo != b.lo ? a.lo < b.lo : a.hi < b.hi; }

// Distinct keys, remembered by 128 bits each: two keys of a billion share them with probability 1e-21.
class key_set {
 public:
  void add(const key_batch& batch, std::size_t i, key_kind kind) {
    hashes_.push_back(kind == key_kind::u64le ? xxh3{}(batch.integers[i]) : xxh3{}(batch.keys[i]));
  }

  /// After the last add().
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
  std::uint64_t present = 0;  // keys of the file that are among the present ones
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

// Each key counts once: a false alarm that is repeated tells nothing new.
absent_result look_for_absent(const lookup_pass& ask, key_kind kind, const verify_options& options,
                              const key_set& present) {
  key_set reported, others;
  input_options inputs = options.present;  // lines are cut alike
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

struct findings : error_facts {
  measured_rate measured;
  std::uint64_t needed = 0;  // queries that would resolve the rate
  present_result present;
  absent_result absent;
  std::string taint;  // of a counting filter, in words
  std::string
      why_uncertified;  // the rate is that of so many set bits, and where they are was not looked at; empty: it was
  bool counted_bits = true;  // a count of keys is there to be compared with the bits

  bool certified() const { return why_uncertified.empty(); }
};

// More than chance, which does this once in two million honest filters.
bool differ(const measured_rate& measured, double certified) {
  return measured.queries > 0 && chance_of(measured.hits, measured.queries, certified) < 2.9e-7;
}

// What is wrong, in words; nothing if all agrees.
std::vector<std::string> complaints(const findings& f, const params& p) {
  std::vector<std::string> result;
  if (f.present.missing > 0) {
    const bool forgets = family_of(p) == family::windowed;
    result.push_back(fmt::format(
        "{} of {} {} missing{}: it was made of other keys, or with other options "
        "(-f, --crlf, -0), or it is damaged: see bloomery info --check",
        count_text(f.present.missing), counted(f.present.keys, "present key"), f.present.missing == 1 ? "is" : "are",
        forgets ? ", as of the newest key: they are older than the window" : ", and a filter loses no key"));
    if (!f.taint.empty()) result.push_back("it is " + f.taint);
  }
  if (f.alarming) {
    const double off = f.count.deviation();
    result.push_back(
        fmt::format("{} bits are set than {} {} by chance, {}: {}", off > 0 ? "more" : "fewer",
                    counted(f.counted, "key"), f.counted == 1 ? "leaves" : "leave", distance_text(f.count),
                    off > 0 ? "keys were chosen to fill it (pollution), or its count is too low, or pages are damaged"
                            : "its count is too high, or pages are damaged"));
  }
  if (f.certified() && differ(f.measured, f.bits.certified_rate)) {
    result.push_back(
        "random absent keys are reported at another rate than the bits allow: the hash does not suit the bits");
  }
  if (f.certified() && f.absent.rate.queries > 0 && differ(f.absent.rate, f.bits.certified_rate)) {
    result.push_back(
        f.absent.rate.rate() > f.bits.certified_rate
            ? "your absent keys are reported more often than random ones: some were put in after all, or they "
              "were chosen because they are reported"
            : "your absent keys are reported more seldom than random ones: they were chosen because they are not");
  }
  return result;
}

// Nothing is wrong; what has been compared?
std::string verdict_on_a_sound_one(const findings& f, const params& p) {
  const bool too_full = p.target_rate > 0 && f.bits.certified_rate > p.target_rate * 1.01;
  const std::string promise = too_full ? "too full: it promised " + rate_text(p.target_rate) : "";
  if (!f.certified()) {
    return (too_full ? promise + "; " : "nothing wrong was found, but ") +
           "the error rate was not compared with the bits, because " + f.why_uncertified;
  }
  if (too_full) return "sound, but " + promise;
  if (f.count.conclusive && !f.count_is_estimate) return "sound: all rates agree within chance";
  const char* why = f.count_is_estimate ? "an estimate"
                    : p.scheme.empty()  ? "beyond what can be counted"
                                        : "a scheme's";
  if (f.measured.queries == 0) return fmt::format("nothing wrong: the count, {}, was not compared with the bits", why);
  return fmt::format("nothing wrong: the measured rate agrees with the bits; the count, {}, was not compared with them",
                     why);
}

void check_inputs(const verify_options& options) {
  const auto from_standard_input = [](const input_options& inputs) {
    return std::count(inputs.files.begin(), inputs.files.end(), "-");
  };
  if (from_standard_input(options.present) + from_standard_input(options.absent) > 1) {
    throw error(errc::invalid_argument, {"standard input can be read once", "--present, --absent", "", "'-' twice",
                                         "put one of the two into a file"});
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

// Queries for the rate to within 5 % of itself, at two standard deviations.
std::uint64_t queries_needed(double rate) { return rate > 0 ? queries_to_resolve(rate, 0.05, 2) : 0; }

exit_status report(const verify_options& options, const std::string& where, const std::string& size, const params& p,
                   const findings& f) {
  const std::vector<std::string> wrong = complaints(f, p);
  const exit_status status = wrong.empty() ? exit_status::found : exit_status::nothing;
  if (options.common.quiet) return status;

  output out(STDOUT_FILENO, "standard output");
  if (options.common.json) {
    using json = nlohmann::ordered_json;
    json result = {{"filter", where},
                   {"predicted", f.certified() ? json(f.predicted) : json()},
                   {"predicted_for_keys", f.keys},
                   {"certified", f.certified() ? json(f.bits.certified_rate) : json()},
                   {"measured", json_of(f.measured)},
                   {"queries_to_resolve", f.needed},
                   {"target_rate", p.target_rate},
                   {"count_is_estimate", f.count_is_estimate},
                   {"bits_set", f.bits.ones},
                   {"bits_set_expected", f.counted_bits ? json(f.count.expected.value) : json()},
                   {"bits_set_sigma", f.counted_bits ? json(f.count.expected.sigma) : json()},
                   {"present", nullptr},
                   {"absent", nullptr},
                   {"complaints", wrong}};
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
    line("filter", where + ": " + size);
    if (f.certified()) {
      line("predicted", f.keys >= beyond_counting
                            ? rate_text(f.predicted) + " for more keys than it can tell"
                            : fmt::format("{} for {}{}", rate_text(f.predicted), counted(f.keys, "key"),
                                          f.keys == f.counted ? "" : ", as its bits suggest"));
      line("certified", rate_text(f.bits.certified_rate) + ", from the bits as they are");
    } else {
      line("estimated", fmt::format("{} for {}, from the number of bits that are set", rate_text(f.bits.certified_rate),
                                    counted(f.keys, "key")));
    }
    if (f.measured.queries > 0) {
      line("measured", rate_with_interval(f.measured));
      if (f.measured.queries < f.needed) {
        line("", fmt::format("too rare for so few: --queries {} would measure it to within 5 %", f.needed));
      }
    }
    if (!options.present.files.empty()) {
      line("present", f.present.missing == 0
                          ? fmt::format("{}, all found", counted(f.present.keys, "key"))
                          : fmt::format("{}, {} MISSING, the first: '{}'", counted(f.present.keys, "key"),
                                        count_text(f.present.missing), printable(f.present.first_missing)));
    }
    if (!options.absent.files.empty()) {
      line("absent", f.absent.rate.queries == 0 ? "no key that is not present" : rate_with_interval(f.absent.rate));
      if (f.absent.present > 0) {
        line("", fmt::format("{} more are among the present and not counted", count_text(f.absent.present)));
      }
    }
    for (const std::string& complaint : wrong) line(&complaint == &wrong.front() ? "verdict" : "", complaint);
    if (wrong.empty()) line("verdict", verdict_on_a_sound_one(f, p));
  }
  out.flush();
  return status;
}

// Bits that are fetched to be looked at one by one.
constexpr std::uint64_t most_bits_pulled = std::uint64_t{64} << 23;

// A shared filter has no count beside its bits: what is compared are they and the answers.
exit_status verify_shared(const verify_options& options) {
  const redis_address address = redis_address::parse(options.filter);
  redis_filter filter = open_shared(address, options.server, options.secret, options.common.quiet);
  const redis_info now = filter.info();
  const params& p = now.parameters.filter;
  findings f{};
  f.bits.certified_rate = now.rate_now;
  f.bits.ones = now.ones;
  f.why_uncertified =
      now.parameters.growth != redis_growth::none ? "the filter grows"
      : p.window_milliseconds != 0                ? "the filter has a window"
      : p.geometry.bits > most_bits_pulled
          ? fmt::format("the filter has more than the {} that are fetched for it", bytes_text(most_bits_pulled / 8))
          : "";
  if (f.certified()) {
    const any_filter copy = filter.pull();
    f.bits = take_census(p, copy.bytes());
    f.predicted = false_positive_rate(p, now.inserted);
  }
  f.counted_bits = false;
  f.count_is_estimate = now.is_estimate;
  f.counted = f.keys = now.inserted;
  constexpr std::uint64_t most_queries = 2'000'000;  // some seconds of a server
  f.needed = queries_needed(f.bits.certified_rate);
  f.measured =
      measure_shared(filter, options.queries.value_or(std::clamp<std::uint64_t>(f.needed, 100'000, most_queries)));
  look_for_users_keys(lookups_in(filter), p.keys, options, f);
  return report(options, address.text(), shared_size_text(now.parameters), p, f);
}

}  // namespace

exit_status verify(const verify_options& options) {
  check_inputs(options);
  if (is_shared(options.filter, options.server)) return verify_shared(options);
  any_filter filter = open_filter(options.filter, options.secret);
  filter.set_clock([] { return 0; });  // with a window: as of its newest generation
  const file_info& file = *filter.opened_from();
  const params& p = filter.parameters();
  if (!options.common.quiet) say_if_dirty(options.filter, file);

  findings f{error_facts_of(file, filter.bytes()), {}, 0, {}, {}, {}, {}};
  f.taint = taint_text(p, file.counts.refused_removals, f.bits.certified_rate);

  const std::uint64_t most_queries = p.scheme.empty() ? 20'000'000 : queries_of_scheme(p, 1'000'000);
  f.needed = queries_needed(f.bits.certified_rate);
  const std::uint64_t queries = options.queries.value_or(
      std::clamp<std::uint64_t>(f.needed, std::min<std::uint64_t>(100'000, most_queries), most_queries));
  f.measured = measure_rate(filter, queries, 0, options.common.threads, [] { return stop_signal() == 0; });
  if (stop_signal() != 0) throw interrupted();
  look_for_users_keys(lookups_in(filter), p.keys, options, f);
  return report(options, options.filter, size_text(p), p, f);
}

}  // namespace bloomery::cli
