// Experiments that run as jobs: FPR against the number of keys, lookup speed compared with other structures, and a
// breakdown of lookup time.
#include "playground/api/jobs.hpp"

#include "app/addresses.hpp"
#include "app/experiment.hpp"
#include "app/numbers.hpp"

#include <bloomery/any_filter.hpp>

#include <algorithm>
#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

namespace bloomery::playground {
namespace {

constexpr std::uint64_t most_capacity = 1'000'000;

// ---- FPR against keys -----------------------------------------------------------------------------------------------

json known_of(const app::experiment& e, std::span<const app::measured_point> points) {
  json list = json::array();
  json theory = json::array({{{"keys", 0}, {"rate", 0}}});
  for (const app::measured_point& p : points) {
    theory.push_back({{"keys", p.keys}, {"rate", p.predicted}});
    if (p.rates.empty()) continue;
    list.push_back({{"keys", p.keys},
                    {"predicted", p.predicted},
                    {"mean", p.mean},
                    {"deviation", p.deviation},
                    {"rates", p.rates}});
  }
  return {{"filter", json_of(e.filter)},    {"runs", e.runs}, {"queries", e.queries},
          {"seed", std::to_string(e.seed)}, {"points", list}, {"theory", theory}};
}

json analysis(const app::experiment& e, job_watch& watch) {
  watch.total(app::work_of(e));
  return known_of(e, app::carry_out(
                         e, [&](std::uint64_t keys) { watch.done(keys); },
                         [&](std::span<const app::measured_point> points) { watch.so_far(known_of(e, points)); }));
}

job analysis_of(fields& body, unsigned threads) {
  app::experiment e;
  fields filter = body.object("filter");
  const wanted_filter wanted = wanted_from(filter);
  filter.end();
  e.filter = params_of(wanted);
  if (wanted.grows || e.filter.has_window() || family_of(e.filter) != family::plain) {
    throw error(errc::incompatible, {"analyses support only plain filters", "filter", "", e.filter.layout,
                                     "choose a plain layout, without grows and windows"});
  }
  demo_session::check_size(wanted);
  if (e.filter.capacity > most_capacity) {
    throw error(errc::too_large, {"too many keys for an analysis on the page", "capacity", "at most 1,000,000",
                                  app::count_text(e.filter.capacity), "use fewer keys, or run 'bloomery analyze'"});
  }
  e.runs = body.number_if_any("runs", 1, 100).value_or(10);
  e.seed = body.seed("seed");
  e.threads = threads;
  const std::uint64_t enough = app::queries_for(e.filter.target_fpr, 100);
  e.queries = body.number_if_any("queries", 1, 1'000'000).value_or(std::min(enough, app::sane_queries(e) / 10 + 1));
  return [e](job_watch& watch) { return analysis(e, watch); };
}

// ---- lookups per second ---------------------------------------------------------------------------------------------

using clock = std::chrono::steady_clock;

double seconds_since(clock::time_point start) { return std::chrono::duration<double>(clock::now() - start).count(); }

// Lookup keys: half present, half absent, in an order unrelated to their position.
struct address_book {
  explicit address_book(std::uint64_t keys) : text(2), there(), asked() {
    text[0].make(1, 0, keys);
    text[1].make(2, keys, keys);
    there.assign(text[0].addresses().begin(), text[0].addresses().end());
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(2 * keys, 4096); ++i) {
      const std::uint64_t chance = mix64(i);
      asked.push_back(text[i % 2].addresses()[chance % keys]);
    }
  }

