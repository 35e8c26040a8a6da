// Benchmark of the filter families: time_families [KEYS [ROUNDS]] compares counting, quotient, scalable,
// rebuilding, sliding-window and static filters each with a split_block512 filter of the same expected FPR for the same
// number of keys.
//
//   $ build/bench/bench/time_families 1000000 9 --json families.json
//
// counting             filter<> of layout counting with capacity KEYS, at 1%
// quotient             any_filter of layout quotient with capacity KEYS, at 1%
// quotient_growing     the same, grown from its first size
// scalable             scalable_filter<> at 1%, grown from its smallest layer
// rebuilding           rebuilding_filter at 1%, initial capacity 1000, in a file; compared with an any_filter in a file
// sliding, sliding64   sliding_window_filter<> at 1% with a window of KEYS keys, when it is fullest: 8/7 of them
// fuse8, fuse16        static_filter<>, 0.39% and 0.0015%
//
// The split_block512 filter is sized for the expected FPR that the other filter has with these keys. Times are
// nanoseconds per key, in CPU time of all threads, on which other programs have less influence; with several threads,
// in wall-clock time. The passes of a pair take turns (round_robin.hpp), with other lookup keys in each round; a figure
// is the median of the rounds, a ratio the median of the rounds' ratios.
//
// insert            into an empty filter, by one call or by one call per key. Grown filters start again from nothing
// build             from all keys at once, by several threads; for split_block512, insert_all()
// remove            all keys
// present, absent   lookups: batch, one by one, and chained (each starts after the previous one has ended)
#include "keys.hpp"
#include "lookups.hpp"
#include "machine_facts.hpp"
#include "round_robin.hpp"

#include <bloomery/any_filter.hpp>
#include <bloomery/filter.hpp>
#include <bloomery/layouts/counting.hpp>
#include <bloomery/rebuilding_filter.hpp>
#include <bloomery/scalable_filter.hpp>
#include <bloomery/sliding_window_filter.hpp>
#include <bloomery/static_filter.hpp>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <functional>
#include <optional>
#include <regex>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace bench {
namespace {

using namespace bloomery;
using json = nlohmann::ordered_json;
using integers = std::span<const std::uint64_t>;

constexpr double target_fpr = 0.01;
constexpr std::size_t queries = std::size_t{1} << 20;
constexpr unsigned most_threads = 2;                      // for builds
constexpr std::uint64_t most_single_in_file = 1'000'000;  // above it, single inserts are skipped: a system call per key
constexpr double patience = 60;                           // seconds; slower passes are measured once

struct options {
  std::uint64_t keys = 1'000'000;
  unsigned rounds = 9;
  std::string folder = ".";
  std::string only;
  std::string json_file;
};

// A folder for filter files, removed by the destructor.
class scratch {
 public:
  explicit scratch(const std::string& folder) : folder_(folder + "/time_families.files") {
    std::filesystem::create_directories(folder_);
  }
  scratch(const scratch&) = delete;
  scratch& operator=(const scratch&) = delete;
  ~scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  std::string file(const std::string& name) const { return folder_ + "/" + name; }

 private:
  std::string folder_;
};

// ---- subjects ----

// A filter in memory that supports clear().
template <class Filter>
class cleared {
 public:
  explicit cleared(Filter made) : filter_(std::move(made)) {}
  const Filter& filter() const { return filter_; }
  Filter& filter() { return filter_; }
  void empty() { filter_.clear(); }
  void insert(integers keys) { filter_.insert(keys); }
  void insert_singly(integers keys) {
    for (const std::uint64_t key : keys) filter_.insert(key);
  }
  std::uint64_t bytes() const { return filter_.byte_size(); }
  double expected_fpr() const { return filter_.expected_fpr(); }

 private:
  Filter filter_;
};

// A quotient filter, which starts again with its first size.
class quotient_growing : public cleared<any_filter> {
 public:
  explicit quotient_growing(const params& first) : cleared(any_filter(first)), first_(first) {}
  void empty() { filter() = any_filter(first_); }

 private:
  params first_;
};

constexpr std::size_t batch = 4096;  // keys per insert() into a file

class rebuilding {
 public:
  explicit rebuilding(std::string path) : path_(std::move(path)) { empty(); }
  const rebuilding_filter& filter() const { return *filter_; }
  void empty() {
    if (filter_) filter_->abandon();
    filter_.emplace(
        rebuilding_filter::create(path_, {.keys = key_kind::u64le, .capacity = 1000, .target_fpr = target_fpr}));
  }
  void insert(integers keys) {
    for (std::size_t first = 0; first < keys.size(); first += batch) {
      filter_->insert(keys.subspan(first, std::min(batch, keys.size() - first)));
    }
    filter_->settle();
  }
  void insert_singly(integers keys) {
    for (const std::uint64_t key : keys) filter_->insert(key);
    filter_->settle();
  }
  std::uint64_t bytes() const { return std::filesystem::file_size(path_); }
  double expected_fpr() const { return filter_->expected_fpr(); }
  ~rebuilding() { filter_->abandon(); }
  rebuilding(const rebuilding&) = delete;
  rebuilding& operator=(const rebuilding&) = delete;

