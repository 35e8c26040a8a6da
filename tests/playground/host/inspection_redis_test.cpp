// Inspections of filters on real servers, while other clients change, replace or remove them.
#include <bloomery/any_filter.hpp>
#include <bloomery/error.hpp>
#include <bloomery/measure.hpp>
#include <bloomery/redis.hpp>
#include <bloomery/redis/chain.hpp>

#include "playground/host/inspect_filter.hpp"
#include "playground/inspected_filters.hpp"
#include "redis/cluster.hpp"
#include "redis/fixtures.hpp"
#include "redis/servers.hpp"
#include "support/errors.hpp"

#include <gtest/gtest.h>

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace bloomery_tests {
namespace {

using bloomery::any_filter;
using bloomery::redis_filter;
using bloomery::redis_growth;
using bloomery::redis_params;
using namespace bloomery::playground;

std::unique_ptr<inspection> inspect_on_server(const std::string& address) {
  bloomery::redis::open_options options;
  options.connection.time = bloomery::playground::usual_server_time;
  return inspect_filter(address, options);
}

class InspectedOnRedis : public on_a_server<InspectedOnRedis> {
 public:
  static server_options options() { return {.append_only = true}; }

 protected:
  static std::unique_ptr<inspection> inspect(const std::string& name) { return inspect_on_server(at(name).text()); }

  static redis_params of(std::uint64_t capacity) {
    return {.filter = {.capacity = capacity, .target_fpr = 0.01}, .shards = 4};
  }
  static redis_params that_grows(std::uint64_t capacity) {
    redis_params wanted = of(capacity);
    wanted.growth = redis_growth::unlimited;
    return wanted;
  }
};

TEST_F(InspectedOnRedis, IsReadShardByShard) {
  redis_filter filter = redis_filter::create(at("a"), of(20'000));
  insert(filter, 0, 8000);
  const auto i = inspect("a");

  const json seen = ready(*i);

  const any_filter local = filter.pull();
  const std::uint64_t ones = measure_fill(local.parameters(), local.bytes()).ones;
  EXPECT_EQ(seen["facts"]["ones"], ones);
  EXPECT_EQ(sum_of(seen["heat"]["ones"]), ones);
  EXPECT_EQ(seen["histogram"]["fits"], true);
  EXPECT_EQ(seen["certified"].get<double>(), local.current_fpr());
  ASSERT_EQ(seen["shards"].size(), 4);
  const std::uint64_t of_shard = local.byte_size() / 4;
  for (std::uint64_t s = 0; s < 4; ++s) {
    const json& shard = seen["shards"][s];
    const std::uint64_t expected = bloomery::count_ones(local.bytes().subspan(s * of_shard, of_shard));
    EXPECT_EQ(
        shard,
        json({{"shard", s}, {"node", server->socket()}, {"layers", 1}, {"ones", expected}, {"cells", 8 * of_shard}}));
  }
  EXPECT_EQ(
      seen["nodes"],
      json::array(
          {{{"node", server->socket()}, {"shards", 4}, {"layers", 4}, {"ones", ones}, {"cells", 32 * of_shard}}}));
}

TEST_F(InspectedOnRedis, ThatGrowsShowsItsLayersAndTheirBits) {
  redis_filter filter = redis_filter::create(at("a"), that_grows(1000));
  insert(filter, 0, 6000);
  const auto i = inspect("a");

  const json seen = ready(*i);

  const bloomery::redis_info now = filter.info();
  EXPECT_EQ(seen["filter"]["family"], "growing");
  EXPECT_EQ(sum_of(seen["heat"]["ones"]), now.ones);
  EXPECT_EQ(sum_of(seen["heat"]["read"]), now.bits);
  EXPECT_EQ(sum_of(seen["histogram"]["blocks"]), now.bits / 512);
  EXPECT_EQ(seen["histogram"]["fits"], true);
  EXPECT_EQ(seen["facts"]["layers"].size(), now.layers);
  EXPECT_GT(now.layers, 1);
  std::uint64_t cells = 0;
  std::uint64_t keys = 0;
  for (const json& layer : seen["facts"]["layers"]) {
    cells += layer["cells"].get<std::uint64_t>();
    keys += layer["keys"].get<std::uint64_t>();
  }
  EXPECT_EQ(cells, now.bits);
  EXPECT_NEAR(static_cast<double>(keys), 6000, 200);
  EXPECT_EQ(seen["facts"]["keys_left"], nullptr);
  EXPECT_EQ(seen["growth"]["most_keys"], nullptr);
  EXPECT_EQ(seen["verdict"]["code"], "keeps");
}

TEST_F(InspectedOnRedis, WithAWindowShowsItsGenerations) {
  redis_params wanted = of(10'000);
  wanted.filter.extra = bloomery::window_of_time(std::chrono::hours(1));
  redis_filter filter = redis_filter::create(at("a"), wanted);
  insert(filter, 0, 500);
  const auto i = inspect("a");

  const json seen = ready(*i);

  EXPECT_EQ(seen["filter"]["family"], "windowed");
  EXPECT_EQ(seen["facts"]["ones"], filter.info().ones);
  EXPECT_EQ(sum_of(seen["heat"]["ones"]), filter.info().ones);
  EXPECT_EQ(seen["histogram"]["fits"], true);
  EXPECT_GE(seen["facts"]["layers"].size(), 1);
  EXPECT_EQ(seen["forecast"], nullptr);
}

TEST_F(InspectedOnRedis, ThatGrowsAndIsPollutedIsUneven) {
  redis_filter filter = redis_filter::create(at("a"), that_grows(20'000));
  insert(filter, 0, 30'000);
  for (const char* line : {"64", "6400", "12800"}) {
    server->command({"SETRANGE", server->shard("a", 1) + ":0c", line, std::string(64, '\xff')});
  }
  const auto i = inspect("a");

  const json seen = ready(*i);

  EXPECT_EQ(seen["histogram"]["fits"], false);
  EXPECT_EQ(seen["verdict"]["code"], "uneven");
}

TEST_F(InspectedOnRedis, ThatIsLargeIsReadInPart) {
  redis_filter filter = redis_filter::create(at("a"), of(60'000'000));
  insert(filter, 0, 200'000);
  const auto i = inspect("a");

  const json seen = ready(*i);

  const std::uint64_t bits = filter.info().bits;
  ASSERT_GT(bits / 8, 64 << 20);
  const std::uint64_t read = sum_of(seen["heat"]["read"]);
  EXPECT_LE(read, 8 * (16 << 20));
  EXPECT_GT(read, 8 * (15 << 20));
  EXPECT_EQ(seen["heat"]["read"].size(), seen["heat"]["ones"].size());
  for (const json& cells : seen["heat"]["read"]) EXPECT_GT(cells, 0);
  const double share = static_cast<double>(sum_of(seen["heat"]["ones"])) / static_cast<double>(read);
  const double fill = seen["facts"]["fill"];
  EXPECT_NEAR(share, fill, 0.03 * fill) << "some 40,000 keys are in what was read";
  EXPECT_EQ(sum_of(seen["histogram"]["blocks"]), read / 512);
  EXPECT_EQ(seen["histogram"]["fits"], true) << seen["histogram"]["chance"];
}

TEST_F(InspectedOnRedis, ShowsWhatOthersInsert) {
  redis_filter filter = redis_filter::create(at("a"), of(20'000));
  const auto i = inspect("a");
  ready(*i);

  insert(filter, 0, 1000);
  const json seen = follow(*i, "keys", [](const json& now) { return now.contains("keys") && now["keys"] > 900; });

  EXPECT_EQ(seen["state"], "ready");
}

TEST_F(InspectedOnRedis, IsStillShownWhileTheServerIsAway) {
  redis_filter::create(at("a"), of(20'000));
  const auto i = inspect("a");
  const json before = ready(*i);

  server->kill_hard();
  const json away = failed(*i, "unavailable");
  server->restart();
  const auto restarted = std::chrono::steady_clock::now();
  const json back = ready(*i);

  EXPECT_LT(std::chrono::steady_clock::now() - restarted, 3 * bloomery::playground::usual_server_time);
  EXPECT_EQ(away["facts"], before["facts"]);
  EXPECT_GE(away["failed_at"], before["changed_at"]);
  EXPECT_EQ(back["changed_at"], before["changed_at"]);
}

TEST_F(InspectedOnRedis, ThatIsNotThereYetIsReadWhenItIs) {
  const auto i = inspect("a");
  const json none = failed(*i, "not_found");

  redis_filter::create(at("a"), of(1000));
  const json there = ready(*i);

  EXPECT_FALSE(none.contains("facts"));
  EXPECT_EQ(there["verdict"]["code"], "empty");
}

TEST_F(InspectedOnRedis, OfNumbersTakesNoOtherKeys) {
  redis_params wanted = of(1000);
  wanted.filter.keys = bloomery::key_kind::u64le;
  redis_filter filter = redis_filter::create(at("a"), wanted);
  filter.insert(std::uint64_t{42});
  const auto i = inspect("a");

  EXPECT_EQ(i->ask(std::vector<std::string>{"42"})["keys"][0]["answer"], "maybe");
  for (const char* none : {"x", "42x", "-1", ""}) {
    EXPECT_EQ(code_of([&] { i->ask(std::vector<std::string>{none}); }), bloomery::errc::invalid_argument) << none;
  }
}

TEST_F(InspectedOnRedis, ThatIsAGuavaChainIsRefusedWithAHint) {
  bloomery::redis_chain::create(at("chain"), {1000, 0.01}).insert("Madrid");
  const auto i = inspect("chain");

  const json seen = failed(*i, "incompatible");

  EXPECT_EQ(seen["error"]["found"], "a Guava chain");
  EXPECT_EQ(i->ask(std::vector<std::string>{"Madrid"})["keys"][0]["answer"], "maybe");
}

// Accepts connections and sends nothing.
class silent_server {
 public:
  silent_server() = default;
  silent_server(const silent_server&) = delete;
  silent_server& operator=(const silent_server&) = delete;
  ~silent_server() { connections(); }

  std::string address() const { return "redis://127.0.0.1:" + std::to_string(listening_.port()) + "/a"; }

  // The number of connections since the last call; closes them.
  int connections() const {
    int count = 0;
    for (int one; (one = ::accept(listening_.fd(), nullptr, nullptr)) >= 0; ++count) ::close(one);
    return count;
  }

 private:
  loopback_listener listening_{1000, SOCK_NONBLOCK};
};

TEST(InspectedOnSilentServer, IsNotTriedForEveryRequest) {
  const silent_server server;
  const auto i = inspect_on_server(server.address());
  constexpr std::size_t many = 40;
  std::array<bool, many> unavailable{};

  {
    std::vector<std::jthread> asking;
    for (bool& told : unavailable) {
      asking.emplace_back([&] {
        const auto problem = error_of([&] { i->ask(std::vector<std::string>{"key"}); });
        told = problem && problem->code() == bloomery::errc::unavailable && !problem->text().hint.empty();
      });
    }
  }

  EXPECT_EQ(std::count(unavailable.begin(), unavailable.end(), true), many);
  EXPECT_LE(server.connections(), 10);  // one attempt of the reader, and what a slow machine adds
}

class InspectedInCluster : public on_a_cluster<InspectedInCluster> {
 public:
  static cluster_options options() { return {.masters = 3, .replicas = 0}; }
};

TEST_F(InspectedInCluster, IsReadFromTheNodesOfItsShards) {
  redis_filter filter =
      redis_filter::create(cluster->address("a"), {.filter = {.capacity = 10'000, .target_fpr = 0.01}, .shards = 24});
  const auto i = inspect_on_server(cluster->address("a").text());

  const json seen = ready(*i);

  std::map<std::string, std::uint64_t> by_node;
  for (const json& shard : seen["shards"]) ++by_node[shard["node"].get<std::string>()];
  ASSERT_EQ(seen["nodes"].size(), by_node.size());
  EXPECT_EQ(by_node.size(), 3);
  for (const json& node : seen["nodes"]) EXPECT_EQ(node["shards"], by_node[node["node"].get<std::string>()]);
}

}  // namespace
}  // namespace bloomery_tests
