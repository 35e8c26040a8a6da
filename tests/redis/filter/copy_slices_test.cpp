// Copies of shared filters with a window: the same answers at any time, here and on another server, and the same
// expiries.
#include <bloomery/detail/generations.hpp>
#include <bloomery/filter_facts.hpp>
#include <bloomery/filter_handle.hpp>
#include <bloomery/layered_filter.hpp>

#include "redis/fixtures.hpp"
#include "support/files.hpp"

#include <sstream>

namespace bloomery {
namespace {

using namespace bloomery_tests;
using std::chrono::milliseconds;

constexpr std::uint64_t long_window = 600'000'000;  // milliseconds
constexpr std::uint64_t long_slice = (long_window + 6) / 7;

// Written down here again: docs/redis.md.
std::uint64_t end_of(std::uint64_t start) { return start + 8 * long_slice + 5000; }

redis_params in_slices(std::uint64_t shards, const char* layout = "split_block512") {
  redis_params p = windowed(integers(4000, 0.01), milliseconds(long_window));
  p.filter.layout = layout;
  return sharded(p, shards);
}

// What is on the server of one slice of a shard.
struct slice_there {
  std::string lines;
  std::int64_t expires_at;

  friend bool operator==(const slice_there&, const slice_there&) = default;
};

// As if all keys had been inserted `by` slices earlier. Only clients that open the filter afterwards may use it.
void back_date(test_server& server, const std::string& name, std::uint64_t shards, std::int64_t by) {
  for (std::uint64_t s = 0; s < shards; ++s) {
    const std::string shard = server.shard(name, s);
    const std::vector<std::int64_t> numbers = numbers_in(server.command({"HGET", shard + ":h", "layers"}).text());
    std::string list;
    for (const std::int64_t number : numbers) {
      const std::string before = shard + ":" + std::to_string(number), now = shard + ":" + std::to_string(number - by);
      list += (list.empty() ? "" : ",") + std::to_string(number - by);
      if (server.command({"EXISTS", before}).integer() == 0) continue;
      if (number == numbers.back()) {
        const std::int64_t end = server.command({"STRLEN", before}).integer() - 16;
        server.command({"SETRANGE", before, std::to_string(end), "a stamp, earlier"});
      }
      server.command({"RENAME", before, now});
      const std::uint64_t expiry = end_of(static_cast<std::uint64_t>(number - by) * long_slice);
      server.command({"PEXPIREAT", now, std::to_string(expiry)});
    }
    server.command({"HSET", shard + ":h", "layers", list, "stamp", "a stamp, earlier"});
  }
}

// A plain filter of each slice: the window as it would be without layers, shards and files.
class twin {
 public:
  explicit twin(const redis_params& p) : params_(p.filter) { params_.extra = {}; }

  void insert(const std::vector<std::uint64_t>& keys) {
    if (!slices_.contains(0)) slices_.emplace(0, any_filter(params_));
    for (const std::uint64_t key : keys) slices_.at(0).insert(key);
  }
  void age(std::int64_t by) {
    std::map<std::int64_t, any_filter> older;
    for (auto& [age, slice] : slices_) older.emplace(age + by, std::move(slice));
    slices_ = std::move(older);
  }

  // Slices that have not expired at `time`, if the present one began at `start`.
  bool may_contain(std::uint64_t key, std::uint64_t start, std::uint64_t time) const {
    return std::ranges::any_of(slices_, [&](const auto& slice) {
      return end_of(start - static_cast<std::uint64_t>(slice.first) * long_slice) > time &&
             slice.second.may_contain(key);
    });
  }