 private:
  std::string path_;
  std::optional<rebuilding_filter> filter_;
};

class fixed_in_file {
 public:
  fixed_in_file(const std::string& path, std::uint64_t n, double wanted)
      : path_(path),
        filter_(any_filter::create(
            path, {.layout = "split_block512", .keys = key_kind::u64le, .capacity = n, .target_fpr = wanted})) {}
  const any_filter& filter() const { return filter_; }
  void empty() { filter_.clear(); }
  void insert(integers keys) {
    for (std::size_t first = 0; first < keys.size(); first += batch) {
      filter_.insert(keys.subspan(first, std::min(batch, keys.size() - first)));
    }
  }
  void insert_singly(integers keys) {
    for (const std::uint64_t key : keys) filter_.insert(key);
  }
  std::uint64_t bytes() const { return std::filesystem::file_size(path_); }
  double expected_fpr() const { return filter_.expected_fpr(); }

 private:
  std::string path_;
  any_filter filter_;
};

// A static filter, built from all its keys.
template <static_fingerprint Fingerprint>
class fuse {
 public:
  explicit fuse(integers keys) { build(keys, 1); }
  const static_filter<std::uint64_t, Fingerprint>& filter() const { return *filter_; }
  void build(integers keys, unsigned threads) {
    filter_.emplace(static_filter<std::uint64_t, Fingerprint>::build(keys, threads));
  }
  std::uint64_t bytes() const { return filter_->byte_size(); }
  double expected_fpr() const { return filter_->expected_fpr(); }

 private:
  std::optional<static_filter<std::uint64_t, Fingerprint>> filter_;
};

using fixed = cleared<filter<std::uint64_t, layouts::split_block512>>;

fixed reference_filter(std::uint64_t n, double wanted) {
  return fixed(filter<std::uint64_t, layouts::split_block512>(n, wanted));
}

// ---- a family and its reference filter ----

class comparison {
 public:
  comparison(std::string family, std::uint64_t n, unsigned rounds)
      : family_(std::move(family)), n_(n), rounds_(rounds), present_(n, queries, 100), absent_(n, queries, 0) {}

  // Times inserts of `keys`; each pass leaves the subject with these keys.
  template <class Subject>
  void insertions(const std::string& name, Subject& subject, integers keys, bool singly = true) {
    add(name, "insert", "batch", 1, keys.size(), [&subject, keys] {
      subject.empty();
      return seconds_of(processor_seconds, [&] { subject.insert(keys); });
    });
    if (!singly) return;
    add(name, "insert", "single", 1, keys.size(), [&subject, keys] {
      subject.empty();
      return seconds_of(processor_seconds, [&] { subject.insert_singly(keys); });
    });
  }

  // Times build(threads), which makes the filter.
  void builds(const std::string& name, std::size_t keys, const std::function<void(unsigned)>& build) {
    for (unsigned threads = 1; threads <= most_threads; ++threads) {
      add(name, "build", "batch", threads, keys,
          [=] { return seconds_of(threads == 1 ? processor_seconds : wall_seconds, [&] { build(threads); }); });
    }
  }

  template <class Filter>
  void removals(const std::string& name, Filter& filter, integers keys) {
    add(name, "remove", "batch", 1, keys.size(), [&filter, keys] {
      const double taken = seconds_of(processor_seconds, [&] { filter.remove(keys); });
      filter.insert(keys);
      return taken;
    });
  }

  template <class Subject>
  void lookups(const std::string& name, const Subject& subject) {
    for (const bool present : {true, false}) {
      const auto pass = [&](const char* way, auto count) {
        add(name, present ? "present" : "absent", way, 1, queries, [this, name, present, &subject, count] {
          std::uint64_t found = 0;
          const double taken = seconds_of(
              processor_seconds, [&] { found = count(subject.filter(), (present ? present_ : absent_).view()); });
          if (present && found < queries) {
            throw std::runtime_error(name + " reports an inserted key as absent: its times are meaningless");
          }
          return taken;
        });
      };
      pass("batch", [](const auto& filter, integers keys) { return count_batch(filter, keys); });
      pass("single", [](const auto& filter, integers keys) { return count_single(filter, keys); });
      pass("chained", [](const auto& filter, integers keys) { return count_chained(filter, keys); });
    }
  }

