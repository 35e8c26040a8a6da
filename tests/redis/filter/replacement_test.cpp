// A shared filter that is replaced, dropped and made again, by several clients at once, some of which die or do not
// hear their answers. The model is what was acknowledged, and which keys may be on the server.
#include <bloomery/any_filter.hpp>
#include <bloomery/error.hpp>
#include <bloomery/hash.hpp>
#include <bloomery/redis.hpp>

#include "redis/filter/scripts.hpp"
#include "redis/filters.hpp"
#include "redis/fixtures.hpp"
#include "redis/net/batch.hpp"
#include "redis/proxy.hpp"
#include "redis/servers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace bloomery {
namespace {

using namespace bloomery_tests;
using redis::digest_of;
using std::chrono::milliseconds;
namespace scripts = redis::scripts;

class RedisReplacement : public on_a_server<RedisReplacement> {
 protected:
  static redis_address through(const proxy& net) {
    redis_address a = at("x");
    a.socket.clear();
    a.endpoints = {{"127.0.0.1", net.port()}};
    return a;
  }

  static redis_params fixed() {
    redis_params p = integers(1000, 0.01);
    p.shards = 2;
    return p;
  }

  static redis_filter filled() {
    redis_filter f = redis_filter::create(at("x"), fixed());
    insert_all(f, old_keys());
    return f;
  }

  static std::vector<std::uint64_t> old_keys() { return keys_from(0, 500); }

  // Keys of shards; of this filter alone there are four, and two descriptions.
  static std::size_t keys_there(const std::string& pattern = "*") {
    return server->command({"KEYS", pattern}).reply().size();
  }

  static void unlink_all(const std::string& pattern) {
    const auto all = server->command({"KEYS", pattern});
    for (std::size_t i = 0; i < all.reply().size(); ++i) server->command({"DEL", all.reply()[i].text()});
  }

  // The shards of what is coming, as its description says.
  static std::string coming_shards() {
    const std::string zero = test_server::shard_of(server->command({"GET", "{x}:n"}).text(), 0);
    return zero.substr(0, zero.size() - 2) + "*";
  }

  static void expect_the_old_one_alone() {
    redis_filter now = redis_filter::open(at("x"));
    EXPECT_EQ(count_found(now, old_keys()), old_keys().size());
    EXPECT_EQ(keys_there(), 6u);
    EXPECT_EQ(server->command({"EXISTS", "{x}:n"}).integer(), 0);
  }

  // Somebody begins to replace it, and dies.
  static void die_while_replacing(const redis_params& wanted) {
    const pid_t child = ::fork();
    if (child == 0) {
      try {
        redis_filter::open(at("x")).replace(wanted, [](redis_filter&) { ::_exit(0); });
      } catch (...) {
      }
      ::_exit(1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
  }
};

// ---- answers that are lost
// -------------------------------------------------------------------------------------------

TEST_F(RedisReplacement, WhoseAnswersAreLostIsDoneAllTheSame) {
  filled().clear();  // so that the server has all scripts
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
    server->command({"SCRIPT", "FLUSH"});  // so that it runs again, for no fault of the connection
  });