  std::vector<app::address_batch> text;
  std::vector<std::string_view> there;
  std::vector<std::string_view> asked;
};

// Lookups per second, measured for a twentieth of a second.
template <class LookUp>
double round_of(const std::vector<std::string_view>& asked, job_watch& watch, LookUp look_up) {
  constexpr double enough = 0.05;
  std::uint64_t lookups = 0;
  std::uint64_t found = 0;
  const clock::time_point start = clock::now();
  double seconds = 0;
  while (seconds < enough) {
    // Reads the clock after 1, 2, 4, ... lookups, because a lookup in a long list takes a millisecond.
    const std::uint64_t some = std::max<std::uint64_t>(1, std::min<std::uint64_t>(lookups, 1024));
    for (std::uint64_t i = 0; i < some; ++i) found += look_up(asked[(lookups + i) % asked.size()]) ? 1 : 0;
    lookups += some;
    seconds = seconds_since(start);
  }
  [[maybe_unused]] volatile const std::uint64_t seen = found;  // keeps the compiler from removing the lookups
  watch.done(1);
  return static_cast<double>(lookups) / seconds;
}

json bar_of(const std::string& structure, std::vector<double> rounds) {
  std::sort(rounds.begin(), rounds.end());
  const auto at = [&](double share) {
    return rounds[static_cast<std::size_t>(share * static_cast<double>(rounds.size() - 1))];
  };
  return {{"structure", structure}, {"lookups_per_second", at(0.5)}, {"low", at(0.25)}, {"high", at(0.75)}};
}

json benchmark(const std::vector<params>& filters, job_watch& watch) {
  constexpr int rounds = 9;
  constexpr std::uint64_t structures = 4;
  watch.total(filters.size() * structures * rounds);
  json result = {{"rounds", rounds}, {"sizes", json::array()}};
  for (const params& p : filters) {
    const std::uint64_t keys = p.capacity;
    const address_book book(keys);
    any_filter filter(p);
    watch.done(0);  // a canceled job ends here
    filter.insert(book.there);
    std::vector<std::string_view> sorted = book.there;
    watch.done(0);
    std::sort(sorted.begin(), sorted.end());
    watch.done(0);
    const std::unordered_set<std::string_view> set(book.there.begin(), book.there.end());
    std::vector<std::vector<double>> seen(structures);
    // In turn, so that other load affects all structures alike.
    for (int i = 0; i < rounds; ++i) {
      seen[0].push_back(round_of(book.asked, watch, [&](std::string_view key) { return filter.may_contain(key); }));
      seen[1].push_back(round_of(book.asked, watch, [&](std::string_view key) {
        return std::find(book.there.begin(), book.there.end(), key) != book.there.end();
      }));
      seen[2].push_back(round_of(book.asked, watch, [&](std::string_view key) {
        return std::binary_search(sorted.begin(), sorted.end(), key);
      }));
      seen[3].push_back(round_of(book.asked, watch, [&](std::string_view key) { return set.contains(key); }));
    }
    result["sizes"].push_back({{"keys", keys},
                               {"filter", json_of(p)},
                               {"bars",
                                {bar_of("filter", seen[0]), bar_of("list", seen[1]), bar_of("sorted", seen[2]),
                                 bar_of("hash_set", seen[3])}}});
    watch.so_far(result);
  }
  return result;
}

// The filters of a benchmark: the wanted one for its own number of keys, and similar ones for the others.
std::vector<params> filters_of(const json& wanted_json, const std::vector<std::uint64_t>& sizes) {
  std::vector<params> filters;
  if (wanted_json.is_null()) {
    for (const std::uint64_t keys : sizes) filters.push_back(complete({.capacity = keys, .target_fpr = 0.01}));
    return filters;
  }
  fields filter = fields::of(wanted_json);
  const wanted_filter wanted = wanted_from(filter);
  filter.end();
  const params p = params_of(wanted);
  if (wanted.grows || p.has_window()) {
    throw error(errc::incompatible, {"benchmarks support only filters of one layer without a window", "filter", "", "",
                                     "omit grows and windows"});
  }
  for (const std::uint64_t keys : sizes) {
    params other = p;
    if (keys != p.capacity) {
      other.geometry = {};
      other.capacity = keys;
      other = complete(other);
    }
    if (other.geometry.bits > demo_session::most_bits) {
      throw error(errc::too_large,
                  {"too large for a benchmark", wanted.bits ? "bits" : "capacity", "at most 1,073,741,824 bits",
                   app::count_text(other.geometry.bits), "use fewer keys or a higher rate"});
    }
    filters.push_back(std::move(other));
  }
  return filters;
}

job benchmark_of(fields& body) {
  std::vector<std::uint64_t> sizes;
  const json list = body.take("sizes");
  if (list.is_null()) {
    sizes = {10, 1'000'000};
  } else if (!list.is_array() || list.empty() || list.size() > 6) {
    throw error(errc::invalid_argument,
                {"invalid value", "sizes", "a list of one to six numbers of keys", "", "for example [10, 1000000]"});
  } else {
    for (const json& size : list) {
      fields one = fields::of({{"sizes", size}});
      sizes.push_back(one.number("sizes", 1, most_capacity));
    }
  }
  return [filters = filters_of(body.take("filter"), sizes)](job_watch& watch) { return benchmark(filters, watch); };
}

// ---- breakdown of lookup time ---------------------------------------------------------------------------------------

// Nanoseconds per key: the median of several rounds.
double nanoseconds(std::uint64_t keys, job_watch& watch, const std::function<void()>& work) {
  constexpr int rounds = 7;
  std::vector<double> seen;
  for (int i = 0; i < rounds; ++i) {
    const clock::time_point start = clock::now();
    work();
    seen.push_back(seconds_since(start) * 1e9 / static_cast<double>(keys));
    watch.done(1);
  }
  std::nth_element(seen.begin(), seen.begin() + rounds / 2, seen.end());
  return seen[rounds / 2];
}

// A lookup hashes the key, tests its cells, and waits for memory. Hashing is timed alone, testing in a filter that fits
// into the first-level cache; the rest of a full lookup is the wait for memory.
json profile(const params& p, job_watch& watch) {
  watch.total(3 * 7);
  constexpr std::uint64_t asked = 1 << 16;
  constexpr std::uint64_t near_bytes = 16 << 10;
  app::address_batch text;
  text.make(1, 0, asked);
  any_filter filter(p);
  for (std::uint64_t in = 0; in < p.capacity; in += asked) {
    app::address_batch keys;
    keys.make(2, in, std::min(asked, p.capacity - in));
    filter.insert(keys.addresses());
    watch.done(0);
  }
  params near = p;
  near.geometry = {};
  near.capacity =
      std::max<std::uint64_t>(1, std::min<std::uint64_t>(p.capacity, near_bytes * 8 * p.capacity / p.geometry.bits));
  any_filter small(complete(near));
  std::vector<key_hash> hashes(asked);
  std::vector<std::uint64_t> bitmap(asked / 64);
  const double hash = nanoseconds(asked, watch, [&] { filter.hash(text.addresses(), hashes); });
  const double probe = nanoseconds(asked, watch, [&] { small.may_contain(hashes, bitmap); });
  const double both = nanoseconds(asked, watch, [&] { filter.may_contain(hashes, bitmap); });
  return {{"filter", json_of(p)},
          {"keys", p.capacity},
          {"bytes", filter.byte_size()},
          {"parts",
           {{{"part", "hash"}, {"nanoseconds", hash}},
            {{"part", "probe"}, {"nanoseconds", std::min(probe, both)}},
            {{"part", "memory"}, {"nanoseconds", std::max(both - probe, 0.0)}}}}};
}

job profile_of(fields& body) {
  fields filter = body.object("filter");
  const wanted_filter wanted = wanted_from(filter);
  filter.end();
  const params p = params_of(wanted);
  if (wanted.grows || !p.scheme.empty() || p.has_window()) {
    throw error(errc::incompatible, {"profiles support only plain and counting layouts", "filter", "", "",
                                     "omit scheme, grows and windows"});
  }
  if (p.geometry.bits > demo_session::most_bits || p.capacity > 100 * most_capacity) {
    throw error(errc::too_large, {"too large for a profile", "capacity",
                                  "at most 100,000,000 keys and 1,073,741,824 bits", "", "use fewer keys"});
  }
  return [p](job_watch& watch) { return profile(p, watch); };
}

}  // namespace

std::string add_job(jobs& to, fields body, unsigned threads) {
  const std::string kind = body.text_if_any("kind");
  job work;
  if (kind == "analysis") {
    work = analysis_of(body, threads);
  } else if (kind == "benchmark") {
    work = benchmark_of(body);
  } else if (kind == "profile") {
    work = profile_of(body);
  } else {
    throw error(errc::invalid_argument, {"unknown kind of job", "kind", "analysis, benchmark or profile",
                                         "'" + kind.substr(0, 40) + "'", "choose one of these"});
  }
  body.end();
  return to.add(kind, std::move(work));
}

}  // namespace bloomery::playground
