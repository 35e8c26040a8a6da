// insert_all, compared with inserting keys one by one: the same bytes for any order and number of threads.
//
// With three threads or more, filters larger than a core's private cache are filled partition by partition. With one or
// two threads, this depends on the processor, so tests of partitions use more. insert_by_two_test.cpp tests two threads
// that own half of the blocks each.
#include <bloomery/any_filter.hpp>
#include <bloomery/detail/bulk_insert.hpp>
#include <bloomery/filter.hpp>
#include <bloomery/scheme.hpp>

#include "platform/machine.hpp"
#include "support/long_tests.hpp"
#include "support/processes.hpp"
#include "support/test.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <type_traits>

namespace bloomery {
namespace {

using namespace bloomery_tests;

constexpr std::uint64_t mebibyte_bits = std::uint64_t{8} << 20;
constexpr std::uint64_t larger_than_any = 40 * mebibyte_bits;  // from here on one thread may make partitions, too

// More than a core's own cache: three threads make partitions.
std::uint64_t large() { return std::max(10 * mebibyte_bits, 8 * 5 * own_cache_size()); }

// A geometry of approximately this number of bits.
template <class L>
geometry geometry_of(std::uint64_t bits) {
  if constexpr (std::is_same_v<L, layouts::classic>)
    return {bits + 1, 7};
  else
    return {bits / L::block_bits * L::block_bits + L::block_bits,
            L::block_bits == 256 || std::is_same_v<L, layouts::split_block512> ? 8u : 7u};
}

// Random keys, every tenth of them a repetition.
std::vector<std::uint64_t> integer_keys(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::uint64_t> keys(count);
  for (std::size_t i = 0; i < count; ++i) keys[i] = i % 10 == 9 ? keys[i / 2] : random();
  return keys;
}

template <class Key>
struct keys_of_kind {
  explicit keys_of_kind(std::size_t count) : keys(integer_keys(count, 1)) {}
  std::vector<std::uint64_t> keys;
};

template <>
struct keys_of_kind<std::string_view> {
  explicit keys_of_kind(std::size_t count) {
    for (const std::uint64_t key : integer_keys(count, 1)) texts.push_back("key " + std::to_string(key));
    keys.assign(texts.begin(), texts.end());
  }
  std::vector<std::string> texts;
  std::vector<std::string_view> keys;
};

// What the definition makes of keys that come one by one, and how many were new.
struct expectation {
  bytes content;
  std::uint64_t all_new = 0;
};

template <class L, class Hash, class Key>
expectation one_by_one(const geometry& g, std::span<const Key> keys, const Hash& hash) {
  expectation expected{bytes(bytes_for(g.bits))};
  for (const Key& key : keys) expected.all_new += insert_cells<L>(expected.content.data(), g, hash(key)) ? 1 : 0;
  return expected;
}

// In one call: a loop takes sanitizers seconds.
bool equal(std::span<const std::uint8_t> actual, std::span<const std::uint8_t> expected) {
  return actual.size() == expected.size() && std::memcmp(actual.data(), expected.data(), actual.size()) == 0;
}

// A key that came as a false positive to one order of keys may be new in another: one in a thousand would be many.
void expect_about_as_many(std::uint64_t actual, std::uint64_t expected) {
  EXPECT_NEAR(static_cast<double>(actual), static_cast<double>(expected), static_cast<double>(expected) / 1000 + 1);
}

// ---- every layout, some kinds of keys -------------------------------------------------------------------------------

template <class Key, class L, class Hash>
struct subject {
  using key = Key;
  using layout = L;
  using hash = Hash;
};

using subjects =
    testing::Types<subject<std::uint64_t, layouts::split_block, mix>,
                   subject<std::uint64_t, layouts::split_block512, xxh3>, subject<std::uint64_t, layouts::blocked, mix>,
                   subject<std::uint64_t, layouts::blocked_page, mix>, subject<std::uint64_t, layouts::classic, mix>,
                   subject<std::string_view, layouts::split_block512, xxh3_64>,
                   subject<std::string_view, layouts::classic, xxh3>>;

struct subject_names {
  template <class S>
  static std::string GetName(int) {  // NOLINT(readability-identifier-naming): GoogleTest's name
    return std::string(std::is_same_v<typename S::key, std::uint64_t> ? "u64_" : "bytes_") +
           std::string(S::layout::name) + "_" + std::string(S::hash::name);
  }
};

template <class S>
class InsertAll : public testing::Test {
 protected:
  using key = typename S::key;
  using layout = typename S::layout;
  using hash = typename S::hash;
  using heap_filter = filter<key, layout, hash>;