 private:
  params params_;
  std::map<std::int64_t, any_filter> slices_;  // by age
};

template <class LookUp>
std::vector<bool> answers(const std::vector<std::uint64_t>& keys, LookUp look_up) {
  std::vector<std::uint64_t> bitmap((keys.size() + 63) / 64);
  look_up(bitmap);
  std::vector<bool> all;
  for (std::size_t i = 0; i < keys.size(); ++i) all.push_back((bitmap[i / 64] >> i % 64 & 1) != 0);
  return all;
}
std::vector<bool> answers_of(redis_filter& filter, const std::vector<std::uint64_t>& keys) {
  return answers(keys, [&](std::vector<std::uint64_t>& bitmap) { filter.may_contain(keys, bitmap); });
}
std::vector<bool> answers_of(filter_handle& copy, const std::vector<std::uint64_t>& keys) {
  return answers(keys, [&](std::vector<std::uint64_t>& bitmap) { copy.contains(keys, bitmap); });
}

class CopySlices : public on_a_server<CopySlices> {
 protected:
  // By shard and number, with the times at which the keys expire by themselves, and without slices that have.
  static std::map<std::string, slice_there> slices_on(test_server& there, const std::string& name,
                                                      std::uint64_t shards) {
    std::map<std::string, slice_there> all;
    for (std::uint64_t s = 0; s < shards; ++s) {
      const std::string shard = there.shard(name, s);
      for (const std::int64_t number : numbers_in(there.command({"HGET", shard + ":h", "layers"}).text())) {
        const std::string key = shard + ":" + std::to_string(number);
        if (there.command({"EXISTS", key}).integer() == 0) continue;
        const std::int64_t expires_at = there.command({"PEXPIRETIME", key}).integer();
        EXPECT_EQ(static_cast<std::uint64_t>(expires_at), end_of(static_cast<std::uint64_t>(number) * long_slice));
        all[std::to_string(s) + ":" + std::to_string(number)] = {there.command({"GETRANGE", key, "0", "-17"}).text(),
                                                                 expires_at};
      }
    }
    return all;
  }

