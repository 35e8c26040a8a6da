// concurrent_filter<>: the same bits as filter<> for any number of threads, and its guarantees for racing threads.
//
// These tests also run under ThreadSanitizer, so their threads share only the filter and the objects under test.
#include <bloomery/concurrent_filter.hpp>
#include <bloomery/detail/atomic_words.hpp>
#include <bloomery/detail/bits.hpp>

#include "support/combinations.hpp"
#include "support/test.hpp"

#include <atomic>
#include <barrier>
#include <thread>
#include <type_traits>

namespace bloomery {
namespace {

using namespace bloomery_tests;

// Runs work(number) in threads 0 .. count - 1 at once, and waits for all.
template <class Work>
void in_threads(unsigned count, Work work) {
  std::vector<std::thread> threads;
  for (unsigned number = 0; number < count; ++number) threads.emplace_back([&work, number] { work(number); });
  for (std::thread& thread : threads) thread.join();
}

// Keys 0 .. count - 1, all different.
template <class Key>
class numbered_keys {
 public:
  explicit numbered_keys(std::size_t count) {
    if constexpr (std::is_same_v<Key, std::uint64_t>) {
      for (std::size_t i = 0; i < count; ++i) keys_.push_back(i);
    } else {
      for (std::size_t i = 0; i < count; ++i) texts_.push_back(std::string(i % 40, 'x') + std::to_string(i));
      keys_.assign(texts_.begin(), texts_.end());
    }
  }
  numbered_keys(const numbered_keys&) = delete;
  numbered_keys& operator=(const numbered_keys&) = delete;

  std::size_t size() const { return keys_.size(); }
  const Key& operator[](std::size_t i) const { return keys_[i]; }
  std::span<const Key> all() const { return keys_; }

