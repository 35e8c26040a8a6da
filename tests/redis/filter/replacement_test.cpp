// Replacement of a shared filter by several clients at once, some of which do not receive their replies.
#include "redis/filter/replacement.hpp"
#include "redis/filter/scripts.hpp"
#include "redis/fixtures.hpp"
#include "redis/net/batch.hpp"

#include <future>

namespace bloomery {
namespace {

namespace scripts = redis::scripts;
using namespace bloomery_tests;
using redis::digest_of;
using std::chrono::milliseconds;

// ---- lost answers ---------------------------------------------------------------------------------------------------

TEST_F(RedisReplacement, SucceedsIfAReplyIsLost) {
  filled().clear();  // so that the server has all scripts loaded
  for (const redis::script* lost : {&scripts::announce, &scripts::replace, &scripts::mark, &scripts::create}) {
    SCOPED_TRACE(lost->source);
    proxy net(server->socket());
    redis_filter f = redis_filter::open(net.address());
    net.instead_of_answer_to(std::string(digest_of(*lost)), "");

    EXPECT_EQ(code_of([&] { f.replace(fixed(), fill_with_old_keys); }), std::nullopt);

    EXPECT_TRUE(net.has_acted());
    expect_the_old_one_alone();
  }
}

TEST_F(RedisReplacement, SucceedsIfItsLastReplyIsAnErrorButTheFilterIsInPlace) {
  redis_filter f = filled();
  f.clear();
  proxy net(server->socket());
  redis_filter g = redis_filter::open(net.address(), {.connection = within(milliseconds(300))});
  net.instead_of_answer_to(std::string(digest_of(scripts::replace)), "-ERR the network made this up\r\n");

  EXPECT_EQ(code_of([&] { g.replace(fixed(), fill_with_old_keys); }), std::nullopt)
      << "the description says that it is in place";

  EXPECT_TRUE(net.has_acted());
  expect_the_old_one_alone();
  EXPECT_EQ(count_found(f, old_keys()), old_keys().size());
}

TEST_F(RedisReplacement, LeavesANewFilterThatMayBeInPlace) {
  filled().clear();
  proxy net(server->socket());
  redis_filter f = redis_filter::open(net.address());
  net.instead_of_answer_to(std::string(digest_of(scripts::replace)), "-ERR the network made this up\r\n", [&] {
    net.instead_of_answer_to("{x}:m2", "-ERR and this, when it was asked what there is\r\n$-1\r\n");
  });

  EXPECT_TRUE(code_of([&] { f.replace(fixed(), fill_with_old_keys); }));

  EXPECT_TRUE(net.has_acted());
  EXPECT_EQ(found_at(at("x"), old_keys()), old_keys().size());
  EXPECT_EQ(count_found(f, old_keys()), old_keys().size());
}

TEST_F(RedisReplacement, ADropSucceedsIfItsReplyIsLost) {
  filled().drop();
  filled();
  proxy net(server->socket());
  redis_filter f = redis_filter::open(net.address());
  net.instead_of_answer_to(std::string(digest_of(scripts::drop)), "");

  f.drop();

  EXPECT_TRUE(net.has_acted());
  EXPECT_EQ(names().size(), 0u);
}

TEST_F(RedisReplacement, AnExpirySetByAnotherClientMeanwhileIsLeft) {
  redis_filter f = filled();
  proxy net(server->socket());
  redis_filter g = redis_filter::open(net.address());
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

TEST_F(RedisReplacement, TheLaterOfTwoWinsAndLosesNothing) {
  redis_filter f = filled();
  redis_filter g = redis_filter::open(at("x"));
  std::optional<errc> while_filling;

  const auto code = code_of([&] {
    f.replace(fixed(), [&](redis_filter& fresh) {
      g.replace(fixed(), fill_with_old_keys);
      while_filling = code_of([&] { insert_all(fresh, keys_from(9000, 200)); });
    });
  });

  EXPECT_EQ(while_filling, errc::locked) << "it must not write into the other";
  EXPECT_EQ(code, errc::locked);
  expect_the_old_one_alone();
  EXPECT_EQ(count_found(f, old_keys()), old_keys().size());
  EXPECT_LT(count_found(g, keys_from(9000, 200)), 20u);
}

TEST_F(RedisReplacement, TheOldFilterStaysIfTwoReplacementsFail) {
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

TEST_F(RedisReplacement, DoesNotUndoAReplacementThatEndedMeanwhile) {
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
  redis_filter g = redis_filter::open(net.address());
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
TEST_F(RedisReplacement, LeavesTheMarksOfALaterReplacementWhenGivenUp) {
  redis_filter f = filled();
  redis_filter g = redis_filter::open(at("x"));
  redis_filter writer = redis_filter::open(at("x"));
  proxy net(server->socket());
  redis_filter h = redis_filter::open(net.address());
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

TEST_F(RedisReplacement, DoesNotFillTheOldFilterIfItsShardsAreLost) {
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

TEST_F(RedisReplacement, CanBeFilledByAMerge) {
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

TEST_F(RedisReplacement, IsNotReplacedOrDroppedByTheCallThatFillsIt) {
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

TEST_F(RedisReplacement, IsAnErrorIfTheFilterIsMovedAwayWhileItIsFilled) {
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

TEST_F(RedisReplacement, DoesNotUndoADropOrOverwriteANewerFilter) {
  redis_filter f = filled();
  EXPECT_EQ(code_of([&] { f.replace(fixed(), [](redis_filter&) { redis_filter::open(at("x")).drop(); }); }),
            errc::not_found);
  EXPECT_EQ(names().size(), 0u);

  f = filled();
  std::size_t after_drop = 1;
  EXPECT_EQ(code_of([&] {
              f.replace(fixed(), [&](redis_filter&) {
                redis_filter::open(at("x")).drop();
                after_drop = names().size();
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

TEST_F(RedisReplacement, RefusesInsertsIntoAFilterWithoutHeaders) {
  redis_params window = windowed(fixed(), milliseconds(600'000'000));
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
