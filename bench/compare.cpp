// Comparison benchmark: compare measures bloomery, other filters, exact sets and the limits of the machine in one
// process.
//
//   $ build/bench/bench/compare --plan quick --json quick.json
//
// For each setting (settings.hpp) all contestants are made, checked for false negatives, and measured in turn
// (round_robin.hpp). bench/report.py turns the JSON into tables, charts and ratios, which docs/performance.md explains.
#include "keys.hpp"
#include "limits.hpp"
#include "machine_facts.hpp"
#include "ours.hpp"
#include "peers/hash_set.hpp"
#include "peers/load.hpp"
#include "peers/textbook.hpp"
#include "round_robin.hpp"
#include "settings.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdio>
#include <exception>
#include <memory>
#include <optional>
#include <regex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace bench {
namespace {

using json = nlohmann::ordered_json;

constexpr std::uint64_t most_keys_kept = 200'000'000;  // above it keys are generated piece by piece
constexpr std::size_t piece = std::size_t{1} << 24;

struct options {
  std::string plan = "axes";
  std::string json_file;
  std::string only;
  std::string settings;
  unsigned rounds = 0;
};

template <class Key>
std::vector<contestant<Key>> contestants_of(const std::vector<peers>& loaded) {
  std::vector<contestant<Key>> all;
  add_ours(all);
  all.push_back(contestant_of<textbook<Key>, Key>("textbook"));
  all.push_back(contestant_of<hash_set<std::unordered_set<Key>>, Key>("std::unordered_set"));
  all.back().most_keys = most_keys_of_sets;
  for (const peers& some : loaded) add_of<Key>(some, all);
  return all;
}

// A filled contestant.
template <class Key>
class subject {
 public:
  subject(const contestant<Key>& kind, const setting& s) : kind_(kind), self_(kind.make(s.n, s.bits), kind.unmake) {}
  const contestant<Key>& kind() const { return kind_; }
  void* self() const { return self_.get(); }

  void fill(std::span<const Key> keys) {
    if (kind_.insert_bulk == nullptr && kind_.insert == nullptr) {
      kind_.build(self(), keys.data(), keys.size(), 1);
      return;
    }
    const auto insert = kind_.insert_bulk != nullptr ? kind_.insert_bulk : kind_.insert;
    insert(self(), keys.data(), keys.size());
  }
  std::uint64_t count(std::span<const Key> keys) const {
    const auto count = kind_.count_bulk != nullptr ? kind_.count_bulk : kind_.count;
    return count(self(), keys.data(), keys.size());
  }

 private:
  contestant<Key> kind_;
  std::unique_ptr<void, void (*)(void*)> self_;
};

[[noreturn]] void fail_on_false_negative(const std::string& name) {
  throw std::runtime_error(name + " reports an inserted key as absent: its times are meaningless");
}

template <class Key>
class one_setting {
 public:
  one_setting(const setting& s, const plan& p, const options& o, const std::vector<contestant<Key>>& all)
      : s_(s), plan_(p), options_(o), queries_(s.n, number_of_queries(s), s.hits) {
    for (const contestant<Key>& kind : all) {
      const bool suits = (kind.only_bits == 0 || kind.only_bits == s.bits) &&
                         (kind.most_keys == 0 || s.n <= kind.most_keys) && s.n * s.bits / 8 >= kind.least_bytes;
      if (suits && wanted(kind.name)) subjects_.emplace_back(kind, s);
    }
  }

  json run() {
    std::printf("\n%s: %s keys, n, bits per key, %% present, threads\n", name_of(s_).c_str(), key_list<Key>::name);
    std::printf("  %-34s %-7s %-7s %-3s %8s %8s %8s %8s\n", "ns per key", "operation", "way", "thr", "median",
                "minimum", "25%", "75%");
    if (s_.n <= most_keys_kept) {
      insert();
    } else {
      insert_by_pieces();
    }
    look_up();
    json result = {
        {"keys", key_list<Key>::name},      {"n", s_.n}, {"bits", s_.bits}, {"hits", s_.hits}, {"threads", s_.threads},
        {"queries", queries_.view().size()}};
    result["name"] = name_of(s_);
    result["contestants"] = sizes_and_fprs();
    result["measurements"] = std::move(measurements_);
    return result;
  }

