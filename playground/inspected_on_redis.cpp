// A filter on Redis or Valkey, which others may be filling, replacing or removing, and whose servers may be away.
#include "playground/inspected.hpp"

#include "playground/fill_of_shared.hpp"
#include "playground/fill_pass.hpp"
#include "playground/filter_facts.hpp"
#include "playground/findings.hpp"
#include "playground/shown_filter.hpp"
#include "playground/verdict.hpp"
#include "playground/watched.hpp"

#include "cli/commands/shared_filter.hpp"

#include <bloomery/error.hpp>
#include <bloomery/estimate.hpp>
#include <bloomery/filter_facts.hpp>
#include <bloomery/measure.hpp>
#include <bloomery/redis.hpp>
#include <bloomery/redis_address.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace bloomery::playground {
namespace {

constexpr std::uint64_t queries_of_server = 10'000;
constexpr std::size_t most_shards = 4096;  // that are told one by one

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

  [[noreturn]] void refuse(const char* what, const char* hint) const {
    throw error(errc::unavailable, {what, name(), "an answer within a second", "", hint});
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
      fill_seen fill = fill_of(shown, [&](double done) { progress(done); });
      fill.by_blocks.unseen = of_live_filters;
      expect(fill, shown.parameters(), facts.estimated);
      add_fill(seen, shown.parameters(), fill);
    } else {
      const auto fill = fill_of(filter, now, shards, [&](double done) { progress(done); });
      if (!fill) return;  // the next look sees the new one
      add_unpulled(seen, now, shards);
      add_fill(seen, p, *fill);
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
      if (s >= most_shards) continue;
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

  // What the servers tell of layers, or of more bits than they should send.
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
    seen["filter"] = json_of(p);
    seen["filter"]["family"] = forgets ? "windowed" : now.parameters.growth != redis_growth::none ? "growing" : "plain";
    if (family_of(p) == family::counting) seen["filter"]["family"] = "counting";
    seen["filter"]["bits"] = now.bits;
    seen["filter"]["cells"] = facts.cells;
    seen["filter"]["block_cells"] = block_bits_of(p) / cell_bits_of(p);
    seen["promised"] = p.target_fpr;
    seen["certified"] = now.rate_now;
    seen["predicted"] = now.rate_now;
    seen["keys"] = now.inserted;
    seen["verdict"] = verdict_of(facts, p);
    seen["facts"] = json_of(facts, p, std::nullopt);
    if (!may_be_full) seen["facts"]["keys_left"] = nullptr;
    const bool fixed = now.parameters.growth == redis_growth::none && !forgets;
    seen["forecast"] =
        fixed ? forecast_of([&](std::uint64_t keys) { return expected_fpr(p, keys); }, now.inserted) : json(nullptr);
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
                            static_cast<double>(beyond_counting));
      }
    }
    std::vector<layer_facts> layers;
    std::uint64_t first_cell = 0;
    for (auto& [number, of] : by_number) {
      of.facts.first_cell = std::exchange(first_cell, first_cell + of.facts.cells);
      of.facts.keys = static_cast<std::uint64_t>(std::llround(std::min(of.keys, static_cast<double>(beyond_counting))));
      of.facts.share = p.target_fpr;
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

std::unique_ptr<inspection> inspect_on_redis(const std::string& address, const cli::playground_options& options) {
  return std::make_unique<inspected_on_redis>(address, options);
}

}  // namespace bloomery::playground
