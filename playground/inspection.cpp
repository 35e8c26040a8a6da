#include "playground/inspection.hpp"

#include "playground/histogram.hpp"

#include "cli/commands.hpp"
#include "cli/error_facts.hpp"
#include "cli/shared_filter.hpp"
#include "cli/signals.hpp"

#include <bloomery/any_filter.hpp>
#include <bloomery/audit.hpp>
#include <bloomery/error.hpp>
#include <bloomery/estimate.hpp>
#include <bloomery/layouts/classic.hpp>
#include <bloomery/logged_filter.hpp>
#include <bloomery/mapped_storage.hpp>
#include <bloomery/measure.hpp>
#include <bloomery/redis.hpp>
#include <bloomery/redis_address.hpp>
#include <bloomery/storage.hpp>

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace bloomery::playground {
namespace {

constexpr std::uint64_t most_ranges = 4096;
constexpr std::uint64_t queries_of_file = 100'000;
constexpr std::uint64_t queries_of_server = 10'000;
constexpr auto between_looks = std::chrono::seconds(1);
constexpr const char* looked_for_again = "put the filter back: it is looked for again every second";

// ---- what follows from what was read --------------------------------------------------------------------------------

json json_of(const measured_rate& m) {
  const interval within = m.within();
  return {{"rate", m.rate()}, {"low", within.low}, {"high", within.high}, {"queries", m.queries}};
}

json verdict(const char* level, const char* code, const std::string& text) {
  return {{"level", level}, {"code", code}, {"text", text}};
}

// The promise; or what the filter does as it was planned, where a scheme's own rule of sizes promises a little too much.
double planned_rate(const params& p) {
  const bool dear = p.geometry.probes > classic::most_chosen_probes;  // such a rate takes a second
  if (p.scheme.empty() || p.capacity == 0 || dear) return p.target_rate;
  return std::max(p.target_rate, false_positive_rate(p, p.capacity));
}

json verdict_of(const filter_facts& f, const params& p) {
  if (!f.alarm.empty()) {
    return verdict("bad", f.fuller ? "fuller" : "emptier",
                   f.alarm + ": somebody chose the keys, or changed the bits, or the count is wrong");
  }
  if (f.ones == 0) return verdict("good", "empty", "it is empty");
  if (p.target_rate <= 0 || p.target_rate >= 1) return verdict("watch", "no_promise", "it promises nothing");
  const double planned = planned_rate(p);
  // One filter of many errs a little more than their mean; far more it errs only if it is too full.
  const bool broken = f.certified > planned * 1.25 || (f.certified > planned * 1.01 && f.predicted > planned * 1.001);
  if (f.window && f.overfull) {
    return verdict(broken ? "bad" : "watch", "overfull",
                   "a generation of its window has more keys than it is made for");
  }
  if (broken) return verdict("bad", "broken", "it errs more often than it promises");
  if (f.certified > planned * 1.01) {
    return verdict("watch", "above", "it errs a little more often than it promises, by chance");
  }
  if (planned > p.target_rate && (f.certified > p.target_rate * 1.01 || f.predicted > p.target_rate * 1.001)) {
    return verdict("watch", "scheme", "its scheme errs a little more often than was asked for, even as planned");
  }
  if (f.window) return verdict("good", "keeps", "it keeps its promise");
  if (f.keys_left == 0) return verdict("watch", "full", "it is full, and keeps its promise so far");
  const std::uint64_t in = std::max<std::uint64_t>(f.counted, 1);
  if (f.keys_left < in / 10) return verdict("watch", "nearly_full", "it is nearly full");
  return verdict("good", "keeps", "it keeps its promise");
}

// Keys that come until the promise is broken.
std::uint64_t keys_left(const params& p, std::uint64_t keys, double certified) {
  if (p.target_rate <= 0 || p.target_rate >= 1 || certified > p.target_rate * 1.01) return 0;
  const std::uint64_t most = cli::keys_within(p, p.target_rate);
  return most - std::min(most, keys);
}

json forecast_of(const std::function<double(std::uint64_t)>& rate_at, std::uint64_t keys) {
  json list = json::array();
  for (const std::uint64_t percent : {10u, 25u, 50u, 100u}) {
    const auto more = static_cast<std::uint64_t>(static_cast<double>(keys) * (1 + static_cast<double>(percent) / 100));
    list.push_back({{"more_percent", percent}, {"keys", more}, {"rate", rate_at(more)}});
  }
  return list;
}

// How full ranges and blocks are.
struct fill_seen {
  histogram by_blocks;
  std::uint64_t cells_of_range = 0;
  std::vector<std::uint64_t> ranges;
};

// Counts every cell once, by several threads, each a piece at a time.
// @param progress  hears the share that is done, from one of them
fill_seen fill_of(const shown_filter& filter, const std::function<void(double)>& progress) {
  constexpr std::uint64_t blocks_at_once = 16'384;
  const std::uint64_t cells = filter.cells();
  fill_seen seen;
  seen.by_blocks = histogram_for(filter);
  const std::uint64_t block_cells = seen.by_blocks.block_cells;
  // Ranges of whole blocks, so that one walk over the blocks tells both.
  const std::uint64_t blocks = (cells + block_cells - 1) / block_cells;
  const std::uint64_t blocks_of_range = (blocks + most_ranges - 1) / most_ranges;
  const std::uint64_t pieces_blocks = std::max<std::uint64_t>(blocks_at_once / blocks_of_range, 1) * blocks_of_range;
  const std::uint64_t pieces = (blocks + pieces_blocks - 1) / pieces_blocks;
  seen.cells_of_range = blocks_of_range * block_cells;
  seen.ranges.resize(static_cast<std::size_t>((blocks + blocks_of_range - 1) / blocks_of_range));

  std::atomic<std::uint64_t> next{0};
  const auto work = [&](histogram& h, bool tells) {
    std::vector<std::uint64_t> ones;
    for (std::uint64_t piece; (piece = next.fetch_add(1)) < pieces;) {
      const std::uint64_t first = piece * pieces_blocks;
      ones.resize(static_cast<std::size_t>(std::min(pieces_blocks, blocks - first)));
      filter.count_runs(first * block_cells, block_cells, ones);
      for (std::uint64_t i = 0; i < ones.size(); ++i) {
        const std::uint64_t number = first + i;
        seen.ranges[static_cast<std::size_t>(number / blocks_of_range)] += ones[static_cast<std::size_t>(i)];
        const bool whole = (number + 1) * block_cells <= cells;
        if (whole) add_block(h, ones[static_cast<std::size_t>(i)]);
      }
      if (tells) progress(static_cast<double>(piece + 1) / static_cast<double>(pieces));
    }
  };
  const std::uint64_t threads = std::min<std::uint64_t>(std::max(1u, std::thread::hardware_concurrency()), pieces);
  std::vector<histogram> others(static_cast<std::size_t>(threads) - 1, seen.by_blocks);
  {
    std::vector<std::jthread> helpers;
    for (histogram& h : others) helpers.emplace_back([&work, &h] { work(h, false); });
    work(seen.by_blocks, true);
  }
  for (const histogram& h : others) {
    for (std::size_t i = 0; i < h.blocks.size(); ++i) seen.by_blocks.blocks[i] += h.blocks[i];
  }
  return seen;
}

// @param keys  distinct ones, as the bits tell them: whether they are as many as were counted is another question
void add_fill(json& seen, const params& p, fill_seen fill, const estimate& keys) {
  histogram& h = fill.by_blocks;
  if (std::isfinite(keys.value)) expect(h, p, keys.value);
  // Some schemes of others hash unevenly by themselves.
  const bool even = p.scheme.empty() || p.scheme == "guava";
  const double chance = even ? evenness(h).value_or(-1) : -1;
  const bool known = chance >= 0;
  seen["heat"] = {{"cells_of_range", fill.cells_of_range}, {"ones", fill.ranges}};
  seen["histogram"] = {{"block_cells", h.block_cells},
                       {"cells_of_bin", h.cells_of_bin},
                       {"blocks", h.blocks},
                       {"expected", h.expected.empty() ? json(nullptr) : json(h.expected)},
                       {"chance", known ? json(chance) : json(nullptr)},
                       {"fits", known ? json(chance >= least_chance) : json(nullptr)}};
  const bool uneven = known && chance < least_chance;
  if (uneven && seen["verdict"]["level"] != "bad") {
    seen["verdict"] = verdict("bad", "uneven", "some of its blocks are fuller or emptier than chance has it");
  }
}

void add_facts(json& seen, const shown_filter& filter, const filter_facts& facts, std::uint64_t keys) {
  const params& p = filter.parameters();
  seen["filter"] = playground::json_of(p, &filter);
  seen["promised"] = p.target_rate;
  seen["certified"] = facts.certified;
  seen["predicted"] = facts.predicted;
  seen["verdict"] = verdict_of(facts, p);
  seen["facts"] = playground::json_of(facts, p, std::nullopt);
  if (facts.window) seen["facts"]["keys_left"] = nullptr;
  seen["keys"] = keys;
  seen["forecast"] = family_of(p) == family::sealed || facts.window
                         ? json(nullptr)
                         : forecast_of([&](std::uint64_t more) { return filter.rate_at(more); }, keys);
}

json answers_of(const key_list& keys, const std::function<bool(const std::string&)>& may_contain,
                const shown_filter* filter) {
  const auto* texts = std::get_if<std::vector<std::string>>(&keys);
  if (texts == nullptr)
    throw error(errc::invalid_argument, {"keys are wanted here", "keys", "a list", "addresses",
                                         "give them one by one: {\"keys\": [\"Madrid\"]}"});
  json list = json::array();
  for (const std::string& key : *texts) {
    key_view view{key, std::nullopt, may_contain(key), truth::unknown, {}};
    if (filter != nullptr && family_of(filter->parameters()) != family::sealed) {
      view.hash = filter->hash_of(key);
      for (const place& at : filter->places_of(key)) view.cells.push_back({at, filter->values(at.cell, 1).front()});
      list.push_back(playground::json_of(view, *filter));
    } else {
      list.push_back({{"key", json_of_key(key)},
                      {"answer", view.maybe ? "maybe" : "no"},
                      {"truth", nullptr},
                      {"false_positive", false},
                      {"hash", nullptr},
                      {"block", nullptr},
                      {"cells", json::array()}});
    }
  }
  return {{"keys", list}};
}

// ---- looking again and again ----------------------------------------------------------------------------------------

std::int64_t milliseconds_since_1970() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

class watched : public inspection {
 public:
  watched(std::string name, const char* kind) : name_(std::move(name)), kind_(kind) {}

  const std::string& name() const noexcept override { return name_; }
  const char* kind() const noexcept override { return kind_; }

  void stop() override {
    {
      const std::lock_guard lock(turn_);
      stop_ = true;
    }
    changed_.notify_all();
  }

  json look(std::uint64_t after, std::chrono::milliseconds most) override {
    std::unique_lock lock(turn_);
    changed_.wait_for(lock, most, [&] { return stop_ || version_ > after; });
    json seen = {{"name", name_},
                 {"kind", kind_},
                 {"version", version_},
                 {"state", !problem_.is_null() ? "failed"
                           : known_.is_null()  ? "reading"
                                               : "ready"},
                 {"done", done_},
                 {"error", problem_},
                 {"failed_at", problem_.is_null() ? json(nullptr) : json(failed_at_)},
                 {"changed_at", known_.is_null() ? json(nullptr) : json(changed_at_)}};
    if (!known_.is_null()) seen.update(known_);
    return seen;
  }

 protected:
  // Looks once, and publishes what is other than before. What it throws is what is wrong now.
  virtual void read_if_changed() = 0;

  void start() {
    reader_ = std::thread([this] {
      for (;;) {
        const auto begun = std::chrono::steady_clock::now();
        try {
          read_if_changed();
          fail(nullptr);
        } catch (const error& e) {
          json problem = playground::json_of(e)["error"];
          if (e.text().way_out.empty()) problem["way_out"] = looked_for_again;
          fail(std::move(problem));
        } catch (const std::exception& e) {
          fail(playground::json_of(error(errc::io, {e.what(), name_, "", "", looked_for_again}))["error"]);
        }
        // No more than a fifth of a processor.
        const auto rest = std::max<std::chrono::steady_clock::duration>(between_looks,
                                                                        4 * (std::chrono::steady_clock::now() - begun));
        std::unique_lock lock(turn_);
        if (changed_.wait_for(lock, rest, [&] { return stop_; })) return;
      }
    });
  }

  void end() {
    stop();
    if (reader_.joinable()) reader_.join();
  }

  bool ending() {
    const std::lock_guard lock(turn_);
    return stop_;
  }

  // A writer that is at work makes us read again, also when it waits for keys: that is no news.
  // @param at  when it was changed, if something other than this reading tells; milliseconds since 1970
  void publish(json facts, std::optional<std::int64_t> at = {}) {
    const std::lock_guard lock(turn_);
    if (known_ == facts) return;
    known_ = std::move(facts);
    problem_ = nullptr;
    changed_at_ = at.value_or(milliseconds_since_1970());
    done_ = 1;
    news();
  }

  // Of the first time: what was known stays to be seen while it is read anew.
  void progress(double done) {
    const std::lock_guard lock(turn_);
    if (!known_.is_null() || done < done_ + 0.05) return;
    done_ = done;
    news();
  }

 private:
  // Null: nothing is wrong any more, and what was known is true again.
  void fail(json problem) {
    const std::lock_guard lock(turn_);
    if (problem_ == problem) return;
    if (problem_.is_null()) failed_at_ = milliseconds_since_1970();
    problem_ = std::move(problem);
    news();
  }

  void news() {
    ++version_;
    changed_.notify_all();
  }

  std::string name_;
  const char* kind_;
  std::mutex turn_;
  std::condition_variable changed_;
  json known_;    // null: it was never read
  json problem_;  // null: none
  double done_ = 0;
  std::int64_t changed_at_ = 0;  // milliseconds since 1970
  std::int64_t failed_at_ = 0;
  std::uint64_t version_ = 1;
  bool stop_ = false;
  std::thread reader_;
};

// The library tells the system that keys land anywhere in a file's bytes. Who reads all of them wants those that follow, too.
void will_read_all(std::span<const std::uint8_t> bytes) {
  const auto at = reinterpret_cast<std::uintptr_t>(bytes.data());
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const std::uintptr_t from = at / page * page;
  ::madvise(reinterpret_cast<void*>(from), bytes.size() + (at - from), MADV_SEQUENTIAL);
}

// ---- a file ---------------------------------------------------------------------------------------------------------

class inspected_file final : public watched {
 public:
  inspected_file(const std::string& path, const std::string& keyfile)
      : watched(path, "file"), secret_(cli::secret_of(keyfile)) {
    start();
  }
  ~inspected_file() override { end(); }

  json ask(const key_list& keys) override {
    const shown_filter filter(open());
    const cli::readable_while_cut readable(filter.bytes());
    json answers = answers_of(
        keys, [&](const std::string& key) { return filter.may_contain(key); }, &filter);
    if (readable.was_cut()) throw_cut();
    return answers;
  }

 private:
  any_filter open() const { return any_filter::open(name(), access::read_only, check::header, {}, secret_); }

  [[noreturn]] void throw_cut() const {
    throw error(errc::damaged,
                {"the file was cut short while it was read", name(), "a file that is replaced as a whole",
                 "fewer bytes than its header says", looked_for_again});
  }

  void read_if_changed() override {
    struct stat now {};
    if (::stat(name().c_str(), &now) != 0) {
      throw error(errc::not_found,
                  {"cannot read this file any more", name(), "", std::strerror(errno), looked_for_again});
    }
    // The bits alone: that takes no secret.
    mapped_storage bits = cli::open_bits(name());
    const file_info file = bits.info();
    const params p = file.parameters;
    const shown_filter shown(std::move(bits));
    const cli::readable_while_cut readable(shown.bytes());
    // Of a window by time, generations run out though nobody writes.
    const std::uint64_t epoch = p.window_milliseconds == 0 ? 0 : moment_of(shown);
    // A writer that has the file mapped changes its bytes long before its times: while it is at work, all is read again.
    const mark_of_file mark{now.st_ino, now.st_size, now.st_mtim.tv_sec, now.st_mtim.tv_nsec, file.counts.inserted,
                            file.clean, epoch};
    if (mark_ == mark && file.clean) return;
    const bool asks = p.hash != "siphash" || secret_;
    const bool sealed = family_of(p) == family::sealed;
    will_read_all(shown.bytes());
    // Both go over all the bits, and at the same time, so that they come from the disk once.
    auto audited = std::async(std::launch::async, [&] { return cli::error_facts_of(file, shown.bytes()); });
    std::optional<fill_seen> fill;
    if (!sealed && shown.cells() != 0) fill = fill_of(shown, [&](double done) { progress(done); });
    const cli::error_facts truth = audited.get();
    json seen = {{"file_bytes", file.file_bytes},
                 {"clean", file.clean},
                 {"note", file.metadata},
                 {"expires_at", nullptr},
                 {"measured", nullptr},
                 {"growth", nullptr},
                 {"shards", nullptr},
                 {"nodes", nullptr},
                 {"heat", nullptr},
                 {"histogram", nullptr}};
    filter_facts facts = shown.forgets() ? shown.facts(std::nullopt) : facts_of(truth, p, shown.cells());
    if (readable.was_cut()) throw_cut();
    if (asks) seen["measured"] = json_of(measured());
    facts.alarm = !truth.alarming ? "" : facts_alarm(truth.count);
    facts.fuller = truth.alarming && truth.count.deviation() > 0;
    add_facts(seen, shown, facts, shown.forgets() ? facts.window->keys_held() : truth.keys);
    if (sealed) seen["verdict"] = verdict("good", "sealed", "it is sealed: its error stays as it is");
    if (fill) add_fill(seen, p, *std::move(fill), truth.keys_from_bits);
    // A writer that has the file mapped, and time itself, change it without its time.
    const bool dated = !mark_ || mark_->seconds != mark.seconds || mark_->nanoseconds != mark.nanoseconds;
    publish(std::move(seen), dated ? std::optional(milliseconds_of(now.st_mtim)) : std::nullopt);
    mark_ = mark;
  }

  // By random keys, each of which looks somewhere else.
  measured_rate measured() {
    const any_filter filter = open();
    const cli::readable_while_cut readable(filter.bytes());
    const std::uint64_t queries = filter.uses_hashes() ? queries_of_file : queries_of_file / 10;
    const measured_rate m = measure_rate(filter, queries, 0, 0, [&] { return !ending() && !readable.was_cut(); });
    if (readable.was_cut()) throw_cut();
    return m;
  }

  // The epoch at which lookups see it, until all has run out.
  static std::uint64_t moment_of(const shown_filter& filter) {
    return std::min(filter.epoch(), window_state::of(filter.bytes().data()).newest + window_lanes);
  }

  static std::int64_t milliseconds_of(const timespec& time) {
    return std::int64_t{time.tv_sec} * 1000 + time.tv_nsec / 1'000'000;
  }

  static std::string facts_alarm(const audit& count) {
    return fmt::format("{} bits are set than the count of keys explains", count.deviation() > 0 ? "more" : "fewer");
  }

  static filter_facts facts_of(const cli::error_facts& truth, const params& p, std::uint64_t cells) {
    filter_facts f;
    f.counted = truth.counted;
    f.certified = truth.bits.certified_rate;
    f.predicted = truth.predicted;
    f.cells = cells;
    f.ones = family_of(p) == family::sealed ? cells : truth.bits.ones;
    if (family_of(p) == family::sealed) return f;
    f.estimated = truth.keys_from_bits;
    f.keys_left = keys_left(p, truth.keys, f.certified);
    f.layers.push_back(
        {.cells = cells, .capacity = p.capacity, .keys = truth.keys, .ones = f.ones, .share = p.target_rate});
    return f;
  }

  struct mark_of_file {
    ino_t file;
    off_t bytes;
    time_t seconds;
    long nanoseconds;
    std::uint64_t inserted;
    bool clean;
    std::uint64_t epoch;

    friend bool operator==(const mark_of_file&, const mark_of_file&) = default;
  };

  std::optional<secret_key> secret_;
  std::optional<mark_of_file> mark_;
};

// ---- on Redis -------------------------------------------------------------------------------------------------------

class inspected_on_redis final : public watched {
 public:
  inspected_on_redis(const std::string& name, const cli::playground_options& options)
      : watched(redis_address::parse(name).text(), "redis"),
        address_(redis_address::parse(name)),
        options_(cli::options_for(address_, options.server, options.secret, true)) {
    // Who looks at the page wants to hear soon that nobody answers; it is tried again anyway.
    if (!options.server.milliseconds) options_.connection.time = std::chrono::seconds(3);
    start();
  }
  ~inspected_on_redis() override { end(); }

  // On a connection of its own: to read all bits may take long. A server that accepts and says nothing may not hold all
  // who ask: they wait a moment for each other, few at a time, and what went wrong just now is not tried again.
  json ask(const key_list& keys) override {
    struct seat {
      seat() : number(++all_asking) {}
      seat(const seat&) = delete;
      seat& operator=(const seat&) = delete;
      ~seat() { --all_asking; }
      int number;
    } const mine;
    if (mine.number > most_asking) refuse("too many ask filters on Redis at once", "close some pages, or ask later");
    std::unique_lock turn(asking_, std::defer_lock);
    for (int steps = 0; steps < 10 && !ending() && !turn.owns_lock(); ++steps) {
      static_cast<void>(turn.try_lock_for(std::chrono::milliseconds(100)));
    }
    if (!turn.owns_lock()) refuse("its server takes long to answer others", "ask again in a moment");
    if (failed_ && std::chrono::steady_clock::now() - failed_at_ < until_tried_again) throw error(*failed_);
    try {
      redis_filter& filter = opened(asked_);
      json answers = answers_of(
          keys, [&](const std::string& key) { return may_contain(filter, key); }, nullptr);
      failed_.reset();
      return answers;
    } catch (const error& e) {
      if (e.code() == errc::invalid_argument) throw;
      asked_.reset();
      failed_ = e;
      failed_at_ = std::chrono::steady_clock::now();
      throw;
    }
  }

 private:
  static constexpr int most_asking = 16;
  static constexpr auto until_tried_again = std::chrono::seconds(2);
  inline static std::atomic<int> all_asking{0};  // of all filters on Redis

  [[noreturn]] void refuse(const char* what, const char* way_out) const {
    throw error(errc::unavailable, {what, name(), "an answer within a second", "", way_out});
  }

  static constexpr std::uint64_t most_pulled = std::uint64_t{512} << 20;  // bits: 64 MiB come over the network

  static bool may_contain(redis_filter& filter, const std::string& key) {
    if (filter.parameters().filter.keys != key_kind::u64le) return filter.may_contain(std::string_view(key));
    return filter.may_contain(number_of_key(key));
  }

  redis_filter& opened(std::optional<redis_filter>& filter) {
    if (!filter) filter.emplace(redis_filter::open(address_, options_));
    return *filter;
  }

  void read_if_changed() override {
    try {
      read(opened(filter_));
    } catch (const error&) {
      filter_.reset();  // it may be another one when it is there again
      throw;
    }
  }

  void read(redis_filter& filter) {
    std::vector<redis_shard> shards;
    const redis_info now = filter.info(&shards);
    const auto mark = std::tuple(now.epoch, now.ones, now.inserted, now.layers, now.expires_at);
    if (mark_ == mark) return;
    const measured_rate measured = cli::measure_shared(filter, queries_of_server);
    const params& p = now.parameters.filter;
    json seen = {{"file_bytes", nullptr},
                 {"clean", true},
                 {"note", ""},
                 {"expires_at", now.expires_at ? json(*now.expires_at) : json(nullptr)},
                 {"measured", json_of(measured)},
                 {"growth", growth_of(now)},
                 {"heat", nullptr},
                 {"histogram", nullptr}};
    add_shards(seen, shards, p);
    const bool can_be_pulled =
        now.parameters.growth == redis_growth::none && p.window_milliseconds == 0 && now.bits <= most_pulled;
    if (can_be_pulled) {
      const shown_filter shown(filter.pull());
      filter_facts facts = shown.facts(now.inserted);
      facts.alarm.clear();  // the count was made from the bits
      add_facts(seen, shown, facts, now.inserted);
      add_fill(seen, p, fill_of(shown, [&](double done) { progress(done); }), facts.estimated);
    } else {
      add_unpulled(seen, now, shards);
    }
    publish(std::move(seen));
    mark_ = mark;
  }

  static json growth_of(const redis_info& now) {
    switch (now.parameters.growth) {
      case redis_growth::to_maximum: return {{"most_keys", now.parameters.maximum}};
      case redis_growth::unlimited: return {{"most_keys", nullptr}};
      case redis_growth::none: break;
    }
    return nullptr;
  }

  // Of very many shards the first; all of them by the nodes that have them.
  static void add_shards(json& seen, const std::vector<redis_shard>& shards, const params& p) {
    struct sum {
      std::uint64_t shards = 0;
      std::uint64_t layers = 0;
      std::uint64_t ones = 0;
      std::uint64_t cells = 0;
    };
    std::map<std::string, sum> by_node;
    seen["shards"] = json::array();
    for (std::size_t s = 0; s < shards.size(); ++s) {
      sum of_shard{1, shards[s].layers.size(), 0, 0};
      for (const redis_shard::layer& layer : shards[s].layers) {
        of_shard.ones += layer.ones;
        of_shard.cells += layer.geometry.bits / cell_bits_of(p);
      }
      sum& of_node = by_node[shards[s].node];
      of_node.shards += 1;
      of_node.layers += of_shard.layers;
      of_node.ones += of_shard.ones;
      of_node.cells += of_shard.cells;
      if (s >= most_ranges) continue;
      seen["shards"].push_back({{"shard", s},
                                {"node", shards[s].node},
                                {"layers", of_shard.layers},
                                {"ones", of_shard.ones},
                                {"cells", of_shard.cells}});
    }
    seen["nodes"] = json::array();
    for (const auto& [node, of] : by_node) {
      seen["nodes"].push_back(
          {{"node", node}, {"shards", of.shards}, {"layers", of.layers}, {"ones", of.ones}, {"cells", of.cells}});
    }
  }

  // What the servers tell without sending all bits.
  static void add_unpulled(json& seen, const redis_info& now, const std::vector<redis_shard>& shards) {
    const params& p = now.parameters.filter;
    const bool forgets = p.window_milliseconds != 0;
    filter_facts facts;
    facts.counted = now.inserted;
    facts.ones = now.ones;
    facts.cells = now.bits / cell_bits_of(p);
    facts.certified = now.rate_now;
    facts.predicted = now.rate_now;
    facts.estimated = {static_cast<double>(now.inserted), 0};
    facts.layers = layers_of(p, shards);
    // Nobody waits for a filter that grows without limit, or forgets, to be full.
    const bool may_be_full = now.parameters.growth != redis_growth::unlimited && !forgets;
    facts.keys_left = !may_be_full ? ~std::uint64_t{0}
                      : now.parameters.growth == redis_growth::to_maximum
                          ? now.parameters.maximum - std::min(now.inserted, now.parameters.maximum)
                          : keys_left(p, now.inserted, now.rate_now);
    seen["filter"] = playground::json_of(p);
    seen["filter"]["family"] = forgets ? "windowed" : now.parameters.growth != redis_growth::none ? "growing" : "plain";
    if (p.layout == "counting") seen["filter"]["family"] = "counting";
    seen["filter"]["bits"] = now.bits;
    seen["filter"]["cells"] = facts.cells;
    seen["filter"]["block_cells"] = block_bits_of(p) / cell_bits_of(p);
    seen["promised"] = p.target_rate;
    seen["certified"] = now.rate_now;
    seen["predicted"] = now.rate_now;
    seen["keys"] = now.inserted;
    seen["verdict"] = verdict_of(facts, p);
    seen["facts"] = playground::json_of(facts, p, std::nullopt);
    if (!may_be_full) seen["facts"]["keys_left"] = nullptr;
    const bool fixed = now.parameters.growth == redis_growth::none && !forgets;
    seen["forecast"] = fixed
                           ? forecast_of([&](std::uint64_t keys) { return false_positive_rate(p, keys); }, now.inserted)
                           : json(nullptr);
  }

  // Layers of one number in all shards together; the oldest first.
  static std::vector<layer_facts> layers_of(const params& p, const std::vector<redis_shard>& shards) {
    struct sum {
      layer_facts facts;
      double keys = 0;
    };
    std::map<std::int64_t, sum> by_number;
    for (const redis_shard& shard : shards) {
      for (const redis_shard::layer& layer : shard.layers) {
        sum& to = by_number[layer.number];
        params alone = p;
        alone.geometry = layer.geometry;
        to.facts.cells += layer.geometry.bits / cell_bits_of(p);
        to.facts.ones += layer.ones;
        to.facts.capacity += layer.capacity;
        to.keys += std::min(estimated_keys(alone, std::min(layer.ones, layer.geometry.bits)).value,
                            static_cast<double>(cli::beyond_counting));
      }
    }
    std::vector<layer_facts> layers;
    std::uint64_t first_cell = 0;
    for (auto& [number, of] : by_number) {
      of.facts.first_cell = std::exchange(first_cell, first_cell + of.facts.cells);
      of.facts.keys =
          static_cast<std::uint64_t>(std::llround(std::min(of.keys, static_cast<double>(cli::beyond_counting))));
      of.facts.share = p.target_rate;
      layers.push_back(of.facts);
    }
    return layers;
  }

  redis_address address_;
  redis_options options_;
  std::optional<redis_filter> filter_;  // the reader's
  std::timed_mutex asking_;
  std::optional<redis_filter> asked_;
  std::optional<error> failed_;  // the last time that somebody asked
  std::chrono::steady_clock::time_point failed_at_;
  std::optional<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::optional<std::int64_t>>>
      mark_;
};

}  // namespace

std::unique_ptr<inspection> inspect_filter(const std::string& name, const cli::playground_options& options) {
  if (cli::is_shared(name, options.server)) return std::make_unique<inspected_on_redis>(name, options);
  // A name that is no filter is said at once, not on the page.
  try {
    cli::open_bits(name);
  } catch (const error& e) {
    if (e.code() != errc::not_a_filter) throw;
    constexpr std::string_view ending = ".log";
    const std::string filter = name.substr(0, name.size() - std::min(name.size(), ending.size()));
    const bool is_log = name.ends_with(ending) && ::access(filter.c_str(), R_OK) == 0;
    error_text text = e.text();
    if (is_log) text.way_out = "name " + filter + ": this is its log";
    if (text.way_out.empty()) text.way_out = "name a filter's file, or its address on Redis";
    throw error(e.code(), std::move(text));
  }
  return std::make_unique<inspected_file>(name, options.secret);
}

}  // namespace bloomery::playground