  // Requires filled subjects.
  template <class Ours, class Reference>
  json measure(const Ours& ours, const Reference& reference) {
    const json contestants = {facts(family_, ours), facts("split_block512", reference)};
    std::printf("\n%-22s %10s %14s %8s\n", (family_ + ", " + std::to_string(n_)).c_str(), "ours", "split_block512",
                "ratio");
    std::printf("%-22s %10.2f %10.2f %8.2f\n", "bits per key", bits(ours), bits(reference),
                bits(ours) / bits(reference));
    std::printf("%-22s %9.4f%% %9.4f%%\n", "expected FPR", 100 * ours.expected_fpr(), 100 * reference.expected_fpr());
    std::printf("%-22s %9.4f%% %9.4f%%\n", "measured FPR", 100 * measured(contestants[0]),
                100 * measured(contestants[1]));
    std::fflush(stdout);
    race(entries_, rounds_, patience, [this] {
      present_.renew();
      absent_.renew();
    });
    json measurements = json::array();
    for (const entry& e : entries_) {
      json samples = json::array();
      for (const double sample : e.samples) samples.push_back(std::round(sample * 1000) / 1000);
      measurements.push_back(
          {{"name", e.name}, {"operation", e.operation}, {"way", e.way}, {"threads", e.threads}, {"samples", samples}});
      if (e.name != "split_block512") print(e);
    }
    return {{"name", family_ + "/" + std::to_string(n_)},
            {"family", family_},
            {"n", n_},
            {"threads", most_threads},
            {"queries", queries},
            {"contestants", contestants},
            {"measurements", measurements}};
  }

 private:
  template <class Work>
  void add(const std::string& name, const char* operation, const char* way, unsigned threads, std::size_t keys,
           Work work) {
    entries_.push_back({name, operation, way, threads, [=] { return 1e9 * work() / static_cast<double>(keys); }});
  }

  void print(const entry& ours) const {
    const std::string words =
        ours.operation + ", " + ours.way + (ours.threads > 1 ? ", " + std::to_string(ours.threads) + " threads" : "");
    for (const entry& e : entries_) {
      if (e.name != "split_block512" || e.operation != ours.operation || e.way != ours.way || e.threads != ours.threads)
        continue;
      std::printf("%-22s %7.2f ns %7.2f ns %8.2f\n", words.c_str(), median(ours.samples), median(e.samples),
                  median_ratio(ours.samples, e.samples));
      return;
    }
    std::printf("%-22s %7.2f ns\n", words.c_str(), median(ours.samples));
  }

  template <class Subject>
  double bits(const Subject& subject) const {
    return 8 * static_cast<double>(subject.bytes()) / static_cast<double>(n_);
  }

  static double measured(const json& facts) { return facts["wrong"].get<double>() / facts["asked"].get<double>(); }

  template <class Subject>
  json facts(const std::string& name, const Subject& subject) {
    constexpr std::uint64_t times = 4;
    std::uint64_t wrong = 0;
    for (std::uint64_t i = 0; i < times; ++i) {
      absent_.renew();
      wrong += count_batch(subject.filter(), absent_.view());
    }
    return {{"name", name},
            {"bits_a_key", bits(subject)},
            {"exact_rate", subject.expected_fpr()},
            {"wrong", wrong},
            {"asked", times * queries}};
  }

