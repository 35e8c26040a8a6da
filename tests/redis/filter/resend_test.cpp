// Servers that crash during an insert and restart without their last writes: all keys of the call are present when it
// returns.
#include "redis/filter/scripts.hpp"
#include "redis/fixtures.hpp"
#include "redis/net/batch.hpp"

#include <filesystem>

namespace bloomery {
namespace {

using namespace bloomery_tests;
using testing::Contains;
using testing::HasSubstr;

constexpr std::uint64_t many = 24'000;  // keys: two steps of a call

std::vector<std::filesystem::path> logs_in(const std::string& folder) {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().filename().string().starts_with("appendonly")) found.push_back(entry.path());
  }
  return found;
}

// A server with a log of its writes, behind a network of its own. Everything is in the log before it is answered, so a
// copy of the log is the state at that moment: a crash that brings the server back to that state has cut off the last
// writes, as "appendfsync everysec" may.
class crashing_server {
 public:
  explicit crashing_server(std::vector<std::string> config = {})
      : server_({.append_only = true, .config = std::move(config)}), net_(server_.socket()) {}

  test_server& server() { return server_; }
  proxy& net() { return net_; }
  redis_address direct() const { return server_.address("x"); }
  redis_address through() const { return net_.address(); }

  // A second call replaces the state of the first.
  void remember() {
    for (const auto& log : logs_in(saved_.path())) std::filesystem::remove_all(log);
    for (const auto& log : logs_in(server_.folder())) {
      std::filesystem::copy(log, saved_ / log.filename().string(), std::filesystem::copy_options::recursive);
    }
  }

  void crash() {
    server_.kill_hard();
    for (const auto& log : logs_in(server_.folder())) std::filesystem::remove_all(log);
    std::filesystem::copy(saved_.path(), server_.folder(), std::filesystem::copy_options::recursive);
    server_.restart();
  }

  // Acts before the server gets this portion of a call's writes. Portions have up to 64 KiB and at most 128 KiB are
  // under way, so from the fifth on some writes have been answered.
  void before_writes(int portion, std::function<void()> act) { before("BITFIELD", portion, std::move(act)); }

  // Acts before the server gets the portion of this number that contains a text.
  void before(std::string_view text, int portion, std::function<void()> act) {
    net_.before(std::string(text), [this, text, portion, act = std::move(act)] {
      if (portion > 1) return before(text, portion - 1, act);
      acted_ = true;
      act();
    });
  }
  bool has_acted() const { return acted_; }

 private:
  test_server server_;
  short_folder saved_;
  proxy net_;
  std::atomic<bool> acted_ = false;
};

class RedisResend : public with_own_servers {};

const redis_params resent_params = sharded(integers(many, 0.01), 4);