 private:
  static std::size_t number_of_queries(const setting& s) {
    if (s.n > 1'000'000) return std::size_t{1} << 22;
    return std::size_t{1} << 20;
  }

  bool wanted(const std::string& name) const {
    const auto matches = [&](const std::string& expression) {
      return expression.empty() || std::regex_search(name, std::regex(expression));
    };
    return matches(s_.only) && matches(options_.only);
  }

  static timing nanoseconds(timing seconds, std::size_t keys) {
    const double scale = 1e9 / static_cast<double>(keys);
    return {seconds.cpu * scale, seconds.wall * scale};
  }

  static json rounded(const std::vector<double>& samples) {
    json all = json::array();
    for (const double sample : samples) all.push_back(std::round(sample * 1000) / 1000);
    return all;
  }

  void run_race(
      std::vector<entry>& entries, unsigned rounds, const std::function<void()>& before_round = [] {}) {
    race(entries, rounds, plan_.patience, before_round);
    for (const entry& e : entries) {
      const summary t = summarize(e.samples);
      std::printf("  %-34s %-7s %-7s %-3u %8.2f %8.2f %8.2f %8.2f\n", e.name.c_str(), e.operation.c_str(),
                  e.way.c_str(), e.threads, t.median, t.least, t.first_quartile, t.third_quartile);
      measurements_.push_back({{"name", e.name},
                               {"operation", e.operation},
                               {"way", e.way},
                               {"threads", e.threads},
                               {"samples", rounded(e.samples)},
                               {"wall", rounded(e.wall)}});
    }
    std::fflush(stdout);
  }

  void insert() {
    keys_.emplace(s_.n);
    for (std::uint64_t i = 0; i < s_.n; ++i) keys_->add(i);
    const std::span<const Key> keys = keys_->view();
    std::vector<entry> entries;
    for (subject<Key>& one : subjects_) {
      if (one.kind().prepare != nullptr) one.kind().prepare(one.self(), keys.data(), keys.size());
      const std::size_t others = entries.size();
      if (s_.inserting) add_insertions(entries, one, keys);
      if (entries.size() == others) one.fill(keys);
    }
    // Rounds far out of cache take long and differ little.
    run_race(entries, s_.n > 50'000'000 ? std::min(rounds(), 3u) : rounds());
    for (subject<Key>& one : subjects_) {  // each insert pass has left the contestant full
      if (one.kind().prepare != nullptr) one.kind().prepare(one.self(), nullptr, 0);
      const std::span<const Key> some = keys.first(std::min<std::size_t>(keys.size(), 10'000'000));
      if (one.count(some) != some.size()) fail_on_false_negative(one.kind().name);
    }
  }

  void add_insertions(std::vector<entry>& entries, subject<Key>& one, std::span<const Key> keys) {
    const contestant<Key>& kind = one.kind();
    const auto add = [&](const char* operation, const char* way, unsigned threads, bool alone, auto work) {
      entries.push_back({kind.name, operation, way, threads, [=, this, clear = kind.clear, self = one.self()] {
                           const timing seconds = seconds_per_pass(
                               plan_.least_seconds, alone, [&] { clear(self); }, [&] { work(self); });
                           return nanoseconds(seconds, keys.size());
                         }});
    };
    if (s_.threads == 1 && kind.insert_bulk != nullptr) {
      add("insert", "bulk", 1, true, [=](void* self) { kind.insert_bulk(self, keys.data(), keys.size()); });
    }
    // Single inserts into filters far out of cache take minutes: measured there only if there is no bulk insert.
    if (s_.threads == 1 && kind.insert != nullptr && (kind.insert_bulk == nullptr || s_.n <= 10'000'000)) {
      add("insert", "single", 1, true, [=](void* self) { kind.insert(self, keys.data(), keys.size()); });
    }
    if (kind.build != nullptr) {
      for (unsigned threads = 1; threads <= s_.threads; ++threads) {
        add("build", "bulk", threads, s_.threads == 1,
            [=](void* self) { kind.build(self, keys.data(), keys.size(), threads); });
      }
    }
  }