  // Keys in slices of the ages 8, 6, 5, 2, 1 and 0: the first has expired.
  static twin fill(const std::string& name, const redis_params& wanted) {
    const redis_params made = redis_filter::create(at(name), wanted).parameters();
    twin truth(made);
    std::uint64_t first = 0;
    for (const std::int64_t later : {2, 1, 3, 1, 1, 0}) {
      redis_filter f = redis_filter::open(at(name));
      insert_all(f, keys_from(first, 700));
      truth.insert(keys_from(first, 700));
      first += 700;
      if (later == 0) break;
      back_date(*server, name, made.shards, later);
      redis_filter::open(at(name)).rotate();
      truth.age(later);
    }
    return truth;
  }
};

TEST_F(CopySlices, AnswersAsAFilterOfEachSliceAtAnyTimeAndComesBackBitForBitOnAnotherServer) {
  test_server other;
  const std::vector<std::uint64_t> keys = keys_from(0, 54'200);  // 4,200 are present
  for (const char* const layout : {"split_block512", "blocked"}) {
    for (const std::uint64_t shards : {1u, 5u}) {
      const std::string name = layout + std::to_string(shards);
      SCOPED_TRACE(name);
      const twin truth = fill(name, in_slices(shards, layout));
      redis_filter f = redis_filter::open(at(name));
      const scratch_folder folder;

      f.pull_layers("a note").save(folder / "f");
      const std::unique_ptr<filter_handle> file = open_filter(folder / "f");
      std::vector<std::uint64_t> expired = {1};
      redis_filter again = redis_filter::create_from(other.address(name), *layered_filter_of(*file), {}, {}, &expired);

      const layered_params& p = layered_filter_of(*file)->parameters();
      const std::uint64_t start = p.copied_at / long_slice * long_slice;
      std::set<std::uint64_t> times = {p.copied_at};
      for (std::uint64_t age = 0; age < 8; ++age) {
        const std::uint64_t end = end_of(start - age * long_slice);
        times.insert({end - 1, end});
      }
      std::vector<bool> expected(keys.size());
      for (const std::uint64_t time : times) {
        file->tick(time);
        for (const std::uint64_t key : keys) expected[key] = truth.may_contain(key, start, time);
        ASSERT_EQ(answers_of(*file, keys), expected) << "at " << time;
        if (time != p.copied_at) continue;
        EXPECT_EQ(std::count(expected.begin() + 700, expected.begin() + 4200, true), 3500);
        ASSERT_EQ(answers_of(f, keys), expected);
        ASSERT_EQ(answers_of(again, keys), expected);
      }
      EXPECT_EQ(std::ranges::count(expected, true), 0) << "after the last expiry";
      EXPECT_EQ(expired, std::vector<std::uint64_t>{});
      EXPECT_EQ(slices_on(other, name, shards), slices_on(*server, name, shards));
      EXPECT_EQ(again.parameters().filter, f.parameters().filter);
      EXPECT_EQ(p.metadata, "a note");
      // As the server, a copy estimates distinct keys from the bits of all slices together.
      file->tick(0);
      const filter_facts facts = file->info(info_depth::bits);
      EXPECT_NEAR(static_cast<double>(*facts.insert_count), 3500, 150);
      EXPECT_EQ(facts.layers.size(), 5u);
      EXPECT_NEAR(facts.fill->current_fpr, again.info().rate_now, 0.2 * again.info().rate_now + 1e-5);
    }
  }
}

// Both filters and the copy here go through the same real expiries. A slice of 200 ms expires after 6.6 s.
TEST_F(CopySlices, ExpireWhenTheOriginalDoesAndTheNewFilterGoesOnRotating) {
  test_server other;
  redis_filter f = redis_filter::create(at("f"), sharded(windowed(integers(4000, 0.01), milliseconds(1400)), 3));
  std::uint64_t key = 0;
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(1300)) {
    f.insert(key++);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  const std::vector<std::uint64_t> keys = keys_from(0, key);

  const std::unique_ptr<filter_handle> copy = make_handle(f.pull_layers());
  redis_filter again = redis_filter::create_from(other.address("again"), *layered_filter_of(*copy));

  ASSERT_EQ(count_found(again, keys), key);
  std::set<std::uint64_t> counts;  // of keys that are still found
  while (*counts.insert(count_found(f, keys)).first != 0) {
    // The three clients read their clocks one after another: a difference may last as long as that.
    const std::vector<bool> expected = answers_of(f, keys);
    if (answers_of(again, keys) != expected || answers_of(*copy, keys) != expected) {
      std::this_thread::sleep_for(std::chrono::milliseconds(60));
      const std::vector<bool> later = answers_of(f, keys);
      ASSERT_EQ(answers_of(again, keys), later);
      ASSERT_EQ(answers_of(*copy, keys), later);
    }
    ASSERT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(15));
    std::this_thread::sleep_for(std::chrono::milliseconds(25));
  }
  EXPECT_GE(counts.size(), 5u) << "slices expired one after another";
  EXPECT_EQ(count_found(again, keys), 0u);
  const std::string header = other.shard("again", again.parameters().shards - 1) + ":h";
  const std::int64_t newest = numbers_in(other.command({"HGET", header, "layers"}).text()).back();
  insert_all(again, keys_from(1000, 500));
  EXPECT_EQ(count_found(again, keys_from(1000, 500)), 500u);
  EXPECT_GT(numbers_in(other.command({"HGET", header, "layers"}).text()).back(), newest);
}

TEST_F(CopySlices, HasAllKeysIfASliceBeginsDuringThePull) {
  proxy net(server->socket());
  redis_filter::create(at("f"), in_slices(4)).insert(keys_from(0, 3000));
  back_date(*server, "f", 4, 1);
  redis_filter f = redis_filter::open(net.address("f"));
  EXPECT_EQ(count_found(f, keys_from(0, 3000)), 3000u);
  net.before("GETRANGE", [&] { redis_filter::open(at("f")).insert(keys_from(5000, 1000)); });

  const std::unique_ptr<filter_handle> copy = make_handle(f.pull_layers());

  EXPECT_TRUE(net.has_acted());
  EXPECT_EQ(slices_on(*server, "f", 4).size(), 8u) << "it began in all shards";
  EXPECT_EQ(std::ranges::count(answers_of(*copy, keys_from(0, 3000)), true), 3000);
}

// By the client's clock the oldest slice is about to expire, and it is deleted before its bits are read.
TEST_F(CopySlices, LeavesOutASliceThatExpiresDuringThePull) {
  constexpr std::uint64_t shards = 3;
  proxy net(server->socket());
  { redis_filter::create(at("f"), in_slices(shards)).insert(keys_from(0, 500)); }
  back_date(*server, "f", shards, 2);
  { redis_filter::open(at("f")).insert(keys_from(1000, 500)); }
  const std::int64_t oldest =
      numbers_in(server->command({"HGET", server->shard("f", 0) + ":h", "layers"}).text()).front();
  const std::uint64_t end = end_of(static_cast<std::uint64_t>(oldest) * long_slice);
  const std::string seconds = std::to_string(end / 1000 - 1);
  net.instead_of_answer_to(
      "TIME", "*2\r\n$" + std::to_string(seconds.size()) + "\r\n" + seconds + "\r\n$1\r\n0\r\n", [&] {
        net.before("GETRANGE", [&] { server->command({"DEL", server->shard("f", 1) + ":" + std::to_string(oldest)}); });
      });

  const layered_filter copy = redis_filter::open(net.address("f")).pull_layers();

  EXPECT_TRUE(net.has_acted());
  EXPECT_EQ(copy.parameters().copied_at, end);
  EXPECT_EQ(copy.layers().size(), shards);
  EXPECT_EQ(code_of([&] { redis_filter::open(at("f")).pull_layers(); }), errc::damaged)
      << "by the true clock it was lost";
}

TEST_F(CopySlices, AreRefusedIfOneWasLost) {
  for (const bool newest : {false, true}) {
    SCOPED_TRACE(newest);
    server->command({"FLUSHALL"});
    fill("f", in_slices(2));
    const std::vector<std::int64_t> numbers =
        numbers_in(server->command({"HGET", server->shard("f", 1) + ":h", "layers"}).text());
    const std::int64_t lost = newest ? numbers.back() : numbers[numbers.size() - 2];
    ASSERT_EQ(server->command({"DEL", server->shard("f", 1) + ":" + std::to_string(lost)}).integer(), 1);

    EXPECT_EQ(code_of([&] { redis_filter::open(at("f")).pull_layers(); }), errc::damaged);
    // Bits that a client unaware of the loss writes there do not make it whole.
    server->command({"SETRANGE", server->shard("f", 1) + ":" + std::to_string(lost), "300", "x"});
    EXPECT_EQ(code_of([&] { redis_filter::open(at("f")).pull_layers(); }), errc::damaged);
  }
}

// The copy as it would be if all keys had been inserted that many slices later.
layered_filter moved(const layered_filter& copy, std::int64_t slices) {
  layered_params p = copy.parameters();
  std::vector<filter_layer> layers = copy.layers();
  const auto by = static_cast<std::uint64_t>(slices * static_cast<std::int64_t>(long_slice));
  p.copied_at += by;
  for (filter_layer& layer : layers) layer.start += by;
  layered_filter result(p, layers);
  for (std::size_t i = 0; i < layers.size(); ++i) std::ranges::copy(copy.bytes_of(i), result.bytes_of(i).begin());
  return result;
}

// Negative: the clock of the server is behind.
TEST_F(CopySlices, ArePushedWithTheirTimesUnlessTheyHaveExpired) {
  const twin truth = fill("f", in_slices(3));
  const layered_filter copy = redis_filter::open(at("f")).pull_layers();
  const std::uint64_t start = copy.layers().back().start;
  for (const std::int64_t slices : {-3, 4, 9, 1000}) {
    SCOPED_TRACE(slices);
    const std::string name = "after" + std::to_string(slices);
    std::vector<std::uint64_t> expired;

    redis_filter again = redis_filter::create_from(at(name), moved(copy, -slices), {}, {}, &expired);

    const std::uint64_t by = static_cast<std::uint64_t>(std::max<std::int64_t>(slices, 0)) * long_slice;
    std::vector<std::uint64_t> starts;  // ages 6, 5, 2, 1, 0
    for (const std::int64_t age : {6, 5, 2, 1, 0}) {
      if (age + slices > 7) starts.push_back(start - static_cast<std::uint64_t>(age) * long_slice - by);
    }
    EXPECT_EQ(expired, starts);
    std::vector<bool> expected;
    for (const std::uint64_t key : keys_from(0, 20'000))
      expected.push_back(truth.may_contain(key, start - by, copy.parameters().copied_at));
    EXPECT_EQ(answers_of(again, keys_from(0, 20'000)), expected);
    EXPECT_EQ(again.info().ones == 0, slices > 7);
    if (slices < 0) slices_on(*server, name, 3);  // compares the expiries
    EXPECT_TRUE(again.insert(std::uint64_t{123'456'789}));
    EXPECT_TRUE(redis_filter::open(at(name)).may_contain(std::uint64_t{123'456'789}));
    if (slices > 0) continue;
    const std::string layers = server->command({"HGET", server->shard(name, 0) + ":h", "layers"}).text();
    EXPECT_EQ(static_cast<std::uint64_t>(numbers_in(layers).back()), start / long_slice + 3)
        << "the key went to the newest slice";
  }
  EXPECT_EQ(code_of([&] { redis_filter::create_from(at("again"), moved(copy, 9)); }), errc::incompatible)
      << "of a distant future";
}

TEST_F(CopySlices, AreNotMixedWithThoseOfAWriterThatBeginsASlice) {
  proxy net(server->socket());
  fill("f", in_slices(2));
  const layered_filter copy = redis_filter::open(at("f")).pull_layers();
  net.before(":merge", [&] {
    back_date(*server, "again", 2, 1);
    redis_filter::open(at("again")).rotate();
  });

  EXPECT_EQ(code_of([&] { redis_filter::create_from(net.address("again"), copy); }), errc::locked);
  EXPECT_TRUE(net.has_acted());
}

// The slice of the copy is newer than those of the filter, and another client begins it first.
TEST_F(CopySlices, AreNotMixedWithASliceThatAnotherWriterBegins) {
  proxy net(server->socket());
  fill("f", in_slices(1));
  const layered_filter copy = moved(redis_filter::open(at("f")).pull_layers(), 1);
  const std::string number = std::to_string(copy.layers().back().start / long_slice);
  net.before(":" + number + ":merge", [&] {
    const std::string shard = server->shard("again", 0);
    const std::string layers(server->command({"HGET", shard + ":h", "layers"}).text());
    const std::string newest = shard + ":" + std::to_string(numbers_in(layers).back());
    const std::string end = std::to_string(server->command({"STRLEN", newest}).integer() - 16);
    const std::string stamp = "another client's";
    server->command({"SETRANGE", newest, end, std::string(16, '\0')});
    server->command({"SETRANGE", shard + ":" + number, end, stamp});
    server->command({"HSET", shard + ":h", "stamp", stamp, "layers", layers + "," + number});
  });

  EXPECT_EQ(code_of([&] { redis_filter::create_from(net.address("again"), copy); }), errc::locked);
  EXPECT_TRUE(net.has_acted());
}

TEST_F(CopySlices, ArePushedOnceIfAnAnswerIsLost) {
  proxy net(server->socket());
  const twin truth = fill("f", in_slices(3));
  const layered_filter copy = redis_filter::open(at("f")).pull_layers();
  net.instead_of_answer_to(":merge", "");

  // The call reports the lost connection, since the server may have lost what it had answered before.
  const std::optional<errc> code = code_of([&] { redis_filter::create_from(net.address("again"), copy); });

  EXPECT_TRUE(net.has_acted());
  EXPECT_EQ(code, errc::unavailable);
  EXPECT_EQ(slices_on(*server, "again", 3), slices_on(*server, "f", 3)) << "the server did not";
}

}  // namespace
}  // namespace bloomery