TEST_F(RedisResend, KeysAcknowledgedBeforeACrashArePresentWhenTheCallReturns) {
  const auto keys = keys_from(0, many);
  for (const redis_params& wanted :
       {resent_params, sharded(growing(1000), 2), sharded(growing(20'000), 1), windowed(resent_params)}) {
    SCOPED_TRACE(wanted.growth == redis_growth::none ? (wanted.filter.has_window() ? "window" : "fixed") : "growing");
    crashing_server at;
    redis_filter f = redis_filter::create(at.through(), wanted);
    std::uint64_t acknowledged = 0;
    std::optional<std::uint64_t> left;
    at.remember();
    at.before_writes(8, [&] {
      acknowledged = found_at(at.direct(), keys);
      at.crash();
      left = found_at(at.direct(), keys);
    });
    std::vector<std::uint8_t> is_new(keys.size());

    const std::uint64_t count = f.insert(std::span<const std::uint64_t>(keys), is_new);

    ASSERT_TRUE(at.has_acted());
    EXPECT_GT(acknowledged, 500U) << "or there was nothing to lose";
    EXPECT_EQ(left, 0U) << "or nothing was lost";
    redis_filter g = redis_filter::open(at.direct());
    EXPECT_EQ(count_found(g, keys), keys.size());
    EXPECT_LE(g.info().rate_now, 0.01) << "layers are overfilled";
    EXPECT_GE(static_cast<double>(g.info().inserted), 0.98 * many) << "room was taken for fewer keys than are in";
    EXPECT_EQ(count, static_cast<std::uint64_t>(std::count(is_new.begin(), is_new.end(), 1)));
    EXPECT_LE(static_cast<double>(std::count(is_new.begin(), is_new.end(), 0)), most_hits(0.01, many))
        << "a key that was new when it was first inserted stays new";
    const redis_counters counted = f.counters();
    EXPECT_GE(counted.reconnects, 1U);
    EXPECT_EQ(counted.restarts_seen, 1U);
    EXPECT_GT(counted.resent_groups, 0U);
    EXPECT_GT(counted.exchanges, 3U);
  }
}

TEST_F(RedisResend, KeysOfEarlierStepsOfTheCallAreInsertedAgain) {
  const auto keys = keys_from(0, many);
  crashing_server at;
  redis_filter f = redis_filter::create(at.through(), sharded(integers(many, 0.01), 1));
  const std::string layer = at.server().shard("x", 0) + ":0";
  const std::int64_t bits = 8 * at.server().command({"STRLEN", layer}).integer();
  at.remember();
  // Half of the bits are set at the end, 38% after the first step.
  const std::function<void()> wait_and_crash = [&] {
    if (at.server().command({"BITCOUNT", layer}).integer() > bits * 42 / 100) return at.crash();
    at.before_writes(1, wait_and_crash);
  };
  at.before_writes(1, wait_and_crash);

  insert_all(f, keys);

  EXPECT_EQ(f.counters().restarts_seen, 1U);
  EXPECT_EQ(found_at(at.direct(), keys), keys.size());
}

TEST_F(RedisResend, ASecondCrashDuringTheRepetitionIsNoticed) {
  const auto keys = keys_from(0, many);
  crashing_server at;
  redis_filter f = redis_filter::create(at.through(), resent_params);
  at.remember();
  at.before_writes(8, [&] {
    at.crash();
    at.before_writes(140, [&] { at.crash(); });  // the first time takes about 100
  });

  insert_all(f, keys);

  EXPECT_EQ(found_at(at.direct(), keys), keys.size());
  EXPECT_EQ(f.counters().restarts_seen, 2U);
}

TEST_F(RedisResend, KeysArePresentInAReplacedFilterAndItsReplacement) {
  const auto keys = keys_from(0, many);
  for (const bool is_given_up : {false, true}) {
    SCOPED_TRACE(is_given_up);
    crashing_server at;
    redis_filter f = redis_filter::create(at.direct(), resent_params);
    redis_filter g = redis_filter::open(at.through());

    const auto thrown = code_of([&] {
      f.replace(sharded(integers(many, 0.01), 2), [&](redis_filter&) {
        at.remember();
        at.before_writes(8, [&] { at.crash(); });
        insert_all(g, keys);
        if (is_given_up) throw error(errc::io, {"given up", "", "", "", ""});
      });
    });

    ASSERT_TRUE(at.has_acted());
    EXPECT_EQ(thrown.has_value(), is_given_up);
    redis_filter h = redis_filter::open(at.direct());
    EXPECT_EQ(h.parameters().shards, is_given_up ? 4U : 2U);
    EXPECT_EQ(count_found(h, keys), keys.size());
  }
}

TEST_F(RedisResend, KeysOfAMergeDuringACrashArePresentInAllShards) {
  const auto keys = keys_from(0, many);
  crashing_server at;
  redis_filter f = redis_filter::create(at.through(), sharded(integers(many, 0.01), 8));
  any_filter local(f.parameters().filter);
  local.insert(std::span<const std::uint64_t>(keys));
  std::uint64_t acknowledged = 0;
  at.remember();
  at.before(redis::digest_of(redis::scripts::merge), 6, [&] {
    acknowledged = found_at(at.direct(), keys);
    at.crash();
  });

  f.merge(local);

  EXPECT_GT(acknowledged, many / 4) << "or there was nothing to lose";
  EXPECT_EQ(found_at(at.direct(), keys), keys.size());
}

// A crash takes the second layer away. What other clients do while a writer finds that out must cost it no key.
class crash_of_the_second_layer {
 public:
  crash_of_the_second_layer() : writer(redis_filter::create(at.through(), sharded(growing(1000), 1))) {
    std::uint64_t count = 0;
    for (; writer.info().layers == 1; count += 10) {
      at.remember();
      dumps_ = dumps();
      insert_all(writer, keys_from(count, 10));
    }
    insert_all(writer, keys_from(count, 100));
  }

  // As a crash, but without one.
  void restore_first_layer() {
    for (const auto& [key, dump] : dumps()) at.server().command({"DEL", key});
    for (const auto& [key, dump] : dumps_) at.server().command({"RESTORE", key, "0", dump});
  }

  // The last keys of the writer, and whether they are there.
  const std::vector<std::uint64_t> keys = keys_from(1'000'000, 100);
  void expect_that_keys_are_there() const { EXPECT_EQ(found_at(at.direct(), keys), keys.size()); }

  crashing_server at;
  redis_filter writer;

 private:
  std::map<std::string, std::string> dumps() {
    std::map<std::string, std::string> found;
    const auto names = at.server().command({"KEYS", "*"});
    for (std::size_t i = 0; i < names.reply().size(); ++i) {
      const std::string key(names.reply()[i].text());
      found[key] = at.server().command({"DUMP", key}).text();
    }
    return found;
  }

  std::map<std::string, std::string> dumps_;
};

// Not all clients see a crash: a proxy between them and the servers may keep their connections.
TEST_F(RedisResend, KeysArePresentIfAnotherClientCreatesTheLostLayer) {
  crash_of_the_second_layer now;
  now.at.before_writes(1, [&] {
    now.restore_first_layer();
    now.at.before("HGETALL", 1, [&] {  // by now the writer has found that its bits are in no layer
      redis_filter other = redis_filter::open(now.at.direct());
      EXPECT_EQ(other.info().layers, 1U);
      insert_all(other, keys_from(2'000'000, 100));
      EXPECT_EQ(other.info().layers, 2U);
    });
  });

  insert_all(now.writer, now.keys);

  ASSERT_TRUE(now.at.has_acted());
  EXPECT_EQ(now.writer.counters().restarts_seen, 0U);
  now.expect_that_keys_are_there();
}

TEST_F(RedisResend, ALayerThatComesBackWithItsVersionIsNotReportedAsLost) {
  crash_of_the_second_layer now;
  const std::string layer = now.at.server().shard("x", 0) + ":1";
  const std::string dump(now.at.server().command({"DUMP", layer}).text());
  now.at.before_writes(1, [&] {
    now.at.server().command({"DEL", layer});
    now.at.before("HGETALL", 1, [&] { now.at.server().command({"RESTORE", layer, "0", dump, "REPLACE"}); });
  });

  EXPECT_EQ(code_of([&] { insert_all(now.writer, now.keys); }), std::nullopt);

  ASSERT_TRUE(now.at.has_acted());
  now.expect_that_keys_are_there();
}

TEST_F(RedisResend, BitsInALostLayerDoNotKeepAnotherClientFromCreatingIt) {
  crash_of_the_second_layer now;
  redis_filter other = redis_filter::open(now.at.direct());
  EXPECT_EQ(count_found(other, keys_from(0, 10)), 10U);
  now.at.before_writes(1, [&] {
    now.at.crash();
    now.at.before(redis::digest_of(redis::scripts::sweep), 1,
                  [&] { EXPECT_EQ(code_of([&] { insert_all(other, keys_from(2'000'000, 100)); }), std::nullopt); });
  });

  insert_all(now.writer, now.keys);

  ASSERT_TRUE(now.at.has_acted());
  now.expect_that_keys_are_there();
  EXPECT_EQ(found_at(now.at.direct(), keys_from(2'000'000, 100)), 100U);
}

TEST_F(RedisResend, AServerThatDoesNotReturnIsAnError) {
  const auto keys = keys_from(0, many);
  crashing_server at;
  redis_filter f =
      redis_filter::create(at.through(), resent_params, {.connection = within(std::chrono::milliseconds(300))});
  at.before_writes(8, [&] { at.server().kill_hard(); });

  EXPECT_EQ(code_of([&] { insert_all(f, keys); }), errc::unavailable);
}

TEST_F(RedisResend, ACountingFilterReportsKeysInDoubtAndDoesNotInsertThemAgain) {
  const auto keys = keys_from(0, many);
  for (const bool crashes : {false, true}) {
    SCOPED_TRACE(crashes);
    std::vector<std::string> notes;
    crashing_server at;
    redis_filter f = redis_filter::create(at.through(), counting(sharded(integers(many, 0.001), 4)), noting(notes));
    insert_all(f, keys_from(1'000'000, 10));
    EXPECT_TRUE(notes.empty());
    at.remember();
    at.before_writes(8, [&] {
      if (crashes) return at.crash();
      at.net().instead_of_answer_to("BITFIELD", "");  // the server does it, and the connection is lost
    });

    insert_all(f, keys);

    EXPECT_EQ(f.counters().resent_groups, 0U);
    EXPECT_THAT(notes, Contains(HasSubstr("if its server crashed, it may have lost them")));
    redis_filter g = redis_filter::open(at.direct());
    if (crashes) {
      EXPECT_LT(count_found(g, keys), keys.size());
      continue;
    }
    EXPECT_EQ(count_found(g, keys), keys.size());
    ASSERT_THAT(notes, Contains(HasSubstr("keys were sent again, and may be counted twice")));
    const std::string& note = notes.front();
    const std::uint64_t twice = std::stoull(note.substr(note.find(": ") + 2));
    g.remove(std::span<const std::uint64_t>(keys));
    const std::uint64_t still = count_found(g, keys);
    EXPECT_GT(still, 0U) << "of the portion whose answer was lost";
    EXPECT_LE(static_cast<double>(still), static_cast<double>(twice) + most_hits(0.001, many));
    EXPECT_LT(twice, many / 2) << "what was answered was not sent again";
  }
}

TEST_F(RedisResend, ALostReplyMakesNewKeysUncertainAndNotOld) {
  const auto keys = keys_from(0, many);
  for (const redis_params& wanted : {sharded(integers(many, 0.001), 4), sharded(growing(many, 0.001), 2)}) {
    crashing_server at;
    redis_filter f = redis_filter::create(at.through(), wanted);
    insert_all(f, keys_from(0, 100));
    for (const int portion : {1, 8}) {
      f.clear();
      insert_all(f, keys_from(0, 100));
      at.before_writes(portion, [&] { at.net().instead_of_answer_to("BITFIELD", ""); });
      std::vector<std::uint8_t> is_new(keys.size());

      const std::uint64_t count = f.insert(std::span<const std::uint64_t>(keys), is_new);

      const auto answers = [&](std::uint8_t a) {
        return static_cast<std::uint64_t>(std::count(is_new.begin() + 100, is_new.end(), a));
      };
      EXPECT_GT(answers(maybe_new), 0U);
      EXPECT_LT(answers(maybe_new), many / 2);
      EXPECT_LE(static_cast<double>(answers(0)), most_hits(0.001, many)) << "keys that were new";
      EXPECT_EQ(static_cast<std::uint64_t>(std::count(is_new.begin(), is_new.begin() + 100, 1)), 0U);
      EXPECT_EQ(count, answers(1));
    }
  }
}

TEST_F(RedisResend, ACutNetworkIsNoRestartAndAUserWithoutInfoSeesNone) {
  crashing_server at({"user plain on >pw ~* &* +@all -info"});
  redis_filter::create(at.direct(), integers(1000, 0.01));
  redis_address plain = at.through();
  plain.user = "plain";
  plain.password = "pw";
  redis_filter f = redis_filter::open(at.through());
  redis_filter g = redis_filter::open(plain);
  const auto use = [&](std::uint64_t key) {
    for (redis_filter* const each : {&f, &g}) {
      each->insert(key);
      EXPECT_TRUE(each->may_contain(key));
    }
  };
  use(1);

  at.net().cut();
  use(2);
  EXPECT_EQ(f.counters().reconnects, 1U);
  EXPECT_EQ(f.counters().restarts_seen, 0U);
  EXPECT_EQ(g.counters().reconnects, 1U);

  at.server().kill_hard();
  at.server().restart();
  use(3);
  EXPECT_EQ(f.counters().restarts_seen, 1U);
  EXPECT_EQ(g.counters().restarts_seen, 0U) << "INFO is forbidden";
  EXPECT_GE(g.counters().reconnects, 2U);
}

// The replica has nothing of the call, for its master refuses its password; then it takes over.
TEST_F(RedisResend, KeysOfACrashedMasterAreInsertedIntoItsSuccessorInACluster) {
  const auto keys = keys_from(0, 150'000);
  test_cluster cluster;
  const redis_address address = cluster.address("x");
  redis_filter f = redis_filter::create(address, sharded(integers(keys.size(), 0.01), 16));
  const std::size_t described = cluster.owner(redis::slot_of("{x}:m"));
  const std::string shard = test_server::shard_of(cluster.node(described).command({"GET", "{x}:m"}).text(), 0);
  const std::size_t master = cluster.owner(redis::slot_of(shard));
  ASSERT_LT(master, 3U);
  test_server& replica = cluster.node(3 + master);
  wait_until("the replica has the empty filter", [&] {
    return replica.command({"DBSIZE"}).integer() == cluster.node(master).command({"DBSIZE"}).integer();
  });
  replica.command({"CONFIG", "SET", "masterauth", "wrong"});
  cluster.node(master).command({"CLIENT", "KILL", "TYPE", "replica"});
  wait_until("the replica is cut off", [&] {
    return replica.command({"INFO", "replication"}).text().find("master_link_status:down") != std::string::npos;
  });
  std::thread failover([&] {
    // A third of the shard's bits: keys of some of the ten steps were answered.
    wait_until("some keys are in", [&] {
      return cluster.node(master).command({"BITCOUNT", shard + ":0"}).integer() > 30'000;
    });
    cluster.node(master).kill_hard();
    replica.command({"CLUSTER", "FAILOVER", "TAKEOVER"});
  });

  insert_all(f, keys);

  failover.join();
  EXPECT_EQ(cluster.owner(redis::slot_of(shard)), 3 + master);
  EXPECT_EQ(found_at(address, keys), keys.size());
  EXPECT_GT(f.counters().resent_groups, 0U);
}

TEST_F(RedisResend, CountersReportGrowthAndChangesByOthers) {
  test_server server;
  redis_filter f = redis_filter::create(server.address("x"), sharded(growing(100), 1));
  redis_filter g = redis_filter::open(server.address("x"));
  insert_all(g, keys_from(0, 10));
  const std::uint64_t before = g.counters().description_changes;

  insert_all(f, keys_from(0, 3000));
  insert_all(g, keys_from(5000, 10));

  std::vector<redis_shard> shards;
  f.info(&shards);
  EXPECT_EQ(f.counters().growths, shards.front().layers.size() - 1);
  EXPECT_EQ(g.counters().growths, 0U);
  EXPECT_GT(g.counters().description_changes, before);
  EXPECT_EQ(f.counters().restarts_seen, 0U);
  EXPECT_EQ(f.counters().resent_groups, 0U);
  EXPECT_EQ(f.counters().redirects, 0U);
}

}  // namespace
}  // namespace bloomery