  EXPECT_EQ(code_of([&] { g.expire(milliseconds(900'000)); }), errc::locked);
  EXPECT_TRUE(net.has_acted());
  EXPECT_LE(server->command({"PTTL", "{x}:m"}).integer(), 500'000);

  net.instead_of_answer_to(std::string(digest_of(scripts::exchange)), "");
  g.expire(milliseconds(900'000));
  EXPECT_TRUE(net.has_acted());
  EXPECT_GT(server->command({"PTTL", "{x}:m"}).integer(), 500'000);
}

// ---- two replace it at once
// -------------------------------------------------------------------------------------------

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
  // It has seen the first one on its way, and makes its own shards.
  net.before(std::string(digest_of(scripts::create)), [&] {
    go_on.set_value();
    first.wait();
  });

  EXPECT_EQ(code_of([&] { g.replace(fixed(), [](redis_filter&) {}); }), errc::locked);

  first.get();
  EXPECT_TRUE(net.has_acted());
  expect_the_old_one_alone();
}

// The later one has begun when the earlier one, which does not know, gives up: the marks of the later one stay.
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
                           // It is withdrawn already when the first mark is to be taken away.
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

// ---- what happens while it is filled
// -----------------------------------------------------------------------------------

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
  const std::string gone = server->shard("x", 0);
  EXPECT_EQ(code_of([&] {
              f.replace(fixed(), [&](redis_filter&) {
                server->command({"DEL", "{x}:m", "{x}:m2"});
                filled();
              });
            }),
            errc::locked);
  unlink_all(gone.substr(0, gone.size() - 2) + "*");
  expect_the_old_one_alone();
}

TEST_F(RedisReplacement, OfAFilterWithoutAHeaderTakesAllThatIsInsertedMeanwhile) {
  redis_params window = fixed();
  window.filter.window_milliseconds = 600'000'000;
  for (const redis_params& wanted : {fixed(), window}) {
    server->command({"FLUSHALL"});
    redis_filter f = redis_filter::create(at("x"), wanted);
    redis_filter writer = redis_filter::open(at("x"));
    insert_all(f, old_keys());
    insert_all(writer, old_keys());  // it knows the stamps
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

// ---- those that were interrupted
// ---------------------------------------------------------------------------------------

TEST_F(RedisReplacement, ThatWasInterruptedAndLostItsShardsIsNoBurden) {
  filled();
  die_while_replacing(fixed());
  EXPECT_EQ(keys_there(), 6u + 4u + 1u);
  redis_filter writer = redis_filter::open(at("x"));
  insert_all(writer, keys_from(9000, 10));
  unlink_all(coming_shards());

  redis_filter reader = redis_filter::open(at("x"));
  EXPECT_LT(count_found(reader, keys_from(5000, 200)), 20u);
  insert_all(writer, keys_from(9000, 200));

  EXPECT_EQ(count_found(reader, keys_from(9000, 200)), 200u);
  expect_the_old_one_alone();
  const std::string zero = server->shard("x", 0) + ":h";
  EXPECT_EQ(server->command({"HGET", zero, "next"}).text(), "");
  const auto clients = server->command({"INFO", "clients"}).text();
  EXPECT_LT(std::stoi(clients.substr(clients.find("connected_clients:") + 18)), 10) << clients;
}

TEST_F(RedisReplacement, ThatWasToExpireIsForgottenWhenItHas) {
  filled();
  redis_params wanted = fixed();
  wanted.expires_in = milliseconds(100'000);
  die_while_replacing(wanted);
  const std::int64_t left = server->command({"PTTL", "{x}:n"}).integer();
  EXPECT_GT(left, 0);
  EXPECT_LE(left, 100'000);

  unlink_all(coming_shards());
  server->command({"DEL", "{x}:n"});
  redis_filter f = redis_filter::open(at("x"));
  insert_all(f, keys_from(9000, 200));
  EXPECT_EQ(count_found(f, keys_from(9000, 200)), 200u);
  expect_the_old_one_alone();
}

TEST_F(RedisReplacement, ALookUpThatMeetsBothFiltersAsksTheNewOneForAllItsKeys) {
  const auto key_of_shard = [](std::uint64_t shard) {
    std::uint64_t key = 1'000'000;
    while (multiply_high(mix{}(key).hash64, 2) != shard) ++key;
    return key;
  };
  const std::uint64_t keys[] = {key_of_shard(0), key_of_shard(1)};
  proxy of_reader(server->socket()), of_replacer(server->socket());
  redis_filter f = redis_filter::create(through(of_replacer), fixed());
  redis_filter reader = redis_filter::open(through(of_reader));
  std::atomic<bool> between = false, gone = false;
  std::uint64_t there = 0;
  std::thread asking;
  f.replace(fixed(), [&](redis_filter&) {
    EXPECT_FALSE(reader.may_contain(keys[0]));  // it knows the mark of this shard now, and not of the other
    of_replacer.before("UNLINK", [&] {          // the new one is in place, the old one still there
      redis_filter::open(at("x")).insert(keys[0]);
      of_reader.before("HGETALL", [&] {
        of_reader.before("GETRANGE", [&] {
          between = true;
          while (!gone) std::this_thread::sleep_for(milliseconds(1));
        });
      });
      asking = std::thread([&] {
        reader.may_contain(keys, std::span(&there, 1));
        between = true;
      });
      while (!between) std::this_thread::sleep_for(milliseconds(1));
    });
  });
  gone = true;
  asking.join();

  EXPECT_EQ(there, 1u);
}

TEST_F(RedisReplacement, ThatWasGivenUpHalfwayIsNoBarToAMerge) {
  redis_filter f = filled();
  die_while_replacing(fixed());
  any_filter more = f.pull();
  more.insert(std::uint64_t{1'000'000});

  EXPECT_EQ(code_of([&] { f.merge(more); }), errc::locked) << "who fills it may be at it still";
  server->command({"DEL", "{x}:n"});  // as who gives it up does before the marks go
  f.merge(more);

  EXPECT_TRUE(redis_filter::open(at("x")).may_contain(std::uint64_t{1'000'000}));
}

TEST_F(RedisReplacement, ThatWasInterruptedIsTakenAwayByTheNext) {
  redis_filter f = filled();
  die_while_replacing(fixed());
  std::vector<std::string> notes;
  redis_options options;
  options.notes = [&](const std::string& note) { notes.push_back(note); };

  redis_filter::open(at("x"), options).replace(fixed(), [](redis_filter& fresh) { insert_all(fresh, old_keys()); });

  expect_the_old_one_alone();
  EXPECT_THAT(notes, testing::ElementsAre(testing::HasSubstr("interrupted")));
}

// ---- names
// -------------------------------------------------------------------------------------------------------------

TEST_F(RedisReplacement, AnOldHandleWritesNothingIntoTheNextFilterOfTheName) {
  redis_params counting = fixed();
  counting.filter.layout = "counting";
  redis_params large = fixed();
  large.filter.capacity = 40'000;
  for (const redis_params& before : {counting, large}) {
    server->command({"FLUSHALL"});
    redis_filter old = redis_filter::create(at("x"), before);
    insert_all(old, keys_from(70'000, 10));
    redis_filter::open(at("x")).drop();
    filled();
    const std::int64_t length = server->command({"STRLEN", server->shard("x", 0) + ":0"}).integer();

    insert_all(old, keys_from(80'000, 200));

    EXPECT_EQ(server->command({"STRLEN", server->shard("x", 0) + ":0"}).integer(), length);
    expect_the_old_one_alone();
    redis_filter now = redis_filter::open(at("x"));
    EXPECT_EQ(count_found(now, keys_from(80'000, 200)), 200u);
  }
}

TEST_F(RedisReplacement, WhatADropLeftBehindIsInNobodysWay) {
  filled();
  server->command({"DEL", "{x}:m", "{x}:m2"});  // as who dies right then

  redis_filter f = filled();

  EXPECT_EQ(count_found(f, old_keys()), old_keys().size());
  EXPECT_EQ(keys_there(), 6u + 4u);
  f.drop();
  EXPECT_EQ(keys_there(), 4u);
}

TEST_F(RedisReplacement, ADescriptionThatNamesShardsOfAnotherFilterIsDamaged) {
  filled();
  server->command({"SET", "{evil}:m", server->command({"GET", "{x}:m"}).text()});
  redis_filter::create(at("good"), fixed());
  server->command({"SET", "{good}:n", server->command({"GET", "{x}:m"}).text()});

  EXPECT_EQ(code_of([&] { redis_filter::open(at("evil")).drop(); }), errc::damaged);
  redis_filter::open(at("good")).clear();
  redis_filter::open(at("good")).drop();

  server->command({"DEL", "{evil}:m"});
  expect_the_old_one_alone();
}

TEST_F(RedisReplacement, AFilterThatCannotBeMadeLeavesNothing) {
  server->command({"ACL", "SETUSER", "limited", "reset", "on", "nopass", "~*", "+@all", "-setrange"});
  redis_address a = at("x");
  a.user = "limited";
  a.password = "any";

  EXPECT_TRUE(code_of([&] { redis_filter::create(a, fixed()); }));

  EXPECT_EQ(keys_there(), 0u);
}

// ---- times, and what is left over ----------------------------------------------------------------------------------

TEST_F(RedisReplacement, AnExpiryThatNoClockReachesIsRefused) {
  redis_filter f = filled();
  for (const std::int64_t time :
       {std::numeric_limits<std::int64_t>::max() - 5, (std::int64_t{1} << 53) + 1, std::int64_t{0}, std::int64_t{-1}}) {
    redis_params wanted = fixed();
    wanted.expires_in = milliseconds(time);
    EXPECT_EQ(code_of([&] { f.expire(milliseconds(time)); }), errc::invalid_argument);
    EXPECT_EQ(code_of([&] { f.replace(wanted, [](redis_filter&) {}); }), errc::invalid_argument);
    EXPECT_EQ(code_of([&] { redis_filter::create(at("y"), wanted); }), errc::invalid_argument);
  }
  expect_the_old_one_alone();

  f.expire(milliseconds(std::int64_t{1} << 53));
  expect_the_old_one_alone();
  EXPECT_GT(server->command({"PTTL", "{x}:m"}).integer(), std::int64_t{1} << 52);
}

TEST_F(RedisReplacement, AClockThatIsUnreadableIsDamaged) {
  filled();
  for (const char* time : {"*2\r\n$1\r\nx\r\n$1\r\n0\r\n", "*2\r\n$20\r\n99999999999999999999\r\n$1\r\n0\r\n",
                           "*2\r\n$18\r\n999999999999999999\r\n$1\r\n0\r\n", "*2\r\n$1\r\n5\r\n$0\r\n\r\n", "*0\r\n",
                           "*2\r\n$2\r\n-5\r\n$1\r\n0\r\n", ":1\r\n"}) {
    SCOPED_TRACE(time);
    proxy net(server->socket());
    redis_filter f = redis_filter::open(through(net));
    net.instead_of_answer_to("TIME", time);

    EXPECT_EQ(code_of([&] { f.expire(milliseconds(60'000)); }), errc::damaged);
    EXPECT_TRUE(net.has_acted());
  }
}

TEST_F(RedisReplacement, WhoseRemainsCannotBeRemovedIsDone) {
  filled();
  server->command({"ACL", "SETUSER", "limited", "reset", "on", "nopass", "~*", "+@all", "-unlink"});
  redis_address a = at("x");
  a.user = "limited";
  a.password = "any";
  std::vector<std::string> notes;
  redis_options options;
  options.notes = [&](const std::string& note) { notes.push_back(note); };
  redis_filter f = redis_filter::open(a, options);

  f.replace(fixed(), [](redis_filter& fresh) { insert_all(fresh, keys_from(9000, 200)); });

  EXPECT_EQ(count_found(f, keys_from(9000, 200)), 200u);
  EXPECT_THAT(notes, testing::ElementsAre(testing::HasSubstr("are left")));
  redis_filter now = redis_filter::open(at("x"));
  EXPECT_EQ(count_found(now, keys_from(9000, 200)), 200u);
}

TEST_F(RedisReplacement, OnTooFewReplicasLeavesTheShardsOfTheOneBefore) {
  test_server replica;
  test_server master({.tcp = true, .config = {"repl-diskless-sync-delay 0"}});
  replica.command({"REPLICAOF", "127.0.0.1", std::to_string(master.port())});
  wait_until("the replica follows", [&] {
    return replica.command({"INFO", "replication"}).text().find("master_link_status:up") != std::string::npos;
  });
  redis_options safe;
  safe.wait_replicas = 1;
  safe.connection.time = milliseconds(300);
  std::vector<std::string> notes;
  safe.notes = [&](const std::string& note) { notes.push_back(note); };
  redis_filter f = redis_filter::create(master.address("x"), fixed(), safe);
  insist([&] { insert_all(f, old_keys()); });  // a replica that has just come takes a second to say what it has
  const std::string before = master.shard("x", 0);

  replica.freeze();
  f.clear();
  replica.thaw();

  EXPECT_NE(master.shard("x", 0), before);
  EXPECT_EQ(master.command({"EXISTS", before + ":h", before + ":0"}).integer(), 2)
      << "the replica's description still names it";
  EXPECT_THAT(notes, testing::ElementsAre(testing::HasSubstr("replicas")));
  redis_options patient;
  patient.wait_replicas = 1;
  redis_filter::open(master.address("x"), patient).clear();
  EXPECT_EQ(master.command({"DBSIZE"}).integer(), 6 + 4);
}

}  // namespace
}  // namespace bloomery
