// Replacement of a shared filter by several clients at once, some of which do not receive their replies.
#include <bloomery/any_filter.hpp>
#include <bloomery/error.hpp>
#include <bloomery/redis.hpp>

#include "redis/filter/replacement.hpp"
#include "redis/filter/scripts.hpp"
#include "redis/filters.hpp"
#include "redis/net/batch.hpp"
#include "redis/proxy.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

namespace bloomery {
namespace {

namespace scripts = redis::scripts;
using namespace bloomery_tests;
using redis::digest_of;
using std::chrono::milliseconds;

// ---- lost answers ---------------------------------------------------------------------------------------------------

TEST_F(RedisReplacement, WhoseAnswersAreLostIsDoneAllTheSame) {
  filled().clear();  // so that the server has all scripts loaded
  for (const redis::script* lost : {&scripts::announce, &scripts::replace, &scripts::mark, &scripts::create}) {
    SCOPED_TRACE(lost->source);
    proxy net(server->socket());
    redis_filter f = redis_filter::open(through(net));
    net.instead_of_answer_to(std::string(digest_of(*lost)), "");

    EXPECT_EQ(code_of([&] { f.replace(fixed(), [](redis_filter& fresh) { insert_all(fresh, old_keys()); }); }),
              std::nullopt);

    EXPECT_TRUE(net.has_acted());
    expect_the_old_one_alone();
  }
}

TEST_F(RedisReplacement, ThatIsInPlaceWhenTheCallFailsIsLeftThere) {
  redis_filter f = filled();
  f.clear();
  proxy net(server->socket());
  redis_options quick;
  quick.connection.time = milliseconds(300);
  redis_filter g = redis_filter::open(through(net), quick);
  net.instead_of_answer_to(std::string(digest_of(scripts::replace)), "-ERR the network made this up\r\n");

  EXPECT_EQ(code_of([&] { g.replace(fixed(), [](redis_filter& fresh) { insert_all(fresh, old_keys()); }); }),
            std::nullopt)
      << "the description says that it is in place";

  EXPECT_TRUE(net.has_acted());
  expect_the_old_one_alone();
  EXPECT_EQ(count_found(f, old_keys()), old_keys().size());
}

TEST_F(RedisReplacement, ThatMayBeInPlaceIsNotTakenAway) {
  filled().clear();
  proxy net(server->socket());
  redis_filter f = redis_filter::open(through(net));
  net.instead_of_answer_to(std::string(digest_of(scripts::replace)), "-ERR the network made this up\r\n", [&] {
    net.instead_of_answer_to("{x}:m2", "-ERR and this, when it was asked what there is\r\n$-1\r\n");
  });

  EXPECT_TRUE(code_of([&] { f.replace(fixed(), [](redis_filter& fresh) { insert_all(fresh, old_keys()); }); }));

  EXPECT_TRUE(net.has_acted());
  redis_filter now = redis_filter::open(at("x"));
  EXPECT_EQ(count_found(now, old_keys()), old_keys().size());
  EXPECT_EQ(count_found(f, old_keys()), old_keys().size());
}

TEST_F(RedisReplacement, ADropWhoseAnswerIsLostIsDone) {
  filled().drop();
  filled();
  proxy net(server->socket());
  redis_filter f = redis_filter::open(through(net));
  net.instead_of_answer_to(std::string(digest_of(scripts::drop)), "");

  f.drop();

  EXPECT_TRUE(net.has_acted());
  EXPECT_EQ(keys_there(), 0u);
}

TEST_F(RedisReplacement, AnExpiryThatSomebodyElseSetMeanwhileIsNotOurs) {
  redis_filter f = filled();
  proxy net(server->socket());
  redis_filter g = redis_filter::open(through(net));
  net.before(std::string(digest_of(scripts::exchange)), [&] {
    f.expire(milliseconds(500'000));
    server->command({"SCRIPT", "FLUSH"});  // so that it runs again, without a failed connection
  });

  EXPECT_EQ(code_of([&] { g.expire(milliseconds(900'000)); }), errc::locked);
  EXPECT_TRUE(net.has_acted());
  EXPECT_LE(server->command({"PTTL", "{x}:m"}).integer(), 500'000);

  net.instead_of_answer_to(std::string(digest_of(scripts::exchange)), "");
  g.expire(milliseconds(900'000));
  EXPECT_TRUE(net.has_acted());
  EXPECT_GT(server->command({"PTTL", "{x}:m"}).integer(), 500'000);
}

// ---- two replacements at once ---------------------------------------------------------------------------------------

TEST_F(RedisReplacement, OfTwoAtOnceTheLaterWinsAndNothingOfItGoes) {
  redis_filter f = filled();
  redis_filter g = redis_filter::open(at("x"));
  std::optional<errc> while_filling;

  const auto code = code_of([&] {
    f.replace(fixed(), [&](redis_filter& fresh) {
      g.replace(fixed(), [](redis_filter& other) { insert_all(other, old_keys()); });
      while_filling = code_of([&] { insert_all(fresh, keys_from(9000, 200)); });
    });
  });

  EXPECT_EQ(while_filling, errc::locked) << "it must not write into the other";
  EXPECT_EQ(code, errc::locked);
  expect_the_old_one_alone();
  EXPECT_EQ(count_found(f, old_keys()), old_keys().size());
  EXPECT_LT(count_found(g, keys_from(9000, 200)), 20u);
}

TEST_F(RedisReplacement, OfTwoThatFailNeitherTakesTheOldOneAway) {
  redis_filter f = filled();
  redis_filter g = redis_filter::open(at("x"));

  const auto code = code_of([&] {
    f.replace(fixed(), [&](redis_filter& fresh) {
      EXPECT_THROW(g.replace(fixed(), [](redis_filter&) { throw std::runtime_error("no database"); }),
                   std::runtime_error);
      insert_all(fresh, keys_from(9000, 200));
    });
  });

  EXPECT_EQ(code, errc::locked);
  expect_the_old_one_alone();
}

TEST_F(RedisReplacement, ThatTookItsPlaceMeanwhileIsNotGivenUpForAnother) {
  redis_filter f = filled();
  std::promise<void> begun;
  std::promise<void> go_on;
  std::future<void> first = std::async(std::launch::async, [&] {
    f.replace(fixed(), [&](redis_filter& fresh) {
      insert_all(fresh, old_keys());
      begun.set_value();
      go_on.get_future().wait();
    });
  });
  begun.get_future().wait();
  proxy net(server->socket());
  redis_filter g = redis_filter::open(through(net));
  // It saw the first replacement in progress, and creates its own shards.
  net.before(std::string(digest_of(scripts::create)), [&] {
    go_on.set_value();
    first.wait();
  });

  EXPECT_EQ(code_of([&] { g.replace(fixed(), [](redis_filter&) {}); }), errc::locked);

  first.get();
  EXPECT_TRUE(net.has_acted());
  expect_the_old_one_alone();
}

// The later replacement has begun when the earlier one gives up without noticing it: the marks of the later one stay.
TEST_F(RedisReplacement, ThatIsGivenUpLeavesTheMarksOfALaterOne) {
  redis_filter f = filled();
  redis_filter g = redis_filter::open(at("x"));
  redis_filter writer = redis_filter::open(at("x"));
  proxy net(server->socket());
  redis_filter h = redis_filter::open(through(net));
  std::promise<void> begun;
  std::promise<void> go_on;
  std::future<void> later;
  EXPECT_THROW(h.replace(fixed(),
                         [&](redis_filter&) {
                           // It is withdrawn before its first mark is removed.
                           net.before(std::string(digest_of(scripts::mark)), [&] {
                             later = std::async(std::launch::async, [&] {
                               g.replace(fixed(), [&](redis_filter& fresh) {
                                 begun.set_value();
                                 go_on.get_future().wait();
                                 insert_all(fresh, old_keys());
                               });
                             });
                             begun.get_future().wait();
                           });
                           throw std::runtime_error("no database");
                         }),
               std::runtime_error);
  insert_all(writer, keys_from(9000, 200));
  go_on.set_value();
  later.get();

  EXPECT_TRUE(net.has_acted());
  EXPECT_EQ(count_found(f, keys_from(9000, 200)), 200u);
  EXPECT_EQ(count_found(f, old_keys()), old_keys().size());
}

// ---- while the next filter is filled --------------------------------------------------------------------------------

TEST_F(RedisReplacement, ThatLosesItsShardsNeverTurnsToTheFilterThatIsUsed) {
  for (const bool announced : {true, false}) {
    server->command({"FLUSHALL"});
    redis_filter f = filled();
    std::optional<errc> inserted;

    const auto code = code_of([&] {
      f.replace(fixed(), [&](redis_filter& fresh) {
        unlink_all(coming_shards());
        if (!announced) server->command({"DEL", "{x}:n"});
        inserted = code_of([&] { insert_all(fresh, keys_from(9000, 200)); });
        throw error(errc::io, {"no database", "", "", "", ""});
      });
    });

    EXPECT_EQ(inserted, announced ? errc::damaged : errc::locked);
    EXPECT_EQ(code, errc::io);
    EXPECT_LT(count_found(f, keys_from(9000, 200)), 20u);
    expect_the_old_one_alone();
  }
}

TEST_F(RedisReplacement, IsFilledByAMergeAndNotTheFilterThatIsUsed) {
  redis_filter f = filled();

  f.replace(fixed(), [&](redis_filter& fresh) {
    any_filter local(fresh.parameters().filter);
    const auto keys = keys_from(9000, 200);
    local.insert(std::span<const std::uint64_t>(keys));
    fresh.merge(local);
    EXPECT_LT(count_found(f, keys), 20u);
    EXPECT_EQ(count_found(fresh, keys), 200u);
    EXPECT_LT(count_found(fresh, old_keys()), 50u);
    EXPECT_NEAR(fresh.card().value, 200, 20);
  });

  EXPECT_EQ(count_found(f, keys_from(9000, 200)), 200u);
  EXPECT_LT(count_found(f, old_keys()), 50u);
}

TEST_F(RedisReplacement, IsNotReplacedOrDroppedByWhoFillsIt) {
  redis_filter f = filled();
  const auto nothing = [](redis_filter&) {};

  f.replace(fixed(), [&](redis_filter& fresh) {
    EXPECT_EQ(code_of([&] { fresh.clear(); }), errc::locked);
    EXPECT_EQ(code_of([&] { fresh.drop(); }), errc::locked);
    EXPECT_EQ(code_of([&] { fresh.expire(milliseconds(10)); }), errc::locked);
    EXPECT_EQ(code_of([&] { f.replace(fixed(), nothing); }), errc::locked);
    insert_all(fresh, old_keys());
  });

  expect_the_old_one_alone();
}

TEST_F(RedisReplacement, ThatIsTakenAwayByWhoFillsItIsAnError) {
  redis_filter f = filled();
  std::unique_ptr<redis_filter> taken;

  EXPECT_EQ(code_of([&] {
              f.replace(fixed(),
                        [&](redis_filter& fresh) { taken = std::make_unique<redis_filter>(std::move(fresh)); });
            }),
            errc::invalid_argument);
  expect_the_old_one_alone();
  EXPECT_TRUE(code_of([&] { taken->insert(std::uint64_t{1}); }));
  EXPECT_EQ(code_of([&] { f.replace(fixed(), [](redis_filter& fresh) { fresh = redis_filter::open(at("x")); }); }),
            errc::invalid_argument);
  expect_the_old_one_alone();
}

TEST_F(RedisReplacement, DoesNotUndoADropNorOverwriteWhatWasMadeSince) {
  redis_filter f = filled();
  EXPECT_EQ(code_of([&] { f.replace(fixed(), [](redis_filter&) { redis_filter::open(at("x")).drop(); }); }),
            errc::not_found);
  EXPECT_EQ(keys_there(), 0u);

  f = filled();
  std::size_t after_drop = 1;
  EXPECT_EQ(code_of([&] {
              f.replace(fixed(), [&](redis_filter&) {
                redis_filter::open(at("x")).drop();
                after_drop = keys_there();
                filled();
              });
            }),
            errc::locked);
  EXPECT_EQ(after_drop, 0u) << "also what is to come";
  expect_the_old_one_alone();

  f = redis_filter::open(at("x"));
  EXPECT_EQ(code_of([&] {
              f.replace(fixed(), [&](redis_filter&) {
                server->command({"DEL", "{x}:m", "{x}:m2"});
                redis_filter::drop(at("x"));  // finds only the shards
                filled();
              });
            }),
            errc::locked);
  expect_the_old_one_alone();
}

TEST_F(RedisReplacement, OfAFilterWithoutAHeaderTakesAllThatIsInsertedMeanwhile) {
  redis_params window = fixed();
  window.filter.extra = window_of_milliseconds(600'000'000);
  for (const redis_params& wanted : {fixed(), window}) {
    server->command({"FLUSHALL"});
    redis_filter f = redis_filter::create(at("x"), wanted);
    redis_filter writer = redis_filter::open(at("x"));
    insert_all(f, old_keys());
    insert_all(writer, old_keys());  // it has the shard versions
    server->command({"DEL", server->shard("x", 0) + ":h", server->shard("x", 1) + ":h"});
    std::optional<errc> refused;

    f.replace(wanted, [&](redis_filter& fresh) {
      insert_all(fresh, old_keys());
      refused = code_of([&] { insert_all(writer, keys_from(9000, 200)); });
    });

    EXPECT_EQ(refused, errc::damaged) << "the new filter would not have what was acknowledged";
    expect_the_old_one_alone();
  }
}

}  // namespace
}  // namespace bloomery