  std::string family_;
  std::uint64_t n_;
  unsigned rounds_;
  query_list<std::uint64_t> present_;
  query_list<std::uint64_t> absent_;
  std::vector<entry> entries_;
};

// Compares a filter that holds `keys` with a reference filter that holds the last n of them.
template <class Subject, class More>
json time_inserted(const std::string& family, Subject ours, integers keys, const options& o, More more) {
  ours.insert(keys);
  fixed reference = reference_filter(o.keys, ours.expected_fpr());
  const integers last = keys.last(o.keys);
  reference.insert(last);
  comparison both(family, o.keys, o.rounds);
  both.insertions(family, ours, keys);
  both.insertions("split_block512", reference, last);
  more(both, ours.filter());
  both.lookups(family, ours);
  both.lookups("split_block512", reference);
  return both.measure(ours, reference);
}

template <class Filter>
json time_cleared(const std::string& family, Filter made, integers keys, const options& o) {
  return time_inserted(family, cleared<Filter>(std::move(made)), keys, o, [](comparison&, Filter&) {});
}

json time_rebuilding(integers keys, const options& o) {
  const scratch files(o.folder);
  rebuilding ours(files.file("rebuilding.bloom"));
  ours.insert(keys);
  fixed_in_file reference(files.file("split_block512.bloom"), o.keys, ours.expected_fpr());
  reference.insert(keys);
  comparison both("rebuilding", o.keys, o.rounds);
  const bool singly = o.keys <= most_single_in_file;
  both.insertions("rebuilding", ours, keys, singly);
  both.insertions("split_block512", reference, keys, singly);
  both.lookups("rebuilding", ours);
  both.lookups("split_block512", reference);
  return both.measure(ours, reference);
}

template <static_fingerprint Fingerprint>
json time_static(const std::string& family, integers keys, const options& o) {
  fuse<Fingerprint> ours(keys);
  fixed reference = reference_filter(o.keys, ours.expected_fpr());
  reference.insert(keys);
  comparison both(family, o.keys, o.rounds);
  both.builds(family, keys.size(), [&](unsigned threads) { ours.build(keys, threads); });
  both.builds("split_block512", keys.size(), [&](unsigned threads) {
    reference.empty();
    reference.filter().insert_all(keys, threads);
  });
  both.lookups(family, ours);
  both.lookups("split_block512", reference);
  return both.measure(ours, reference);
}

// The maximum number of keys that a sliding window holds. The last n are the keys 0 to n - 1, which query_list uses as
// present.
std::vector<std::uint64_t> keys_of(std::uint64_t n) {
  const std::uint64_t held = (n + window_slices - 1) / window_slices * window_generations;
  std::vector<std::uint64_t> keys(held);
  for (std::uint64_t i = 0; i < held; ++i) keys[i] = random_word(i < held - n ? n + i : i - (held - n));
  return keys;
}

void run(const options& o) {
  const std::vector<std::uint64_t> held = keys_of(o.keys);
  const integers keys = integers(held).last(o.keys);
  json results = {{"schema", 1}, {"plan", "families"}, {"rounds", o.rounds}, {"machine", machine_facts()}};
  results["missing"] = json::array();
  results["settings"] = json::array();
  std::printf("%llu keys, medians of %u rounds, kernels %s, 1 thread unless noted, load %.1f\n",
              static_cast<unsigned long long>(o.keys), o.rounds, kernel_name().c_str(), load_average());
  const auto family = [&](const char* name, auto time) {
    if (std::regex_search(name, std::regex(o.only))) results["settings"].push_back(time());
  };
  family("counting", [&] {
    const auto removals = [&](comparison& both, filter<std::uint64_t, layouts::counting>& ours) {
      both.removals("counting", ours, keys);
    };
    filter<std::uint64_t, layouts::counting> made(o.keys, target_fpr);
    return time_inserted("counting", cleared(std::move(made)), keys, o, removals);
  });
  for (const std::string name : {"quotient", "quotient_growing"}) {
    const auto removals = [&](comparison& both, any_filter& ours) { both.removals(name, ours, keys); };
    family(name.c_str(), [&] {
      const params p =
          complete({.layout = name, .keys = key_kind::u64le, .capacity = o.keys, .target_fpr = target_fpr});
      return name == "quotient" ? time_inserted(name, cleared(any_filter(p)), keys, o, removals)
                                : time_inserted(name, quotient_growing(p), keys, o, removals);
    });
  }
  family("scalable", [&] { return time_cleared("scalable", scalable_filter<std::uint64_t>(target_fpr), keys, o); });
  family("rebuilding", [&] { return time_rebuilding(keys, o); });
  family("sliding", [&] {
    return time_cleared(
        "sliding",
        sliding_window_filter<std::uint64_t, layouts::sliding>({.window = window_of_keys(o.keys), .fpr = target_fpr}),
        held, o);
  });
  family("sliding64", [&] {
    return time_cleared(
        "sliding64",
        sliding_window_filter<std::uint64_t, layouts::sliding64>({.window = window_of_keys(o.keys), .fpr = target_fpr}),
        held, o);
  });
  family("fuse8", [&] { return time_static<std::uint8_t>("fuse8", keys, o); });
  family("fuse16", [&] { return time_static<std::uint16_t>("fuse16", keys, o); });
  write_json(o.json_file, std::move(results));
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) try {
  bench::options o;
  CLI::App app("filter families compared with split_block512 filters of the same FPR");
  app.add_option("KEYS", o.keys, "in each filter")->check(CLI::Range(1'000, 1'000'000'000))->capture_default_str();
  app.add_option("ROUNDS", o.rounds, "rounds; each figure is their median")
      ->check(CLI::Range(1, 1'000))
      ->capture_default_str();
  app.add_option("--folder", o.folder, "folder of the rebuilding filter's files")->capture_default_str();
  app.add_option("--only", o.only, "only families whose name matches, as '^fuse'");
  app.add_option("--json", o.json_file, "file for the results");
  CLI11_PARSE(app, argc, argv);
  bench::run(o);
} catch (const std::exception& e) {
  std::fprintf(stderr, "time_families: %s\n", e.what());
  return 1;
}
