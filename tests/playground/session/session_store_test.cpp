#include "playground/session/session_store.hpp"

#include "support/errors.hpp"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>
#include <thread>

namespace bloomery_tests {
namespace {

using namespace bloomery::playground;
using bloomery::errc;
using std::chrono::seconds;

demo_session small() { return demo_session(wanted_filter{.layout = "classic", .capacity = 10, .bits = 800}); }

TEST(SessionStore, IdsAreDistinctAndOf128Bits) {
  std::set<std::string> ids;
  std::uint64_t ever_set[2] = {0, 0}, ever_clear[2] = {0, 0};
  for (int i = 0; i < 2000; ++i) {
    const std::string id = random_id();
    ASSERT_EQ(id.size(), 32u);
    ASSERT_EQ(id.find_first_not_of("0123456789abcdef"), std::string::npos);
    for (const std::size_t half : {0u, 1u}) {
      const std::uint64_t bits = std::stoull(id.substr(16 * half, 16), nullptr, 16);
      ever_set[half] |= bits;
      ever_clear[half] |= ~bits;
    }
    ids.insert(id);
  }
  EXPECT_EQ(ids.size(), 2000u);
  for (const std::size_t half : {0u, 1u}) {
    EXPECT_EQ(ever_set[half], ~std::uint64_t{0});
    EXPECT_EQ(ever_clear[half], ~std::uint64_t{0});
  }
}

TEST(SessionStore, RemovesTheLeastRecentlyUsedFilter) {
  session_store c({.filters = 3, .idle = seconds(-1)});
  const std::string a = c.put(100, small);
  const std::string b = c.put(100, small);
  const std::string d = c.put(100, small);
  c.get(a);

  const std::string e = c.put(100, small);

  EXPECT_EQ(code_of([&] { c.get(b); }), errc::not_found);
  for (const std::string& id : {a, d, e}) EXPECT_NO_THROW(c.get(id));
}

TEST(SessionStore, NoFilterIsMadeWithoutRoom) {
  session_store c({.filters = 2, .bytes = 1 << 20});
  c.put(100, small);
  bool made = false;
  const auto watched = [&] {
    made = true;
    return small();
  };

  EXPECT_EQ(code_of([&] { c.put(1 << 20, watched); }), errc::unavailable);
  EXPECT_FALSE(made);
  c.put(100, watched);
  made = false;
  EXPECT_EQ(code_of([&] { c.put(100, watched); }), errc::unavailable);
  EXPECT_FALSE(made);
}

TEST(SessionStore, AFilterThatCouldNotBeMadeTakesNoRoom) {
  session_store c({.filters = 1, .bytes = 1 << 20});
  for (int i = 0; i < 5; ++i) {
    EXPECT_THROW(c.put(1 << 19, []() -> demo_session { throw std::runtime_error("no"); }), std::runtime_error);
  }

  EXPECT_NO_THROW(c.put(1 << 19, small));
}

TEST(SessionStore, CountsTheBytesOfFiltersUntilTheyAreDropped) {
  session_store c({.filters = 10, .bytes = 1 << 20});
  const std::string a = c.put(100, small);
  c.weigh(a, 1 << 20);
  EXPECT_EQ(code_of([&] { static_cast<void>(c.make_room(1)); }), errc::unavailable);

  c.drop(a);

  EXPECT_NO_THROW(static_cast<void>(c.make_room(1 << 20)));
  EXPECT_EQ(code_of([&] { c.drop(a); }), errc::not_found);
}

TEST(SessionStore, AReservationHoldsItsBytesUntilItEnds) {
  session_store c({.filters = 10, .bytes = 1 << 20});
  {
    const session_store::reservation mine = c.make_room(700 << 10);
    EXPECT_EQ(code_of([&] { static_cast<void>(c.make_room(700 << 10)); }), errc::unavailable);
    const session_store::reservation other = c.make_room(300 << 10);
  }

  EXPECT_NO_THROW(static_cast<void>(c.make_room(1 << 20)));
}

TEST(SessionStore, ManyThreadsUseTheStore) {
  session_store c({.filters = 16, .idle = seconds(-1)});
  std::vector<std::thread> visitors;
  for (int i = 0; i < 8; ++i) {
    visitors.emplace_back([&] {
      for (int round = 0; round < 10; ++round) {
        const std::string id = c.put(100, small);
        try {
          const auto filter = c.get(id);
          const std::lock_guard lock(filter->turn);
          filter->it.add(std::vector<std::string>{id});
          c.weigh(id, filter->it.byte_size());
          if (round % 2 == 0) c.drop(id);
        } catch (const bloomery::error& e) {
          EXPECT_EQ(e.code(), errc::not_found);  // evicted
        }
      }
    });
  }
  for (std::thread& v : visitors) v.join();

  EXPECT_NO_THROW(static_cast<void>(c.make_room(std::uint64_t{1} << 30)));
}

}  // namespace
}  // namespace bloomery_tests