  void insert_by_pieces() {
    key_list<Key> list(piece);
    std::vector<double> seconds(subjects_.size());
    for (subject<Key>& one : subjects_) one.kind().clear(one.self());
    for (std::uint64_t first = 0; first < s_.n; first += piece) {
      list.clear();
      for (std::uint64_t i = first; i < std::min<std::uint64_t>(first + piece, s_.n); ++i) list.add(i);
      for (std::size_t i = 0; i < subjects_.size(); ++i) {
        const double begin = wall_seconds();
        subjects_[i].fill(list.view());
        seconds[i] += wall_seconds() - begin;
        if (subjects_[i].count(list.view()) != list.view().size()) fail_on_false_negative(subjects_[i].kind().name);
      }
    }
    std::vector<entry> entries;
    for (std::size_t i = 0; i < subjects_.size(); ++i) {
      entries.push_back({subjects_[i].kind().name, "insert", "bulk", 1,
                         [this, taken = seconds[i]] { return nanoseconds(taken, s_.n); }});
    }
    run_race(entries, 1);
  }

  void look_up() {
    std::vector<entry> entries;
    for (const subject<Key>& one : subjects_) {
      for (unsigned threads = 1; threads <= s_.threads; ++threads) {
        add_lookup(entries, one, "bulk", one.kind().count_bulk, threads);
        add_lookup(entries, one, "single", one.kind().count, threads);
      }
    }
    std::vector<std::unique_ptr<lines>> memory;
    add_limits(entries, memory);
    run_race(entries, rounds(), [this] { queries_.renew(); });
  }

  void add_lookup(std::vector<entry>& entries, const subject<Key>& one, const char* way,
                  std::uint64_t (*count)(const void*, const Key*, std::size_t), unsigned threads) {
    if (count == nullptr) return;
    const auto measure = [this, name = one.kind().name, self = one.self(), count, threads] {
      const std::span<const Key> keys = queries_.view();
      const auto pass = [&] {
        if (in_threads(threads, keys, [&](auto share) { return count(self, share.data(), share.size()); }) <
            queries_.present()) {
          fail_on_false_negative(name);
        }
      };
      return nanoseconds(seconds_per_pass(
                             plan_.least_seconds, s_.threads == 1, [] {}, pass),
                         keys.size());
    };
    entries.push_back({one.kind().name, "lookup", way, threads, measure});
  }

  // Splits the keys among the threads and returns the sum of work(share).
  template <class Work>
  static std::uint64_t in_threads(unsigned threads, std::span<const Key> keys, Work work) {
    const std::size_t share = keys.size() / threads;
    std::vector<std::uint64_t> sums(threads);
    std::vector<std::thread> others;
    for (unsigned i = 1; i < threads; ++i) {
      others.emplace_back(
          [&, i] { sums[i] = work(i + 1 < threads ? keys.subspan(i * share, share) : keys.subspan(i * share)); });
    }
    sums[0] = work(threads == 1 ? keys : keys.first(share));
    for (std::thread& other : others) other.join();
    return std::accumulate(sums.begin(), sums.end(), std::uint64_t{0});
  }

  void add_limits(std::vector<entry>& entries, std::vector<std::unique_ptr<lines>>& memory) {
    const auto add = [&](const char* name, auto work) {
      if (!wanted(name)) return;
      entries.push_back({name, "lookup", "limit", 1, [this, work] {
                           const std::span<const Key> keys = queries_.view();
                           const timing seconds = seconds_per_pass(
                               plan_.least_seconds, true, [] {}, [&] { consume(work(keys)); });
                           return nanoseconds(seconds, keys.size());
                         }});
    };
    if constexpr (std::same_as<Key, std::uint64_t>) {
      for (const bool huge : {true, false}) {
        memory.push_back(std::make_unique<lines>(std::max<std::uint64_t>(s_.n * s_.bits / 8, 64), huge));
        const lines* const at = memory.back().get();
        add(huge ? "limit lines huge" : "limit lines", [at](auto keys) { return at->read(keys); });
        if (!huge) continue;
        add("limit lines huge to L1", [at](auto keys) { return at->template read_ahead<1>(keys); });
        add("limit lines huge to L2", [at](auto keys) { return at->template read_ahead<2>(keys); });
      }
      add("limit hash mix", hash_each<bloomery::mix, Key>);
    }
    add("limit hash xxh3", hash_each<bloomery::xxh3, Key>);
  }

