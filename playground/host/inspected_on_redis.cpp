// Inspection of a filter on Redis or Valkey, which other clients may change meanwhile and whose servers may be down.
#include "playground/host/inspect_filter.hpp"

#include "playground/host/fill_of_shared.hpp"
#include "playground/inspect/fill_pass.hpp"
#include "playground/inspect/findings.hpp"
#include "playground/session/shown_filter.hpp"

#include <bloomery/error.hpp>
#include <bloomery/filter_facts.hpp>
#include <bloomery/measure.hpp>
#include <bloomery/processors.hpp>
#include <bloomery/redis.hpp>
#include <bloomery/redis/address.hpp>
#include <bloomery/redis/handle.hpp>
#include <bloomery/secret.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace bloomery::playground {
namespace {

constexpr std::uint64_t queries_of_server = 10'000;
constexpr std::size_t most_shards = 4096;  // listed individually

class inspected_on_redis final : public watched {
 public:
  inspected_on_redis(const std::string& name, const redis::open_options& options)
      : watched(redis_address::parse(name).text(), "redis"), address_(name), options_(options) {}

  // Lookups use a connection of their own, because reading all bits may take long. A server that accepts connections
  // but does not answer must not block all requests: only a few wait, for a second, and after a failure requests fail
  // at once for a moment.
  json ask(const key_list& keys) override {
    struct seat {
      seat() : number(++all_asking) {}
      seat(const seat&) = delete;
      seat& operator=(const seat&) = delete;
      ~seat() { --all_asking; }
      int number;
    } const mine;
    if (mine.number > most_asking)
      refuse("too many simultaneous lookups in filters on Redis", "close some pages, or try again later");
    std::unique_lock turn(asking_, std::defer_lock);
    for (int steps = 0; steps < 10 && !ending() && !turn.owns_lock(); ++steps) {
      static_cast<void>(turn.try_lock_for(std::chrono::milliseconds(100)));
    }
    if (!turn.owns_lock()) refuse("the server is still busy with other lookups", "try again in a moment");
    if (failed_ && std::chrono::steady_clock::now() - failed_at_ < until_tried_again) throw error(*failed_);
    try {
      json answers = answers_of(keys, opened(asked_));
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
  inline static std::atomic<int> all_asking{0};  // for all filters on Redis

  [[noreturn]] void refuse(const char* what, const char* hint) const {
    throw error(errc::unavailable, {what, name(), "an answer within a second", "", hint});
  }

  static constexpr std::uint64_t most_pulled = std::uint64_t{512} << 20;  // in bits: 64 MiB over the network

  filter_handle& opened(std::unique_ptr<filter_handle>& filter) {
    if (!filter) filter = redis::open_filter(address_, options_);
    return *filter;
  }

  void read_if_changed() override {
    try {
      filter_handle& filter = opened(filter_);
      redis_filter* const shared = redis::shared_filter_of(filter);
      if (shared == nullptr) {
        throw error(errc::incompatible, {"the playground does not inspect Guava chains", name(), "a shared filter",
                                         "a Guava chain", "use 'bloomery info'"});
      }
      read(filter, *shared);
    } catch (const error&) {
      filter_.reset();  // another filter may have its name when the server is back
      throw;
    }
  }

  void read(filter_handle& filter, redis_filter& shared) {
    std::vector<redis_shard> shards;
    const redis_info now = shared.info(&shards);
    const auto mark = std::tuple(now.epoch, now.ones, now.inserted, now.layers, now.expires_at);
    if (mark_ == mark) return;
    const auto goes_on = [&] { return !ending(); };
    const measured_rate measured = measure_rate(filter, queries_of_server, random_secret().k0, 1, goes_on);
    const auto hear = [&](double done) { progress(done); };
    filter_facts facts = redis::facts_of(now);
    const params& p = facts.parameters;
    std::optional<fill_seen> fill;
    if (!facts.shared->grows && !p.has_window() && now.bits <= most_pulled) {
      const shown_filter copy(shared.pull());
      const filter_facts of_bits = copy.facts(now.inserted);
      facts.fill = of_bits.fill;
      facts.expected_fpr = of_bits.expected_fpr;
      facts.keys_left = of_bits.keys_left;
      fill = fill_of(copy.view(), available_processors(), hear);
      fill->by_blocks.tolerated = tolerated_while_written;
      expect(fill->by_blocks, p, facts.fill->estimated_keys->value);
    } else {
      fill = fill_of(shared, now, shards, hear);
      if (!fill) return;  // the filter was replaced; the next reading sees the new one
      facts.layers = layers_of(p, shards);
    }
    json seen = finding_of(facts, measured);
    add_shards(seen, shards, p);
    add_fill(seen, p, *fill);
    publish(std::move(seen));
    mark_ = mark;
  }

  // The first shards individually, and the sums of all shards per node.
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

  // Sums over the layers with the same number in all shards; the oldest first.
  static std::vector<layer_facts> layers_of(const params& p, const std::vector<redis_shard>& shards) {
    struct sum {
      layer_facts facts{.cells_set = 0};
      double keys = 0;
    };
    std::map<std::int64_t, sum> by_number;
    for (const redis_shard& shard : shards) {
      for (const redis_shard::layer& layer : shard.layers) {
        sum& to = by_number[layer.number];
        params alone = p;
        alone.geometry = layer.geometry;
        to.facts.geometry.bits += layer.geometry.bits;
        *to.facts.cells_set += layer.ones;
        to.facts.capacity += layer.capacity;
        to.keys += std::min(estimated_keys(alone, std::min(layer.ones, layer.geometry.bits)).value,
                            static_cast<double>(beyond_counting));
      }
    }
    std::vector<layer_facts> layers;
    for (auto& [number, of] : by_number) {
      of.facts.insert_count =
          static_cast<std::uint64_t>(std::llround(std::min(of.keys, static_cast<double>(beyond_counting))));
      of.facts.target_fpr = p.target_fpr;
      layers.push_back(of.facts);
    }
    return layers;
  }

  std::string address_;  // including its password
  redis::open_options options_;
  std::unique_ptr<filter_handle> filter_;  // used by the reading thread
  std::timed_mutex asking_;
  std::unique_ptr<filter_handle> asked_;
  std::optional<error> failed_;  // the result of the last lookup
  std::chrono::steady_clock::time_point failed_at_;
  std::optional<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::optional<std::int64_t>>>
      mark_;
};

}  // namespace

std::unique_ptr<watched> inspect_on_redis(const std::string& address, const redis::open_options& options) {
  return std::make_unique<inspected_on_redis>(address, options);
}

}  // namespace bloomery::playground
