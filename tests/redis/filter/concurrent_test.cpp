// concurrent_redis_filter: the same answers as for one thread, errors for the affected calls only, and time limits.
#include <bloomery/redis/concurrent.hpp>

#include "redis/fixtures.hpp"

namespace bloomery {
namespace {

using namespace bloomery_tests;
using std::chrono::milliseconds;

class RedisConcurrent : public on_a_server<RedisConcurrent> {};

TEST_F(RedisConcurrent, AnswersOfManyThreadsAreThoseOfOne) {
  constexpr std::uint64_t threads = 16;
  constexpr std::uint64_t of_thread = 400;
  concurrent_redis_filter f(redis_filter::create(at("x"), integers(20'000, 0.001)));
  std::atomic<std::uint64_t> new_keys = 0;
  in_threads(threads, [&](std::uint64_t t) {
    for (std::uint64_t i = 0; i < of_thread; ++i) {
      new_keys += f.insert(t * of_thread + i) ? 1u : 0u;
      EXPECT_TRUE(f.may_contain(t * of_thread + i));
    }
  });

  redis_filter one = redis_filter::open(at("x"));
  const std::uint64_t all = threads * of_thread;
  EXPECT_EQ(count_found(one, keys_from(0, all)), all);
  EXPECT_GE(static_cast<double>(new_keys), static_cast<double>(all) - most_hits(0.001, static_cast<double>(all)));
  EXPECT_LE(new_keys, all);
  std::atomic<std::uint64_t> strangers = 0;
  in_threads(threads, [&](std::uint64_t t) {
    for (std::uint64_t i = 0; i < of_thread; ++i) {
      strangers += f.may_contain(1'000'000 + t * of_thread + i) ? 1u : 0u;
    }
  });
  EXPECT_EQ(strangers, count_found(one, keys_from(1'000'000, all)));
}

TEST_F(RedisConcurrent, OneOfSeveralEqualKeysIsNew) {
  concurrent_redis_filter f(redis_filter::create(at("x"), integers(20'000, 1e-6)));
  std::atomic<std::uint64_t> new_keys = 0;
  in_threads(16, [&](std::uint64_t) {
    for (std::uint64_t key = 0; key < 300; ++key) new_keys += f.insert(key) ? 1u : 0u;
  });
  EXPECT_EQ(new_keys, 300u);
}

TEST_F(RedisConcurrent, KeysOfManyThreadsGoTogether) {
  concurrent_redis_filter f(redis_filter::create(at("x"), integers(1000, 0.01)));
  f.insert(std::uint64_t{1});
  std::atomic<std::uint64_t> asking = 0;
  reset_calls();
  server->freeze();
  std::thread thaws([&] {
    while (asking < 100) std::this_thread::sleep_for(milliseconds(1));
    std::this_thread::sleep_for(milliseconds(100));
    server->thaw();
  });
  in_threads(100, [&](std::uint64_t t) {
    ++asking;
    EXPECT_EQ(f.may_contain(t), t == 1) << t;
  });
  thaws.join();
  // A line for each key, and a stamp for each exchange: the first one, and one or two with all keys that waited.
  EXPECT_LE(calls_of("getrange"), 110u);
}

TEST_F(RedisConcurrent, TakesTextAndManyKeysInOneCall) {
  concurrent_redis_filter f(
      redis_filter::create(at("x"), {.filter = {.capacity = 1000, .target_fpr = 1e-6}, .shards = 3}));
  const std::vector<std::string> names = {"", "Madrid", std::string("a\0b", 3), "Berlin"};
  EXPECT_EQ(f.insert(names), 4u);
  EXPECT_EQ(f.insert(names), 0u);
  EXPECT_EQ(f.insert(key_span{}), 0u);
  std::vector<std::string_view> asked(70, "nowhere");
  asked[0] = "Madrid";
  asked[65] = "Berlin";
  asked[69] = "";
  std::vector<std::uint64_t> bitmap(3, ~std::uint64_t{0});
  f.may_contain(std::span<const std::string_view>(asked), bitmap);
  EXPECT_EQ(bitmap, (std::vector<std::uint64_t>{1, 0b100010, 0}));

  EXPECT_EQ(code_of([&] { f.may_contain(std::uint64_t{1}); }), errc::incompatible);
  EXPECT_EQ(code_of([&] {
              f.may_contain(std::span<const std::string_view>(asked), {bitmap.data(), 1});
            }),
            errc::invalid_argument);
  EXPECT_TRUE(f.may_contain("Madrid")) << "wrong calls do no harm to others";
}

TEST_F(RedisConcurrent, ErrorsReachTheAffectedCallsOnly) {
  concurrent_redis_filter f(redis_filter::create(at("x"), integers(1000, 0.01)));
  f.insert(std::uint64_t{7});
  redis_filter::open(at("x")).drop();
  in_threads(8, [&](std::uint64_t t) {
    EXPECT_EQ(code_of([&] { f.may_contain(t); }), errc::not_found);
    EXPECT_EQ(code_of([&] { f.insert(t); }), errc::not_found);
  });
  redis_filter::create(at("x"), integers(1000, 0.01));
  EXPECT_FALSE(f.may_contain(std::uint64_t{7}));
  EXPECT_TRUE(f.insert(std::uint64_t{7}));
}

TEST_F(RedisConcurrent, NoCallTakesLongerThanItMay) {
  const redis_options options = {.connection = within(std::chrono::seconds(20))};
  redis_filter::create(at("x"), integers(1000, 0.01));
  {
    concurrent_redis_filter f(redis_filter::open(at("x"), options), {.time = milliseconds(200), .most_waiting = 4});
    f.insert(std::uint64_t{1});
    server->freeze();
    const auto began = std::chrono::steady_clock::now();
    in_threads(20, [&](std::uint64_t t) {
      EXPECT_EQ(code_of([&] { f.may_contain(t); }), errc::unavailable);
      EXPECT_EQ(code_of([&] { f.insert(t); }), errc::unavailable);
    });
    // Two calls of 200 ms, on a machine that may be busy.
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(5));
    server->thaw();
    insist([&] { EXPECT_TRUE(f.may_contain(std::uint64_t{1})); });
  }
  EXPECT_EQ(code_of([&] { concurrent_redis_filter(redis_filter::open(at("x")), {.time = milliseconds(0)}); }),
            errc::invalid_argument);
  EXPECT_EQ(code_of([&] { concurrent_redis_filter(redis_filter::open(at("x")), {.most_waiting = 0}); }),
            errc::invalid_argument);
}

TEST_F(RedisConcurrent, TheMaximumTimeDoesNotOverflow) {
  concurrent_redis_filter f(redis_filter::create(at("x"), integers(1000, 0.01)), {.time = milliseconds::max()});
  EXPECT_TRUE(f.insert(std::uint64_t{1}));
  EXPECT_TRUE(f.may_contain(std::uint64_t{1}));
}

TEST_F(RedisConcurrent, LendsTheFilterBetweenExchanges) {
  concurrent_redis_filter f(redis_filter::create(at("x"), growing(100)));
  background writer([&, key = std::uint64_t{0}]() mutable { f.insert(key++); });
  for (int i = 0; i < 20; ++i) {
    f.with_filter([&](redis_filter& own) { EXPECT_LE(own.info().rate_now, 0.01); });
  }
  EXPECT_THROW(f.with_filter([](redis_filter&) { throw std::runtime_error("of the caller"); }), std::runtime_error);
  writer.end();
  f.with_filter([](redis_filter& own) { own.clear(); });
  EXPECT_FALSE(f.may_contain(std::uint64_t{0}));
}

}  // namespace
}  // namespace bloomery