  // Bits per key, and the measured FPR with its 95% confidence interval [Wilson 1927].
  json sizes_and_fprs() {
    json all = json::array();
    query_list<Key> absent(s_.n, piece / 16, 0);
    std::vector<std::uint64_t> false_positives(subjects_.size());
    std::uint64_t absent_count = 0;
    const bool measured = s_.hits == 50 && s_.threads == 1;
    for (; measured && absent_count < plan_.absent_keys; absent_count += absent.view().size()) {
      absent.renew();
      for (std::size_t i = 0; i < subjects_.size(); ++i) false_positives[i] += subjects_[i].count(absent.view());
    }
    for (std::size_t i = 0; i < subjects_.size(); ++i) {
      const subject<Key>& one = subjects_[i];
      const double bits = 8 * static_cast<double>(one.kind().bytes(one.self())) / static_cast<double>(s_.n);
      json row = {{"name", one.kind().name}, {"bits_a_key", std::round(bits * 1000) / 1000}};
      if (measured) {
        const double n = static_cast<double>(absent_count);
        const double p = static_cast<double>(false_positives[i]) / n;
        const double z = 1.96;
        const double middle = (p + z * z / (2 * n)) / (1 + z * z / n);
        const double half = z / (1 + z * z / n) * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n));
        row["wrong"] = false_positives[i];
        row["asked"] = absent_count;
        row["rate"] = p;
        row["rate_least"] = std::max(0.0, middle - half);
        row["rate_most"] = middle + half;
        std::printf("  %-34s %8.3f bits per key, FPR %.4f%% (%.4f to %.4f)\n", one.kind().name, bits, 100 * p,
                    100 * std::max(0.0, middle - half), 100 * (middle + half));
      }
      all.push_back(row);
    }
    std::fflush(stdout);
    return all;
  }

  unsigned rounds() const { return options_.rounds != 0 ? options_.rounds : plan_.rounds; }

  setting s_;
  const plan& plan_;
  const options& options_;
  query_list<Key> queries_;
  std::optional<key_list<Key>> keys_;  // all inserted keys; sets of views need their text
  std::vector<subject<Key>> subjects_;
  json measurements_ = json::array();
};

int run(const options& o) {
  std::vector<std::string> missing;
  const std::vector<peers> loaded = load_peers(missing);
  const auto integers = contestants_of<std::uint64_t>(loaded);
  const auto strings = contestants_of<std::string_view>(loaded);
  json results = {{"schema", 1}, {"plan", o.plan}, {"machine", machine_facts()}, {"missing", missing}};
  results["settings"] = json::array();
  for (const plan& p : plans()) {
    if (p.name != o.plan) continue;
    results["rounds"] = o.rounds != 0 ? o.rounds : p.rounds;
    results["least_seconds"] = p.least_seconds;
    for (const setting& s : p.settings) {
      if (!std::regex_search(name_of(s), std::regex(o.settings))) continue;
      results["settings"].push_back(s.strings ? one_setting<std::string_view>(s, p, o, strings).run()
                                              : one_setting<std::uint64_t>(s, p, o, integers).run());
    }
  }
  write_json(o.json_file, std::move(results));
  return 0;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) try {
  bench::options o;
  CLI::App app("bloomery compared with other filters and the machine's limits, in one process");
  std::vector<std::string> names;
  for (const bench::plan& p : bench::plans()) names.emplace_back(p.name);
  app.add_option("--plan", o.plan, "quick, axes, all or goals")->check(CLI::IsMember(names))->capture_default_str();
  app.add_option("--settings", o.settings, "only settings whose name matches, for example ^u64/1000000/");
  app.add_option("--only", o.only, "only contestants whose name matches, for example '^bloomery|^leveldb'");
  app.add_option("--rounds", o.rounds, "rounds, instead of the plan's");
  app.add_option("--json", o.json_file, "file for the results");
  CLI11_PARSE(app, argc, argv);
  return bench::run(o);
} catch (const std::exception& e) {
  std::fprintf(stderr, "compare: %s\n", e.what());
  return 1;
}