  static params description(const geometry& g) {
    return complete({.layout = std::string(layout::name),
                     .hash = std::string(hash::name),
                     .keys = std::is_same_v<key, std::uint64_t> ? key_kind::u64le : key_kind::bytes,
                     .seed = 5,
                     .geometry = g});
  }

  static void expect_the_bytes_of_one_by_one(const geometry& g, std::size_t count, unsigned threads) {
    SCOPED_TRACE(std::to_string(g.bits) + " bits, " + std::to_string(count) + " keys, " + std::to_string(threads) +
                 " threads");
    const keys_of_kind<key> some(count);
    const std::span<const key> keys(some.keys);
    const expectation expected = one_by_one<layout>(g, keys, hash{5});
    heap_filter fixed(g, 0, hash{5});
    any_filter any(description(g)), any_of_hashes(description(g));
    std::vector<key_hash> hashes(count);
    any_of_hashes.hash(keys, hashes);

    for (const std::uint64_t all_new :
         {fixed.insert_all(keys, threads), any.insert_all(keys, threads), any_of_hashes.insert_all(hashes, threads)}) {
      if (threads == 1)
        EXPECT_EQ(all_new, expected.all_new);
      else
        expect_about_as_many(all_new, expected.all_new);
    }

    EXPECT_TRUE(equal(fixed.bytes(), expected.content));
    EXPECT_TRUE(equal(any.bytes(), expected.content));
    EXPECT_TRUE(equal(any_of_hashes.bytes(), expected.content));
    expect_about_as_many(fixed.insert_count(), expected.all_new);
    EXPECT_EQ(fixed.insert_all(keys, threads), 0u);
    EXPECT_EQ(any.insert_all(hashes, threads), 0u);
    EXPECT_TRUE(equal(fixed.bytes(), expected.content));
  }
};
TYPED_TEST_SUITE(InsertAll, subjects, subject_names);

TYPED_TEST(InsertAll, FillsASmallFilterAsOneByOneWithAnyThreads) {
  const geometry g = geometry_of<typename TypeParam::layout>(200'000);
  for (const unsigned threads : {0u, 1u, 2u, 3u, 300u}) {
    for (const std::size_t count : {0u, 1u, 2u, 1023u, 1024u, 1025u, 10'000u}) {
      TestFixture::expect_the_bytes_of_one_by_one(g, count, threads);
    }
  }
}

TYPED_TEST(InsertAll, FillsALargeFilterAsOneByOneWithAnyThreads) {
  const geometry g = geometry_of<typename TypeParam::layout>(large());
  for (const unsigned threads : {1u, 2u, 3u, 300u}) TestFixture::expect_the_bytes_of_one_by_one(g, 50'000, threads);
}

TYPED_TEST(InsertAll, FillsAFilterLargerThanAnyCacheAsOneByOne) {
  const geometry g = geometry_of<typename TypeParam::layout>(larger_than_any);
  for (const std::size_t count : {0u, 1u, 150'000u}) TestFixture::expect_the_bytes_of_one_by_one(g, count, 1);
}

// ---- partitions -----------------------------------------------------------------------------------------------------

// The calls that bulk insertion makes to a layout, watched.
template <class L>
struct watched {
  static inline std::atomic<std::uint64_t> calls{0};
  static inline std::atomic<std::uint64_t> keys{0};
  static inline std::atomic<std::uint64_t> widest{0};  // bytes from the first to the last block of a call's keys

  static std::uint64_t insert(std::uint8_t* at, const geometry& g, const hash_span& some, std::uint8_t* is_new) {
    if (some.size() > 0) {
      std::uint64_t first = ~std::uint64_t{0}, last = 0;
      for (std::size_t i = 0; i < some.size(); ++i) {
        const std::uint64_t block = L::block_of(some.hash(i).hash64, g.bits / L::block_bits);
        first = std::min(first, block);
        last = std::max(last, block);
      }
      const std::uint64_t width = (last - first + 1) * L::block_bits / 8;
      for (std::uint64_t seen = widest; width > seen && !widest.compare_exchange_weak(seen, width);) {
      }
      ++calls;
      keys += some.size();
    }
    return insert_batch<L>(at, g, some, is_new);
  }

  static bulk_target target(std::uint8_t* at, const geometry& g) {
    calls = keys = widest = 0;
    bulk_target result = bulk_target_of<L>(at, g);
    result.insert = insert;
    return result;
  }
};

// Hands out ready halves.
auto handing_out(const std::vector<std::uint64_t>& hash64s) {
  return [&hash64s](std::size_t first, std::size_t count, std::uint64_t* out) {
    std::copy_n(hash64s.begin() + static_cast<std::ptrdiff_t>(first), count, out);
  };
}

template <class L>
expectation one_by_one_of_halves(const geometry& g, const std::vector<std::uint64_t>& hash64s) {
  return one_by_one<L>(g, std::span<const std::uint64_t>(hash64s), [](std::uint64_t hash64) {
    return key_hash{hash64, 0};
  });
}

template <class L>
class BulkInsert : public testing::Test {
 protected:
  using watch = watched<L>;

  // The bytes and the count; returns how many calls to the layout it took.
  static std::uint64_t calls_for(const geometry& g, const std::vector<std::uint64_t>& hash64s, unsigned threads) {
    SCOPED_TRACE(std::to_string(hash64s.size()) + " keys, " + std::to_string(threads) + " threads");
    const expectation expected = one_by_one_of_halves<L>(g, hash64s);
    heap_storage actual(g.bits / 8);

    const std::uint64_t all_new =
        bulk_insert(watch::target(actual.data(), g), hash64s.size(), handing_out(hash64s), threads);

    EXPECT_TRUE(equal({actual.data(), actual.size()}, expected.content));
    EXPECT_EQ(watch::keys, hash64s.size());
    if (threads == 1)
      EXPECT_EQ(all_new, expected.all_new);
    else
      expect_about_as_many(all_new, expected.all_new);
    return watch::calls;
  }
};

using layouts_by_halves =
    testing::Types<layouts::split_block, layouts::split_block512, layouts::blocked, layouts::blocked_page>;
TYPED_TEST_SUITE(BulkInsert, layouts_by_halves, names_of_layouts);
static_assert(layout_by_hash64<layouts::split_block> && layout_by_hash64<layouts::split_block512> &&
              layout_by_hash64<layouts::blocked> && layout_by_hash64<layouts::blocked_page> &&
              !layout_by_hash64<layouts::classic>);

TYPED_TEST(BulkInsert, BringsKeysTogetherThatFitACoresOwnCacheWithAnyThreads) {
  const geometry g = geometry_of<TypeParam>(large());
  const auto hash64s = integer_keys(300'000, 3);
  for (const unsigned threads : {3u, 4u, 16u}) {
    TestFixture::calls_for(g, hash64s, threads);

    EXPECT_LE(TestFixture::watch::widest, own_cache_size()) << threads;
  }
}

TYPED_TEST(BulkInsert, TakesKeysThatAreAllAlikeRoundByRoundWithAnyThreads) {
  const geometry g = geometry_of<TypeParam>(large());
  const std::vector<std::uint64_t> hash64s(200'000, 0x123456789ABCDEF0);
  TestFixture::calls_for(g, hash64s, 1);
  for (const unsigned threads : {3u, 4u}) {
    const std::uint64_t rounds = TestFixture::calls_for(g, hash64s, threads) / (2 * threads);  // region and buffer

    EXPECT_GT(rounds, 3u);
  }
}

// Nine keys of ten in the last sixtieth of the filter, the others anywhere.
TYPED_TEST(BulkInsert, TakesUnevenKeysRoundByRoundWithAnyThreads) {
  const geometry g = geometry_of<TypeParam>(large());
  auto hash64s = integer_keys(300'000, 4);
  for (std::size_t i = 0; i < hash64s.size(); ++i) {
    if (i % 10 != 0) hash64s[i] = ~(hash64s[i] / 60);
  }
  hash64s.front() = ~std::uint64_t{0};
  hash64s.back() = 0;
  for (const unsigned threads : {1u, 2u, 3u}) TestFixture::calls_for(g, hash64s, threads);
}

TYPED_TEST(BulkInsert, AddsToWhatIsThere) {
  const geometry g = geometry_of<TypeParam>(large());
  auto hash64s = integer_keys(300'000, 5);
  heap_storage actual(g.bits / 8);
  const std::vector<std::uint64_t> earlier(hash64s.begin(), hash64s.begin() + 150'000);
  const std::vector<std::uint64_t> later(hash64s.begin() + 150'000, hash64s.end());

  bulk_insert(TestFixture::watch::target(actual.data(), g), earlier.size(), handing_out(earlier), 1);
  bulk_insert(TestFixture::watch::target(actual.data(), g), later.size(), handing_out(later), 1);

  EXPECT_TRUE(equal({actual.data(), actual.size()}, one_by_one_of_halves<TypeParam>(g, hash64s).content));
}

// As many as fill all regions more than once, and as many threads as they are dealt to.
TEST(BulkInsertStatistic, OfMoreKeysThanRegionsHoldGivesTheBytesOfOneByOneWithAnyThreads) {
  if (!bloomery_tests::is_long()) GTEST_SKIP() << "SKIP: BLOOMERY_LONG=1 asks for it";
  const geometry g = geometry_of<layouts::split_block512>(larger_than_any);
  const auto hash64s = integer_keys(12'000'000, 6);
  const expectation expected = one_by_one_of_halves<layouts::split_block512>(g, hash64s);
  for (const unsigned threads : {1u, 2u, 150u}) {
    heap_storage actual(g.bits / 8);

    bulk_insert(watched<layouts::split_block512>::target(actual.data(), g), hash64s.size(), handing_out(hash64s),
                threads);

    EXPECT_TRUE(equal({actual.data(), actual.size()}, expected.content));
    if (threads > 2) {
      EXPECT_LE(watched<layouts::split_block512>::widest, own_cache_size());
    }
  }
}

// By partition, calls take keys from one partition; by two threads, from one half of the filter.
TEST(BulkInsertPlan, TwoThreadsNeverInsertIntoTheSameHalf) {
  using layout = layouts::split_block512;
  const auto hash64s = integer_keys(400'000, 9);
  const geometry g = geometry_of<layout>(large());
  heap_storage into(g.bits / 8);

  bulk_insert(watched<layout>::target(into.data(), g), hash64s.size(), handing_out(hash64s), 2);

  EXPECT_TRUE(bulk_insert_pays(bulk_target_of<layout>(into.data(), g), hash64s.size(), 2));
  EXPECT_LE(watched<layout>::widest, is_amd() ? g.bits / 16 + 64 : own_cache_size());
}

TEST(BulkInsertPlan, FewKeysAndSmallFiltersTakeOneThread) {
  using layout = layouts::split_block512;
  const geometry small = geometry_of<layout>(8 * own_cache_size() / 2);
  const geometry g = geometry_of<layout>(large());
  heap_storage into(g.bits / 8);

  EXPECT_FALSE(bulk_insert_pays(bulk_target_of<layout>(into.data(), small), 10'000'000, 2));
  EXPECT_FALSE(bulk_insert_pays(bulk_target_of<layout>(into.data(), g), 10'000'000, 1) && is_amd());
  EXPECT_FALSE(bulk_insert_pays(bulk_target_of<layout>(into.data(), g), 1000, 2));
}

// ---- schemes, kinds, files ------------------------------------------------------------------------------------------

TEST(InsertAllOfAScheme, IsOneByOne) {
  const keys_of_kind<std::string_view> some(5000);
  for (const char* scheme : {"guava", "perl"}) {
    any_filter single(complete({.scheme = scheme, .capacity = 5000, .target_fpr = 0.01}));
    any_filter all(single.parameters());
    std::uint64_t expected = 0;

    for (const std::string_view key : some.keys) expected += single.insert(key) ? 1 : 0;

    EXPECT_EQ(all.insert_all(std::span<const std::string_view>(some.keys), 2), expected);
    EXPECT_TRUE(equal(all.bytes(), single.bytes()));
    EXPECT_EQ(all.insert_count(), expected);
  }
}

TEST(InsertAllIntoAFile, LeavesAFileThatVerifiesAndEqualsOneByOneWithAnyThreads) {
  const scratch_folder folder;
  const auto numbers = integer_keys(200'000, 8);
  const std::span<const std::uint64_t> keys(numbers);
  for (const std::uint64_t bits : {std::uint64_t{400'000}, large()}) {
    for (const char* layout : {"split_block", "split_block512", "blocked_page", "classic"}) {
      SCOPED_TRACE(std::string(layout) + ", " + std::to_string(bits) + " bits");
      const params p =
          complete({.layout = layout, .keys = key_kind::u64le, .geometry = {bits / 32'768 * 32'768, 8}, .capacity = 0});
      any_filter heap(p);
      any_filter single = any_filter::create(folder / "single", p);
      any_filter all = any_filter::create(folder / "all", p);
      for (const std::uint64_t key : numbers) single.insert(key);

      all.insert_all(keys.first(100'000), 1);
      all.insert_all(keys.subspan(100'000), 3);
      heap.insert_all(keys, 1);
      EXPECT_EQ(heap.insert_count(), single.insert_count());
      single.close();
      all.close();

      const inspection seen = inspect(folder / "all", file_check::payload);
      EXPECT_TRUE(seen.usable && seen.info.clean && seen.problems.empty());
      const any_filter reopened = any_filter::open(folder / "all", {.check = file_check::payload});
      const any_filter expected = any_filter::open(folder / "single", {.check = file_check::payload});
      EXPECT_TRUE(equal(reopened.bytes(), expected.bytes()));
      EXPECT_TRUE(equal(heap.bytes(), expected.bytes()));
      expect_about_as_many(reopened.insert_count(), expected.insert_count());
    }
  }
}

TEST(InsertAllIntoAFile, OfATemplateVerifiesToo) {
  const scratch_folder folder;
  const auto keys = integer_keys(50'000, 9);
  using mapped_filter = filter<std::uint64_t, layouts::split_block512, mix, mapped_storage>;
  const geometry g = geometry_of<layouts::split_block512>(800'000);
  auto all = mapped_filter::create(folder / "all", g, 0);

  const std::uint64_t all_new = all.insert_all(keys, 1);
  all.close();

  EXPECT_TRUE(inspect(folder / "all", file_check::payload).problems.empty());
  const auto reopened = mapped_filter::open(folder / "all", {.check = file_check::payload});
  const expectation expected = one_by_one<layouts::split_block512>(g, std::span<const std::uint64_t>(keys), mix{});
  EXPECT_EQ(all_new, expected.all_new);
  EXPECT_EQ(reopened.insert_count(), expected.all_new);
  EXPECT_TRUE(equal(reopened.bytes(), expected.content));
}

// ---- without memory -------------------------------------------------------------------------------------------------

std::uint64_t address_space_in_use() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t pages = 0;
  statm >> pages;
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

void limit_address_space(std::uint64_t most) {
  const rlimit limit{most, RLIM_INFINITY};
  if (::setrlimit(RLIMIT_AS, &limit) != 0) std::abort();
}

// Limits this process to `more_bytes` more memory, and exhausts the heap's free memory.
void allow_only(std::uint64_t more_bytes) {
  const std::uint64_t in_use = address_space_in_use();  // read once, because a stream allocates memory
  limit_address_space(in_use);
  for (std::size_t size = std::size_t{64} << 10; size >= 16; size /= 2) {
    while (std::malloc(size) != nullptr) {
    }
  }
  limit_address_space(in_use + more_bytes);
}

// "Huge" in these names excludes them from sanitizer builds, which need extra memory.
//
// Scratch memory is taken by new or in whole pages, by its size; threads need stacks. What cannot be had is done
// without.
TEST(HugeNeedOfMemory, LeavesInsertAllWithTheBytesOfOneByOne) {
  const geometry g = geometry_of<layouts::split_block512>(larger_than_any);
  for (const std::size_t count : {150'000u, 600'000u}) {
    const auto keys = integer_keys(count, 10);
    const expectation expected = one_by_one<layouts::split_block512>(g, std::span<const std::uint64_t>(keys), mix{});
    for (const unsigned threads : {1u, 2u}) {
      for (const std::uint64_t mebibytes : {0u, 1u, 3u, 9u, 12u}) {
        SCOPED_TRACE(std::to_string(mebibytes) + " MiB, " + std::to_string(threads) + " threads, " +
                     std::to_string(count) + " keys");

        const int status = status_of_child([&] {
          filter<std::uint64_t, layouts::split_block512> seen(g);
          allow_only(mebibytes << 20);
          const std::uint64_t all_new = seen.insert_all(keys, threads);
          if (threads == 1 && all_new != expected.all_new) return 1;
          return equal(seen.bytes(), expected.content) ? 0 : 2;
        });

        EXPECT_EQ(status, 0);
      }
    }
  }
}

TEST(HugeNeedOfMemory, ThatTheSystemRefusesIsAnError) {
  for (const std::uint64_t bits : {mebibyte_bits * 1, mebibyte_bits * 40}) {
    const int status = status_of_child([&] {
      std::vector<heap_storage> all;
      all.reserve(1000);
      allow_only(std::uint64_t{1} << 20);
      const auto fill_memory = [&] {
        for (int i = 0; i < 1000; ++i) all.emplace_back(bits / 8);
      };
      return code_of(fill_memory) == errc::too_large ? 0 : 1;
    });

    EXPECT_EQ(status, 0) << bits / 8 << " bytes each";
  }
}

}  // namespace
}  // namespace bloomery