 private:
  std::vector<std::string> texts_;
  std::vector<Key> keys_;
};

// Each layout with integers. Two with text, because keys are hashed before anything is shared.
using combinations = testing::Types<
    combination<std::uint64_t, layouts::split_block, mix>, combination<std::uint64_t, layouts::split_block512, siphash>,
    combination<std::uint64_t, layouts::blocked, mix>, combination<std::uint64_t, layouts::blocked_page, mix>,
    combination<std::uint64_t, layouts::classic, mix>, combination<std::string_view, layouts::split_block512, xxh3_64>,
    combination<std::string_view, layouts::classic, siphash>>;

template <class C>
class ConcurrentFilter : public testing::Test {
 public:
  using plain_filter = filter<typename C::key, typename C::layout, typename C::hash>;
  using shared_filter = concurrent_filter<typename C::key, typename C::layout, typename C::hash>;
};
TYPED_TEST_SUITE(ConcurrentFilter, combinations, combination_names);

// ---- one thread: as filter<> ----------------------------------------------------------------------------------------

// While another thread runs, words are changed by atomic operations; before any thread was started, they need not be.
TYPED_TEST(ConcurrentFilter, AgreesWithFilterWithAndWithoutAnotherThread) {
  const numbered_keys<typename TypeParam::key> keys(5003);
  const auto hash = seeded<typename TypeParam::hash>();
  for (const bool has_company : {false, true}) {
    SCOPED_TRACE(has_company);
    typename TestFixture::plain_filter plain(2000, 0.05, hash);
    typename TestFixture::shared_filter shared(2000, 0.05, hash);
    bytes plain_new(3001), shared_new(3001), plain_single, shared_single;
    std::atomic<bool> done{false};
    std::thread other;
    if (has_company) {
      other = std::thread([&] {
        while (!done) std::this_thread::yield();
      });
    }

    plain.insert(keys.all().first(3001), plain_new);
    shared.insert(keys.all().first(3001), shared_new);
    for (std::size_t i = 2500; i < 3500; ++i) {
      plain_single.push_back(plain.insert(keys[i]) ? 1 : 0);
      shared_single.push_back(shared.insert(keys[i]) ? 1 : 0);
    }
    done = true;
    if (has_company) other.join();

    EXPECT_EQ(shared_new, plain_new);
    EXPECT_EQ(shared_single, plain_single);
    EXPECT_EQ(shared.snapshot(), plain);
    EXPECT_EQ(shared.parameters(), plain.parameters());
    EXPECT_EQ(shared.insert_count(), plain.insert_count());
    EXPECT_EQ(shared.capacity(), plain.capacity());
    EXPECT_EQ(shared.bit_size(), plain.bit_size());
    EXPECT_EQ(shared.byte_size(), plain.byte_size());
    EXPECT_EQ(shared.fill_ratio(), plain.fill_ratio());
    EXPECT_EQ(shared.approximate_size(), plain.approximate_size());
    EXPECT_EQ(shared.expected_fpr(2000), plain.expected_fpr(2000));
    EXPECT_EQ(shared.expected_fpr(), plain.expected_fpr());
  }
}

TYPED_TEST(ConcurrentFilter, LooksUpManyAsItLooksUpOne) {
  const numbered_keys<typename TypeParam::key> keys(2000);
  const auto hash = seeded<typename TypeParam::hash>();
  typename TestFixture::shared_filter shared(500, 0.1, hash);
  shared.insert(keys.all().first(1000));
  for (const std::size_t count : {0u, 1u, 31u, 32u, 33u, 64u, 255u, 256u, 257u, 2000u}) {
    std::vector<std::uint64_t> bitmap((count + 63) / 64 + 1, 0xABAB), expected((count + 63) / 64 + 1, 0);
    for (std::size_t i = 0; i < count; ++i) expected[i / 64] |= std::uint64_t{shared.may_contain(keys[i])} << i % 64;
    expected.back() = 0xABAB;  // is not its to write

    shared.may_contain(keys.all().first(count), bitmap);

    EXPECT_EQ(bitmap, expected) << count;
  }
}

TYPED_TEST(ConcurrentFilter, ContinuesWithAFilterAndBecomesOneAgain) {
  using ordinary = typename TestFixture::plain_filter;
  const numbered_keys<typename TypeParam::key> keys(300);
  const auto hash = seeded<typename TypeParam::hash>();
  ordinary expected(100, 0.01, hash);
  expected.insert(keys.all());
  ordinary first(100, 0.01, hash);
  first.insert(keys.all().first(200));

  typename TestFixture::shared_filter shared(std::move(first));
  shared.insert(keys.all().subspan(200));
  const ordinary copy = shared.snapshot();
  const ordinary last = std::move(shared).freeze();

  for (const ordinary* one : {&copy, &last}) {
    EXPECT_EQ(copy_of(one->bytes()), copy_of(expected.bytes()));
    EXPECT_EQ(one->parameters(), expected.parameters());
    EXPECT_EQ(one->insert_count(), expected.insert_count());
    EXPECT_TRUE(one->count_is_estimate());  // a key may have been counted by several threads
  }
}

// Words are read whole: the storage is longer than such filters are.
TEST(ConcurrentFilterOfAnyLength, WritesTheBytesOfFilter) {
  const numbered_keys<std::uint64_t> keys(400);
  for (const std::uint64_t bits : {1u, 2u, 7u, 8u, 9u, 63u, 64u, 65u, 127u, 129u, 1021u, 10'007u}) {
    SCOPED_TRACE(bits);
    const geometry g{bits, 5};
    filter<std::uint64_t, layouts::classic> plain(g), taken(g);
    concurrent_filter<std::uint64_t, layouts::classic> shared(g);

    plain.insert(keys.all());
    shared.insert(keys.all());
    concurrent_filter<std::uint64_t, layouts::classic> going_on(std::move(taken));
    going_on.insert(keys.all());

    EXPECT_EQ(shared.byte_size(), plain.byte_size());
    EXPECT_EQ(shared.fill_ratio(), plain.fill_ratio());
    EXPECT_EQ(copy_of(shared.snapshot().bytes()), copy_of(plain.bytes()));
    EXPECT_EQ(copy_of(std::move(shared).freeze().bytes()), copy_of(plain.bytes()));
    EXPECT_EQ(copy_of(std::move(going_on).freeze().bytes()), copy_of(plain.bytes()));
  }
}

TEST(ConcurrentFilterErrors, AreThoseOfFilter) {
  using shared = concurrent_filter<std::string_view, layouts::split_block512, murmur3>;

  EXPECT_EQ(code_of([] { shared(0, 0.01); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { shared(1000, 1.0); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { shared(geometry{511, 8}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { shared(1000, 0.01, murmur3{std::uint64_t{1} << 32}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { shared(1'000'000'000'000, 0.01); }), errc::too_large);
}

// ---- parts ----------------------------------------------------------------------------------------------------------

// Two generations of 64 threads, more than there are shards: the second generation gets the shard numbers of the first.
TEST(ShardedCounter, CountsTheAdditionsOfMoreThreadsThanItHasShards) {
  constexpr unsigned threads = 64;
  constexpr std::uint64_t additions = 2000;
  sharded_counter counter(5);
  for (int generation = 0; generation < 2; ++generation) {
    std::barrier all_run(threads);
    in_threads(threads, [&](unsigned number) {
      counter.add(number);
      all_run.arrive_and_wait();
      for (std::uint64_t i = 0; i < additions; ++i) counter.add(1);
    });
  }

  EXPECT_EQ(counter.sum(), 5 + 2 * (threads * additions + threads * (threads - 1) / 2));
}

TEST(ThreadNumber, IsNeverThatOfAnotherRunningThread) {
  constexpr unsigned threads = 40;
  std::vector<std::size_t> numbers(threads);
  std::barrier all_run(threads);
  in_threads(threads, [&](unsigned number) {
    numbers[number] = detail::thread_number();
    all_run.arrive_and_wait();
    EXPECT_EQ(detail::thread_number(), numbers[number]);
  });

  std::vector<unsigned> owners(detail::numbered_threads + 1);
  for (const std::size_t number : numbers) ++owners.at(number);
  for (std::size_t number = 0; number < detail::numbered_threads; ++number) EXPECT_LE(owners[number], 1u) << number;
}

// Every start and every wish of two bits in a pair of words, as in memory and as it is set: a bit at most once.
TEST(AtomicWords, SetBitsOfAPairAndReportWhetherOneWasClear) {
  const std::uint64_t cells[] = {0, 1, 63, 64, 127};
  for (const std::uint64_t before : cells) {
    for (const std::uint64_t first : cells) {
      for (const std::uint64_t second : cells) {
        alignas(16) std::array<std::uint8_t, 48> actual{}, expected{};
        detail::word_pair bits{};
        set_bit(actual.data(), 128 + before);
        set_bit(expected.data(), 128 + before);
        bool is_new = false;
        for (const std::uint64_t cell : {first, second}) {
          detail::add_cell(&bits, cell);
          is_new |= set_bit(expected.data(), 128 + cell);
        }
        const detail::atomic_words words(actual.data());

        EXPECT_EQ(words.missing(1, bits) != 0, is_new);
        EXPECT_EQ(words.set(1, bits), is_new) << before << " " << first << " " << second;
        EXPECT_EQ(words.missing(1, bits), 0u);
        EXPECT_EQ(actual, expected);
      }
    }
  }
}

// ---- many threads ---------------------------------------------------------------------------------------------------

TYPED_TEST(ConcurrentFilter, HasTheBytesOfFilterWhicheverThreadsInserted) {
  constexpr std::size_t n = 8000;
  const numbered_keys<typename TypeParam::key> keys(n);
  const auto hash = seeded<typename TypeParam::hash>();
  typename TestFixture::plain_filter plain(n, 0.01, hash);
  plain.insert(keys.all());
  for (const unsigned threads : {1u, 2u, 8u}) {
    SCOPED_TRACE(threads);
    typename TestFixture::shared_filter dealt(n, 0.01, hash), repeated(n, 0.01, hash);

    in_threads(threads, [&](unsigned number) {
      const std::size_t share = n / threads;
      dealt.insert(keys.all().subspan(number * share, share));
      for (std::size_t i = 0; i < n; ++i) repeated.insert(keys[(i + number * share) % n]);
    });

    EXPECT_EQ(copy_of(dealt.snapshot().bytes()), copy_of(plain.bytes()));
    EXPECT_EQ(copy_of(repeated.snapshot().bytes()), copy_of(plain.bytes()));
    // Another order makes false positives of other keys, n p = 80 at the very most.
    EXPECT_NEAR(static_cast<double>(dealt.insert_count()), static_cast<double>(plain.insert_count()), 80);
    EXPECT_GE(repeated.insert_count(), plain.insert_count() - 80);
    EXPECT_LE(repeated.insert_count(), threads * n);
  }
}

// The filter is so sparse that no key's cells are ever covered by others: about one key in 10^9.
TYPED_TEST(ConcurrentFilter, ReportsAKeyAsNewToAtLeastOneOfRacingThreads) {
  constexpr unsigned threads = 4;
  constexpr std::size_t rounds = 150, keys_a_round = 40;
  const numbered_keys<typename TypeParam::key> keys(rounds * keys_a_round);
  const auto hash = seeded<typename TypeParam::hash>();
  typename TestFixture::shared_filter shared(keys.size(), 1e-9, hash);
  std::vector<bytes> told(threads, bytes(keys.size(), 2));
  std::barrier start(threads);

  in_threads(threads, [&](unsigned number) {
    for (std::size_t round = 0; round < rounds; ++round) {
      const std::size_t first = round * keys_a_round;
      start.arrive_and_wait();
      if ((round + number) % 2 == 0) {
        shared.insert(keys.all().subspan(first, keys_a_round), std::span(told[number]).subspan(first, keys_a_round));
      } else {
        for (std::size_t i = first; i < first + keys_a_round; ++i) told[number][i] = shared.insert(keys[i]) ? 1 : 0;
      }
    }
  });

  std::uint64_t all_told = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    int times = 0;
    for (const bytes& one : told) {
      ASSERT_LE(one[i], 1) << "no answer";
      times += one[i];
    }
    ASSERT_GE(times, 1) << "key " << i << " was new to none";
    all_told += static_cast<std::uint64_t>(times);
  }
  EXPECT_EQ(shared.insert_count(), all_told);
}

// Nothing but a number of keys, released and acquired, goes from the writer to readers that run all the while.
TYPED_TEST(ConcurrentFilter, FindsKeysThatWereInsertedBeforeAFlagWasSeen) {
  constexpr std::size_t n = 4000;
  const numbered_keys<typename TypeParam::key> keys(n);
  const auto hash = seeded<typename TypeParam::hash>();
  typename TestFixture::shared_filter shared(n, 1e-4, hash);
  std::atomic<std::size_t> published{0};
  std::atomic<std::uint64_t> missed{0};

  in_threads(3, [&](unsigned number) {
    if (number == 0) {
      for (std::size_t i = 0; i < n; i += 10) {
        if (i % 20 == 0) {
          shared.insert(keys.all().subspan(i, 10));
        } else {
          for (std::size_t one = i; one < i + 10; ++one) shared.insert(keys[one]);
        }
        published.store(i + 10, std::memory_order_release);
      }
      return;
    }
    std::mt19937_64 random(number);
    std::vector<std::uint64_t> bitmap(1);
    for (std::size_t known = 0; known < n;) {
      known = published.load(std::memory_order_acquire);
      if (known < 10) continue;
      // The newest, which are hardly there, and others.
      for (std::size_t i = known - 10; i < known; ++i) missed += shared.may_contain(keys[i]) ? 0 : 1;
      shared.may_contain(keys.all().subspan(random() % (known - 9), 10), bitmap);
      missed += bitmap[0] == 0x3FF ? 0 : 1;
    }
  });

  EXPECT_EQ(missed, 0u);
}

TYPED_TEST(ConcurrentFilter, ShowsWhatJoinedThreadsInserted) {
  const numbered_keys<typename TypeParam::key> keys(200);
  const auto hash = seeded<typename TypeParam::hash>();
  typename TestFixture::shared_filter shared(200, 1e-4, hash);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    std::thread([&] { shared.insert(keys[i]); }).join();

    ASSERT_TRUE(shared.may_contain(keys[i])) << i;
  }
}

TYPED_TEST(ConcurrentFilter, NeverMissesAKnownKeyWhileOthersAreInserted) {
  constexpr std::size_t known = 1000, n = 9000;
  const numbered_keys<typename TypeParam::key> keys(n);
  const auto hash = seeded<typename TypeParam::hash>();
  typename TestFixture::shared_filter shared(n, 0.01, hash);
  shared.insert(keys.all().first(known));
  std::atomic<unsigned> writers{2};
  std::atomic<std::uint64_t> missed{0};

  in_threads(4, [&](unsigned number) {
    if (number < 2) {
      for (std::size_t i = known + number; i < n; i += 2) shared.insert(keys[i]);
      --writers;
      return;
    }
    do {
      for (std::size_t i = 0; i < known; ++i) missed += shared.may_contain(keys[i]) ? 0 : 1;
      const auto copy = shared.snapshot();
      for (std::size_t i = 0; i < known; i += 10) missed += copy.may_contain(keys[i]) ? 0 : 1;
    } while (writers > 0);
  });

  EXPECT_EQ(missed, 0u);
}

// A key is its own number, and that bit: neighbors share a word.
struct identity {
  static constexpr std::string_view name = "identity";
  key_hash operator()(std::uint64_t key) const noexcept { return {key, 0}; }
};

struct one_bit {
  static constexpr std::string_view name = "one_bit";
  class cells {
   public:
    cells(const geometry&, key_hash hash) : bit_(hash.hash64) {}
    static std::uint32_t count() { return 1; }
    std::uint64_t next() const { return bit_; }

   private:
    std::uint64_t bit_;
  };
  static geometry geometry_for(std::uint64_t n, double) { return {n, 1}; }
  static void check(const geometry&) {}
  static double expected_fpr(const geometry&, std::uint64_t) { return 0; }
  static double keys_from_zeros(const geometry& g, std::uint64_t z) { return static_cast<double>(g.bits - z); }
};

// Each thread writes its own bits into words that all threads write.
TEST(ConcurrentFilterOfSharedWords, LosesNoBitAndCountsEachOnce) {
  constexpr unsigned threads = 4;
  constexpr std::uint64_t bits = 40'000;
  for (int round = 0; round < 20; ++round) {
    concurrent_filter<std::uint64_t, one_bit, identity> shared(geometry{bits, 1});
    std::barrier start(threads);

    in_threads(threads, [&](unsigned number) {
      start.arrive_and_wait();
      for (std::uint64_t i = number; i < bits; i += threads) shared.insert(i);
    });

    ASSERT_EQ(shared.fill_ratio(), 1);
    ASSERT_EQ(shared.insert_count(), bits);
  }
}

}  // namespace
}  // namespace bloomery
