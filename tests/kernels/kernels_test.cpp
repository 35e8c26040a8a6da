// Every set of kernels of this build against the layouts' definitions, one key at a time and bit for bit.
//
// KernelBatch runs once for each set and layout: KernelBatch.WritesTheBitsOfTheDefinition/avx2_line. KernelSet runs
// once for each set. Sets that this processor cannot run are skipped.
#include <bloomery/detail/bits.hpp>
#include <bloomery/detail/hash_span.hpp>
#include <bloomery/filter.hpp>
#include <bloomery/hash.hpp>
#include <bloomery/kernel.hpp>
#include <bloomery/layout.hpp>
#include <bloomery/layouts/blocked.hpp>
#include <bloomery/layouts/classic.hpp>
#include <bloomery/layouts/split_block.hpp>
#include <bloomery/layouts/split_block512.hpp>

#include "kernels/dispatch.hpp"
#include "kernels/kernels.hpp"
#include "support/fenced.hpp"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <random>
#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace bloomery {
namespace {

using bloomery_tests::fence;
using bloomery_tests::fenced;
using kernels::kernel_set;
using kernels::layout_kernel;

bool wants_long_tests() {
  const char* const wish = std::getenv("BLOOMERY_LONG");
  return wish != nullptr && *wish != '\0' && *wish != '0';
}

// ---- what is tested -------------------------------------------------------------------------------------------------

struct layout_under_test {
  const char* name;
  std::uint64_t block_bits;
  std::vector<std::uint32_t> probes;
  layout_kernel kernel_set::*calls;
  bool (*insert_cells)(std::uint8_t* bytes, const geometry& g, key_hash hash) noexcept;
  bool (*has_cells)(const std::uint8_t* bytes, const geometry& g, key_hash hash) noexcept;
  std::uint64_t (*block_of)(std::uint64_t hash64, std::uint64_t blocks) noexcept;

  std::uint64_t block_bytes() const { return block_bits / 8; }
};

template <class L>
layout_under_test row_of(std::vector<std::uint32_t> probes, layout_kernel kernel_set::*calls) {
  return {L::name.data(), L::block_bits, std::move(probes), calls, insert_cells<L>, has_cells<L>, L::block_of};
}

const layout_under_test layouts[] = {
    row_of<layouts::split_block>({8}, &kernel_set::split_block),
    row_of<layouts::split_block512>({8}, &kernel_set::split_block512),
    row_of<layouts::blocked>({1, 2, 6, 7, 8, 9, 16, 17, 40, 255}, &kernel_set::blocked),
};

constexpr kernels::form forms[] = {kernels::form::hashes, kernels::form::hash64s, kernels::form::mixed};
constexpr kernels::fetch fetches[] = {kernels::fetch::none, kernels::fetch::first_level, kernels::fetch::second_level};
constexpr std::size_t counts[] = {0, 1, 2, 7, 8, 9, 15, 16, 63, 64, 65, 127, 128, 129, 191, 192, 193, 256, 997};
constexpr std::uint64_t whitening = 0xFEDCBA9876543210;

// ---- keys -----------------------------------------------------------------------------------------------------------

// Corners of the arithmetic: no bit, all bits, each one alone and each one missing.
std::vector<std::uint64_t> extreme_words() {
  std::vector<std::uint64_t> words = {0, ~std::uint64_t{0}, 0xFFFFFFFF, 0xFFFFFFFF00000000};
  for (unsigned bit = 0; bit < 64; ++bit) {
    words.push_back(std::uint64_t{1} << bit);
    words.push_back(~(std::uint64_t{1} << bit));
  }
  return words;
}

// Random words, some of them twice, some extreme.
std::vector<std::uint64_t> key_words(std::size_t count, std::uint64_t seed) {
  static const std::vector<std::uint64_t> extreme = extreme_words();
  std::mt19937_64 random(seed);
  std::vector<std::uint64_t> words(count);
  for (std::size_t i = 0; i < count; ++i) {
    words[i] = i % 7 == 5 ? words[i - 3] : i % 5 == 0 ? extreme[random() % extreme.size()] : random();
  }
  return words;
}

// Keys as a kernel takes them, ending right before a page that cannot be read. They are aligned to a word, no more.
class form_of_keys {
 public:
  form_of_keys(kernels::form form, const std::vector<std::uint64_t>& words)
      : form_(form), count_(words.size()), words_(form == kernels::form::hashes ? 2 * count_ : count_) {
    for (std::size_t i = 0; i < count_; ++i) {
      if (form == kernels::form::hashes) {
        words_[2 * i] = words[i];
        words_[2 * i + 1] = ~words[i] * 3;  // no kernel's business
      } else {
        words_[i] = words[i];
      }
    }
  }

  kernels::keys keys() const { return {words_.data(), count_, whitening, form_}; }
  std::size_t size() const { return count_; }
  key_hash hash(std::size_t i) const {
    if (form_ == kernels::form::hashes) return {words_[2 * i], words_[2 * i + 1]};
    return {form_ == kernels::form::hash64s ? words_[i] : bloomery::mix64(words_[i] ^ whitening), 0};
  }

 private:
  kernels::form form_;
  std::size_t count_;
  fenced<std::uint64_t> words_;
};

// ---- one kernel, one layout -----------------------------------------------------------------------------------------

class KernelBatch : public testing::TestWithParam<std::tuple<const kernel_set*, const layout_under_test*>> {
 protected:
  void SetUp() override {
    if (!set().supported()) GTEST_SKIP() << "SKIP: this processor has not all of " << set().needs;
  }

  static const kernel_set& set() { return *std::get<0>(GetParam()); }
  static const layout_under_test& layout() { return *std::get<1>(GetParam()); }
  static const layout_kernel& kernel() { return set().*layout().calls; }
};

std::vector<const layout_under_test*> all_layouts() {
  std::vector<const layout_under_test*> all;
  for (const layout_under_test& each : layouts) all.push_back(&each);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Each, KernelBatch,
                         testing::Combine(testing::ValuesIn(kernels::kernel_sets), testing::ValuesIn(all_layouts())),
                         [](const auto& each) {
                           return std::string(std::get<0>(each.param)->name) + "_" + std::get<1>(each.param)->name;
                         });

// A filter beside what its definition makes of the same keys.
class twins {
 public:
  twins(const layout_under_test& layout, const layout_kernel& kernel, const geometry& g, kernels::fetch fetch,
        std::size_t offset, fence side)
      : layout_(layout),
        kernel_(kernel),
        geometry_(g),
        fetch_(fetch),
        offset_(offset),
        expected_(g.bits / 8),
        memory_(g.bits / 8 + offset, side) {
    // Off the fence by `offset` bytes, which are watched.
    actual_ = side == fence::before ? memory_.data() + offset : memory_.data();
    margin_ = side == fence::before ? memory_.data() : memory_.data() + g.bits / 8;
    std::fill_n(margin_, offset, std::uint8_t{0xAA});
  }

  kernels::blocks blocks() const { return {actual_, geometry_.bits / layout_.block_bits, geometry_.probes, fetch_}; }

  void insert(const form_of_keys& keys, bool with_answers) {
    std::uint64_t expected_count = 0;
    std::vector<std::uint8_t> expected_new(keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      expected_new[i] = layout_.insert_cells(expected_.data(), geometry_, keys.hash(i)) ? 1 : 0;
      expected_count += expected_new[i];
    }
    const fenced<std::uint8_t> is_new(keys.size());
    std::fill_n(is_new.data(), is_new.size(), std::uint8_t{0xAA});

    const std::uint64_t count = kernel_.insert(blocks(), keys.keys(), with_answers ? is_new.data() : nullptr);

    ASSERT_EQ(count, expected_count);
    if (with_answers) {
      ASSERT_TRUE(std::equal(expected_new.begin(), expected_new.end(), is_new.data()));
    }
  }

  void look_up(const form_of_keys& keys) const {
    std::vector<std::uint64_t> expected((keys.size() + 63) / 64);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      expected[i / 64] |= std::uint64_t{layout_.has_cells(expected_.data(), geometry_, keys.hash(i))} << i % 64;
    }
    const fenced<std::uint64_t> answers(expected.size());
    std::fill_n(answers.data(), answers.size(), 0xAAAAAAAAAAAAAAAA);

    kernel_.has(blocks(), keys.keys(), answers.data());

    ASSERT_TRUE(std::equal(expected.begin(), expected.end(), answers.data()));  // unused bits are 0 in both
  }

  void compare() const {
    ASSERT_EQ(std::memcmp(actual_, expected_.data(), expected_.size()), 0);
    ASSERT_EQ(std::count(margin_, margin_ + offset_, 0xAA), static_cast<std::ptrdiff_t>(offset_));
  }

 private:
  const layout_under_test& layout_;
  const layout_kernel& kernel_;
  geometry geometry_;
  kernels::fetch fetch_;
  std::size_t offset_;
  std::vector<std::uint8_t> expected_;
  fenced<std::uint8_t> memory_;
  std::uint8_t* actual_;
  std::uint8_t* margin_;
};

// Inserts into two twins, one of which is asked which keys are new, and looks up those keys and others.
void expect_twins_agree(const layout_under_test& layout, const layout_kernel& kernel, const geometry& g,
                        kernels::form form, kernels::fetch fetch, std::size_t offset, std::size_t count) {
  SCOPED_TRACE(std::to_string(g.bits / layout.block_bits) + " blocks, " + std::to_string(g.probes) + " probes, form " +
               std::to_string(static_cast<int>(form)) + ", fetch " + std::to_string(static_cast<int>(fetch)) +
               ", offset " + std::to_string(offset) + ", " + std::to_string(count) + " keys");
  const std::vector<std::uint64_t> words = key_words(count, g.bits + g.probes + count);
  std::vector<std::uint64_t> asked = key_words(count, g.bits + g.probes + count + 1);
  for (std::size_t i = 0; i < count; i += 2) asked[i] = words[i / 2];
  twins told(layout, kernel, g, fetch, offset, fence::behind);
  twins silent(layout, kernel, g, fetch, offset, fence::before);

  ASSERT_NO_FATAL_FAILURE(told.insert({form, words}, true));
  ASSERT_NO_FATAL_FAILURE(silent.insert({form, words}, false));
  ASSERT_NO_FATAL_FAILURE(told.look_up({form, asked}));
  ASSERT_NO_FATAL_FAILURE(silent.look_up({form, words}));

  ASSERT_NO_FATAL_FAILURE(told.compare());
  ASSERT_NO_FATAL_FAILURE(silent.compare());
}

TEST_P(KernelBatch, WritesTheBitsAndGivesTheAnswersOfTheDefinition) {
  for (const std::uint32_t probes : layout().probes) {
    for (const std::uint64_t blocks : {1u, 2u, 3u, 1000u}) {
      for (const kernels::form form : forms) {
        for (const kernels::fetch fetch : fetches) {
          for (const std::size_t count : counts) {
            const std::size_t offset = count % 3 + (count % 3 == 2 ? 1 : 0);  // 0, 1, 3
            ASSERT_NO_FATAL_FAILURE(expect_twins_agree(layout(), kernel(), {layout().block_bits * blocks, probes}, form,
                                                       fetch, offset, count));
          }
        }
      }
    }
  }
}

TEST_P(KernelBatch, WritesTheBitsOfTheDefinitionInALargerFilter) {
  const std::uint64_t blocks = (1 << 16) + 1;
  for (const kernels::form form : forms) {
    for (const kernels::fetch fetch : fetches) {
      for (const std::size_t offset : {0u, 1u, 3u}) {
        const geometry g{layout().block_bits * blocks, layout().probes.back() == 8 ? 8 : 7u};
        ASSERT_NO_FATAL_FAILURE(expect_twins_agree(layout(), kernel(), g, form, fetch, offset, 997));
      }
    }
  }
}

TEST_P(KernelBatch, WritesTheBitsOfTheDefinitionForVeryManyKeys) {
  const std::size_t count = wants_long_tests() ? 10'000'000 : 1'000'000;
  const geometry g{layout().block_bits * (count / 40 + 1), layout().probes.back() == 8 ? 8 : 9u};
  for (const kernels::form form : forms) {
    ASSERT_NO_FATAL_FAILURE(expect_twins_agree(layout(), kernel(), g, form, fetches[static_cast<int>(form)], 1, count));
  }
}

TEST_P(KernelBatch, AddsBatchToBatch) {
  for (const std::uint32_t probes : layout().probes) {
    for (const kernels::fetch fetch : fetches) {
      twins both(layout(), kernel(), {layout().block_bits * 100, probes}, fetch, 3, fence::behind);
      for (const std::size_t count : counts) {
        const std::vector<std::uint64_t> words = key_words(count, count);

        ASSERT_NO_FATAL_FAILURE(both.insert({kernels::form::hash64s, words}, true));
        ASSERT_NO_FATAL_FAILURE(both.insert({kernels::form::hashes, words}, true));  // nothing is new
      }

      ASSERT_NO_FATAL_FAILURE(both.compare());
    }
  }
}

TEST_P(KernelBatch, TellsTheSecondOfTwoEqualKeysThatItIsNotNew) {
  for (const std::uint32_t probes : layout().probes) {
    for (const kernels::fetch fetch : fetches) {
      for (const std::size_t count : {2u, 9u, 64u, 65u, 129u, 1000u}) {
        std::vector<std::uint8_t> filter(layout().block_bytes() * 3);
        const form_of_keys keys(kernels::form::mixed, std::vector<std::uint64_t>(count, 42));
        std::vector<std::uint8_t> expected(count), is_new(count, 7);
        expected[0] = 1;

        const std::uint64_t all_new = kernel().insert({filter.data(), 3, probes, fetch}, keys.keys(), is_new.data());

        ASSERT_EQ(all_new, 1u);
        ASSERT_EQ(is_new, expected);
      }
    }
  }
}

TEST_P(KernelBatch, DoesToOneKeyInItsBlockWhatItsCellsSay) {
  for (const std::uint32_t probes : layout().probes) {
    for (const fence side : {fence::before, fence::behind}) {
      const geometry g{layout().block_bits, probes};
      std::vector<std::uint8_t> expected(layout().block_bytes());
      const fenced<std::uint8_t> actual(expected.size(), side);
      std::vector<std::uint64_t> hash64s = key_words(50, probes);
      const std::vector<std::uint64_t> extreme = extreme_words();
      hash64s.insert(hash64s.end(), extreme.begin(), extreme.end());
      for (const std::uint64_t hash64 : hash64s) {
        const bool had = layout().has_cells(expected.data(), g, {hash64, 0});
        ASSERT_EQ(kernel().has_one(actual.data(), hash64, probes), had);
        const bool is_new = layout().insert_cells(expected.data(), g, {hash64, 0});
        ASSERT_EQ(kernel().insert_one(actual.data(), hash64, probes), is_new);
        ASSERT_TRUE(kernel().has_one(actual.data(), hash64, probes));
        ASSERT_TRUE(std::equal(expected.begin(), expected.end(), actual.data()));
        if (!is_new) std::fill(expected.begin(), expected.end(), std::uint8_t{0});  // full enough: once more from 0
        if (!is_new) std::fill_n(actual.data(), actual.size(), std::uint8_t{0});
      }
    }
  }
}

TEST_P(KernelBatch, MissesAKeyThatLacksAnyOneOfItsBits) {
  for (const std::uint32_t probes : layout().probes) {
    const geometry g{layout().block_bits, probes};
    for (const std::uint64_t hash64 : key_words(20, 5)) {
      std::vector<std::uint8_t> only(layout().block_bytes());
      layout().insert_cells(only.data(), g, {hash64, 0});
      for (std::uint64_t bit = 0; bit < layout().block_bits; ++bit) {
        if (!test_bit(only.data(), bit)) continue;
        std::vector<std::uint8_t> block(layout().block_bytes(), 0xFF);
        block[bit >> 3] ^= static_cast<std::uint8_t>(1 << (bit & 7));
        std::uint64_t answer = 7;
        std::uint8_t is_new = 7;

        ASSERT_FALSE(kernel().has_one(block.data(), hash64, probes)) << bit;
        kernel().has({block.data(), 1, probes, kernels::fetch::none}, {&hash64, 1, 0, kernels::form::hash64s}, &answer);
        ASSERT_EQ(answer, 0u) << bit;
        kernel().insert({block.data(), 1, probes, kernels::fetch::none}, {&hash64, 1, 0, kernels::form::hash64s},
                        &is_new);
        ASSERT_EQ(is_new, 1) << bit;
        ASSERT_EQ(block, std::vector<std::uint8_t>(block.size(), 0xFF)) << bit;
      }
    }
  }
}

// ---- more blocks than 32 bits can number ----------------------------------------------------------------------------

// Address space that costs memory only where it is touched.
class vast_memory {
 public:
  explicit vast_memory(std::uint64_t bytes)
      : bytes_(bytes),
        begin_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    if (granted()) ::madvise(begin_, bytes_, MADV_NOHUGEPAGE);
  }
  vast_memory(const vast_memory&) = delete;
  vast_memory& operator=(const vast_memory&) = delete;
  ~vast_memory() {
    if (granted()) ::munmap(begin_, bytes_);
  }

  bool granted() const { return begin_ != MAP_FAILED; }
  std::uint8_t* data() const { return static_cast<std::uint8_t*>(begin_); }

 private:
  std::uint64_t bytes_;
  void* begin_;
};

TEST_P(KernelBatch, FindsItsWayInAHugeFilter) {
  const bool is_split_block = std::string(layout().name) == "split_block";
  const std::uint64_t blocks = (std::uint64_t{1} << 32) + (is_split_block ? 0 : 3);
  for (const std::uint64_t fewer : {std::uint64_t{0}, std::uint64_t{5}}) {
    const geometry g{(blocks - fewer) * layout().block_bits, layout().probes.back() == 8 ? 8 : 9u};
    const vast_memory expected(g.bits / 8), actual(g.bits / 8);
    if (!expected.granted() || !actual.granted()) {
      GTEST_SKIP() << "SKIP: the system does not give " << g.bits / 8
                   << " bytes of addresses: " << std::strerror(errno);
    }
    for (const kernels::form form : forms) {
      const kernels::fetch fetch = fetches[static_cast<int>(form)];
      const form_of_keys keys(form, key_words(300, static_cast<std::uint64_t>(form)));
      const kernels::blocks at{actual.data(), blocks - fewer, g.probes, fetch};
      std::vector<std::uint8_t> expected_new, is_new(keys.size());

      for (std::size_t i = 0; i < keys.size(); ++i) {
        expected_new.push_back(layout().insert_cells(expected.data(), g, keys.hash(i)) ? 1 : 0);
      }
      kernel().insert(at, keys.keys(), is_new.data());

      ASSERT_EQ(is_new, expected_new);
      for (std::size_t i = 0; i < keys.size(); ++i) {
        const std::uint64_t block = layout().block_of(keys.hash(i).hash64, blocks - fewer);
        ASSERT_LT(block, blocks - fewer);
        const std::uint64_t first = block * layout().block_bytes();
        ASSERT_EQ(std::memcmp(actual.data() + first, expected.data() + first, layout().block_bytes()), 0) << block;
      }
      const form_of_keys asked(form, key_words(300, 77));
      std::vector<std::uint64_t> answers(5), expected_answers(5);
      for (std::size_t i = 0; i < asked.size(); ++i) {
        expected_answers[i / 64] |= std::uint64_t{layout().has_cells(expected.data(), g, asked.hash(i))} << i % 64;
      }
      kernel().has(at, asked.keys(), answers.data());
      ASSERT_EQ(answers, expected_answers);
    }
  }
}

// ---- halves and scatter ---------------------------------------------------------------------------------------------

class KernelSet : public testing::TestWithParam<const kernel_set*> {
 protected:
  void SetUp() override {
    if (!GetParam()->supported()) GTEST_SKIP() << "SKIP: this processor has not all of " << GetParam()->needs;
  }
};
INSTANTIATE_TEST_SUITE_P(Each, KernelSet, testing::ValuesIn(kernels::kernel_sets),
                         [](const auto& each) { return std::string(each.param->name); });

TEST_P(KernelSet, WritesTheFirstHalfOfEachHash) {
  for (const kernels::form form : forms) {
    for (const std::size_t count : counts) {
      const form_of_keys keys(form, key_words(count, count));
      const fenced<std::uint64_t> hash64s(count);

      GetParam()->hash64s(keys.keys(), hash64s.data());

      for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(hash64s[i], keys.hash(i).hash64)
            << "key " << i << " of " << count << ", form " << static_cast<int>(form);
      }
    }
  }
}

// The memory of a scatter, and what has come to each partition so far.
class dealt {
 public:
  dealt(std::uint64_t block_count, std::uint32_t shift, bool split_rule, std::size_t region_size)
      : partitions_(((block_count - 1) >> shift) + 1),
        region_size_(region_size),
        buffers_(partitions_ * kernels::scatter_buffer + slack),
        regions_(partitions_ * region_size),
        used_(partitions_),
        filled_(partitions_),
        into_{block_count,  shift,           split_rule,     aligned(buffers_),
              used_.data(), regions_.data(), filled_.data(), region_size} {
    static_assert(slack * sizeof(std::uint64_t) >= 128);
  }

  const kernels::partitions& into() const { return into_; }
  std::size_t partitions() const { return partitions_; }
  bool is_full(std::size_t partition) const { return filled_[partition] == region_size_; }

  std::uint64_t partition_of(std::uint64_t hash64) const {
    return (into_.split_rule ? layouts::split_block::block_of(hash64, into_.block_count)
                             : layouts::split_block512::block_of(hash64, into_.block_count)) >>
           into_.shift;
  }

  // The keys of a partition, in the order in which they came, and emptied.
  std::vector<std::uint64_t> take(std::size_t partition) {
    std::vector<std::uint64_t> hash64s(into_.regions + partition * region_size_,
                                       into_.regions + partition * region_size_ + filled_[partition]);
    const std::uint64_t* const buffer = into_.buffers + partition * kernels::scatter_buffer;
    hash64s.insert(hash64s.end(), buffer, buffer + used_[partition]);
    filled_[partition] = used_[partition] = 0;
    return hash64s;
  }

 private:
  static constexpr std::size_t slack = 16;  // words: buffers are aligned to 128 bytes

  static std::uint64_t* aligned(const fenced<std::uint64_t>& words) {
    const auto at = reinterpret_cast<std::uintptr_t>(words.data());
    return words.data() + (128 - at % 128) % 128 / sizeof(std::uint64_t);
  }

  std::size_t partitions_;
  std::size_t region_size_;
  fenced<std::uint64_t> buffers_;
  fenced<std::uint64_t> regions_;  // a multiple of 128 bytes, so both its ends are fenced and it is aligned
  std::vector<std::uint32_t> used_;
  std::vector<std::uint32_t> filled_;
  kernels::partitions into_;
};

// Each partition's keys among the first `taken`, by the layouts' own numbers of blocks.
std::vector<std::vector<std::uint64_t>> sorted_by_partition(const dealt& d, std::span<const std::uint64_t> hash64s) {
  std::vector<std::vector<std::uint64_t>> all(d.partitions());
  for (const std::uint64_t hash64 : hash64s) all[d.partition_of(hash64)].push_back(hash64);
  return all;
}

struct dealing {
  std::uint64_t blocks;
  std::uint32_t shift;
};

constexpr dealing dealings[] = {{1, 0},     {1, 14},    {2, 0},      {3, 1},           {1000, 3},
                                {1024, 10}, {1025, 10}, {65'537, 9}, {0x12345678, 24}, {0xFFFFFFFF, 26}};

TEST_P(KernelSet, ScattersKeysToTheirPartitionsInOrder) {
  for (const bool split_rule : {false, true}) {
    std::vector<dealing> all(std::begin(dealings), std::end(dealings));
    if (split_rule) all.push_back({std::uint64_t{1} << 32, 25});
    for (const dealing& each : all) {
      for (const std::size_t count : counts) {
        SCOPED_TRACE(std::to_string(each.blocks) + " blocks, shift " + std::to_string(each.shift) + ", " +
                     std::to_string(count) + " keys");
        dealt d(each.blocks, each.shift, split_rule, 1008);
        const std::vector<std::uint64_t> words = key_words(count, each.blocks + count);
        const fenced<std::uint64_t> hash64s(count);
        std::copy(words.begin(), words.end(), hash64s.data());

        const std::size_t taken = GetParam()->scatter(d.into(), hash64s.data(), count);

        ASSERT_EQ(taken, count);  // a region holds them all
        const auto expected = sorted_by_partition(d, words);
        for (std::size_t part = 0; part < d.partitions(); ++part) ASSERT_EQ(d.take(part), expected[part]) << part;
      }
    }
  }
}

TEST_P(KernelSet, ScattersCallAfterCallIntoTheSameRegions) {
  dealt d(1000, 5, false, 5008);  // room for all keys in one region
  const std::vector<std::uint64_t> words = key_words(5000, 9);
  std::mt19937_64 random(1);
  for (std::size_t next = 0; next < words.size();) {
    const std::size_t count = std::min<std::size_t>(random() % 200, words.size() - next);
    ASSERT_EQ(GetParam()->scatter(d.into(), words.data() + next, count), count);
    next += count;
  }

  const auto expected = sorted_by_partition(d, words);
  for (std::size_t part = 0; part < d.partitions(); ++part) ASSERT_EQ(d.take(part), expected[part]) << part;
}

TEST_P(KernelSet, ScattersUntilARegionIsFullAndLosesNothing) {
  for (const std::size_t region_size : {16u, 32u, 64u}) {
    for (const bool all_alike : {false, true}) {
      dealt d(777, 6, true, region_size);
      std::vector<std::uint64_t> words = key_words(5000, region_size);
      if (all_alike) std::fill(words.begin(), words.end(), words[1]);
      std::vector<std::vector<std::uint64_t>> all(d.partitions());
      std::size_t rounds = 0;
      for (std::size_t next = 0; next < words.size(); ++rounds) {
        const std::size_t taken = GetParam()->scatter(d.into(), words.data() + next, words.size() - next);

        ASSERT_GT(taken, 0u);
        next += taken;
        if (next < words.size()) {
          ASSERT_TRUE(d.is_full(d.partition_of(words[next])));
        }
        for (std::size_t part = 0; part < d.partitions(); ++part) {
          const auto some = d.take(part);
          ASSERT_LE(some.size(), region_size + kernels::scatter_buffer);
          all[part].insert(all[part].end(), some.begin(), some.end());
        }
      }

      EXPECT_EQ(all, sorted_by_partition(d, words));
      EXPECT_GT(rounds, 3u);
    }
  }
}

// ---- census ---------------------------------------------------------------------------------------------------------

// Fills of memory: none, all, and random ones of several densities.
constexpr double densities[] = {0, 1, 0.5, 0.02, 0.98};

void fill_with_bits(std::span<std::uint8_t> bytes, double density, std::mt19937_64& random) {
  std::bernoulli_distribution one(density);
  for (std::uint8_t& byte : bytes) {
    byte = 0;
    for (unsigned bit = 0; bit < 8; ++bit) byte = static_cast<std::uint8_t>(byte | (one(random) ? 1u : 0u) << bit);
  }
}

// Bit by bit.
std::uint64_t ones_one_by_one(std::span<const std::uint8_t> bytes) {
  std::uint64_t ones = 0;
  for (std::uint64_t bit = 0; bit < 8 * bytes.size(); ++bit) ones += test_bit(bytes.data(), bit) ? 1 : 0;
  return ones;
}

TEST_P(KernelSet, CountsOnesOfAnyLengthAnywhere) {
  std::mt19937_64 random(1);
  for (const double density : densities) {
    for (std::size_t count = 0; count <= 300; ++count) {
      for (const fence side : {fence::before, fence::behind}) {  // behind: at every alignment
        const fenced<std::uint8_t> bytes(count, side);
        fill_with_bits(bytes.all(), density, random);

        const std::uint64_t ones = GetParam()->fill_statistics.ones(bytes.data(), count);

        ASSERT_EQ(ones, ones_one_by_one(bytes.all())) << count << " bytes, density " << density;
      }
    }
  }
}

TEST_P(KernelSet, CountsTheOnesThatTwoHaveInCommon) {
  std::mt19937_64 random(2);
  for (const double density : densities) {
    for (std::size_t count = 0; count <= 300; ++count) {
      const fenced<std::uint8_t> a(count, fence::behind), b(count, fence::before);  // aligned differently
      fill_with_bits(a.all(), density, random);
      fill_with_bits(b.all(), density == 0 ? 1 : 0.5, random);

      const std::uint64_t common = GetParam()->fill_statistics.common_ones(a.data(), b.data(), count);

      std::uint64_t expected = 0;
      for (std::uint64_t bit = 0; bit < 8 * count; ++bit)
        expected += test_bit(a.data(), bit) && test_bit(b.data(), bit) ? 1 : 0;
      ASSERT_EQ(common, expected) << count << " bytes, density " << density;
      ASSERT_EQ(GetParam()->fill_statistics.common_ones(a.data(), a.data(), count), ones_one_by_one(a.all()));
    }
  }
}

struct block_census {
  const char* name;
  std::uint64_t (*kernels::fill_kernel::*count)(const std::uint8_t*, std::size_t, std::uint64_t*);
  std::size_t block_bytes;
  std::size_t word_bytes;  // 0: the result is the block's ones, else the product of those of its words
};
constexpr block_census block_censuses[] = {{"split_block", &kernels::fill_kernel::split_block, 32, 4},
                                           {"split_block512", &kernels::fill_kernel::split_block512, 64, 8},
                                           {"blocked", &kernels::fill_kernel::blocked, 64, 0}};

std::uint64_t result_one_by_one(const block_census& c, std::span<const std::uint8_t> block) {
  if (c.word_bytes == 0) return ones_one_by_one(block);
  std::uint64_t product = 1;
  for (std::size_t word = 0; word < 8; ++word)
    product *= ones_one_by_one(block.subspan(word * c.word_bytes, c.word_bytes));
  return product;
}

TEST_P(KernelSet, CountsBlocksByTheirWords) {
  std::mt19937_64 random(3);
  for (const block_census& c : block_censuses) {
    for (const double density : densities) {
      for (std::size_t count = 0; count <= 70; ++count) {
        for (const std::size_t shift : {std::size_t{0}, std::size_t{1 + count % 31}}) {
          SCOPED_TRACE(testing::Message() << c.name << ", " << count << " blocks, density " << density);
          const fenced<std::uint8_t> memory(count * c.block_bytes + shift, fence::behind);
          const std::span<std::uint8_t> bytes = memory.all().first(count * c.block_bytes);  // with a shift: unaligned
          const fenced<std::uint64_t> results(count, fence::behind);
          fill_with_bits(memory.all(), density, random);

          const std::uint64_t ones = (GetParam()->fill_statistics.*c.count)(bytes.data(), count, results.data());

          ASSERT_EQ(ones, ones_one_by_one(bytes));
          for (std::size_t block = 0; block < count; ++block) {
            ASSERT_EQ(results[block], result_one_by_one(c, bytes.subspan(block * c.block_bytes, c.block_bytes)))
                << block;
          }
        }
      }
    }
  }
}

// A product of eight words is at most 32^8 = 2^40 and 64^8 = 2^48, and none if one word is empty.
TEST_P(KernelSet, MultipliesTheFullestWordsAndTheEmptyOne) {
  for (const block_census& c : block_censuses) {
    constexpr std::size_t count = 3;
    const fenced<std::uint8_t> bytes(count * c.block_bytes);
    std::uint64_t results[count];

    std::fill(bytes.all().begin(), bytes.all().end(), std::uint8_t{0xFF});
    const std::uint64_t ones = (GetParam()->fill_statistics.*c.count)(bytes.data(), count, results);

    EXPECT_EQ(ones, 8 * count * c.block_bytes);
    for (const std::uint64_t result : results)
      EXPECT_EQ(result, c.word_bytes == 4 ? std::uint64_t{1} << 40 : c.word_bytes == 8 ? std::uint64_t{1} << 48 : 512u);
    for (std::size_t word = 0; c.word_bytes != 0 && word < 8 * count; ++word) {
      const std::span<std::uint8_t> of_word = bytes.all().subspan(word * c.word_bytes, c.word_bytes);
      std::fill(of_word.begin(), of_word.end(), std::uint8_t{0});
      (GetParam()->fill_statistics.*c.count)(bytes.data(), count, results);
      for (std::size_t block = 0; block < count; ++block) EXPECT_EQ(results[block] == 0, block == word / 8) << word;
      std::fill(of_word.begin(), of_word.end(), std::uint8_t{0xFF});
    }
  }
}

// ---- the choice -----------------------------------------------------------------------------------------------------

// The choice is made once in a process: each of these runs in a fresh one. It ends with 0 if the kernels named
// `expected` are chosen, with 3 if they are and BLOOMERY_KERNEL is reported as refused.
[[noreturn]] void choose_and_exit(const char* wish, const std::string& expected) {
  if (wish == nullptr)
    ::unsetenv("BLOOMERY_KERNEL");
  else
    ::setenv("BLOOMERY_KERNEL", wish, 1);
  const kernel_choice choice = kernel_info();
  std::fprintf(stderr, "chosen: %s, requested: '%s'\n", choice.name.c_str(), choice.requested.c_str());
  if (choice.name != expected || kernel_name() != expected || chosen_kernels().name != expected) ::_exit(1);
  if (choice.requested != (wish == nullptr ? "" : wish)) ::_exit(2);
  if (kernel_is_forced() != (!choice.requested.empty() && !choice.refused)) ::_exit(4);
  ::_exit(choice.refused ? 3 : 0);
}

class KernelChoice : public testing::Test {
 protected:
  // Starts the program anew for each death test, so that nothing has been chosen yet.
  void SetUp() override { testing::FLAGS_gtest_death_test_style = "threadsafe"; }
  void TearDown() override { testing::FLAGS_gtest_death_test_style = "fast"; }
};

std::string best_supported() {
  std::string best;
  for (const kernel_set* set : kernels::kernel_sets) {
    if (set->supported()) best = set->name;
  }
  return best;
}

TEST_F(KernelChoice, IsTheBestThatTheProcessorSupports) {
  EXPECT_EXIT(choose_and_exit(nullptr, best_supported()), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(choose_and_exit("", best_supported()), testing::ExitedWithCode(0), "");
}

TEST_F(KernelChoice, ObeysTheEnvironment) {
  for (const kernel_set* set : kernels::kernel_sets) {
    if (!set->supported()) continue;
    EXPECT_EXIT(choose_and_exit(set->name, set->name), testing::ExitedWithCode(0), "") << set->name;
  }
}

TEST_F(KernelChoice, OfAnUnknownNameIsRefused) {
  for (const char* wish : {"nonesuch", "AVX2", "scalar ", "avx"}) {
    EXPECT_EXIT(choose_and_exit(wish, best_supported()), testing::ExitedWithCode(3), wish);
  }
}

TEST_F(KernelChoice, OfWhatTheProcessorLacksIsRefused) {
  bool lacks_one = false;
  for (const kernel_set* set : kernels::kernel_sets) {
    if (set->supported()) continue;
    lacks_one = true;
    EXPECT_EXIT(choose_and_exit(set->name, best_supported()), testing::ExitedWithCode(3), set->name);
  }
  if (!lacks_one) GTEST_SKIP() << "SKIP: this processor supports every set of this build";
}

// The first 63 bytes of a request are reported; a longer one is refused, even if it begins with a known name.
TEST_F(KernelChoice, OfAVeryLongNameIsRefusedAndReportedInPart) {
  const auto choose = [] {
    ::setenv("BLOOMERY_KERNEL", ("scalar" + std::string(1000, ' ')).c_str(), 1);
    const kernel_choice choice = kernel_info();
    std::_Exit(choice.refused && choice.requested == "scalar" + std::string(57, ' ') ? 0 : 1);
  };

  EXPECT_EXIT(choose(), testing::ExitedWithCode(0), "");
}

// Calls on keys cannot throw, and a library must not end its host program: the best kernels answer.
TEST_F(KernelChoice, OfAnUnknownNameDoesNotEndCallsOnKeys) {
  const auto use = [] {
    ::setenv("BLOOMERY_KERNEL", "nonesuch", 1);
    filter<std::uint64_t, layouts::split_block512> one_by_one(1000, 0.01);
    filter<std::uint64_t, layouts::split_block512> batch(1000, 0.01);
    std::vector<std::uint64_t> keys(100);
    for (std::uint64_t key = 0; key < keys.size(); ++key) one_by_one.insert(keys[key] = 3 * key);
    batch.insert(keys);
    bool right = std::ranges::equal(one_by_one.bytes(), batch.bytes()) && batch.fill_ratio() > 0;
    for (const std::uint64_t key : keys) right = right && one_by_one.may_contain(key);
    std::_Exit(right && batch.size() == one_by_one.size() && kernel_info().refused ? 0 : 1);
  };

  EXPECT_EXIT(use(), testing::ExitedWithCode(0), "");
}

TEST_F(KernelChoice, OfAnUnknownNameDoesNotEndACountOfBits) {
  const auto count = [] {
    ::setenv("BLOOMERY_KERNEL", "nonesuch", 1);
    const std::vector<std::uint8_t> bits(1001, 0x11);
    const filter<std::uint64_t, layouts::classic> empty(geometry{1000, 7}, 100);
    std::_Exit(count_ones(bits) == 2002 && empty.fill_ratio() == 0 && empty.approximate_size() == 0 ? 0 : 1);
  };

  EXPECT_EXIT(count(), testing::ExitedWithCode(0), "");
}

// Calls on single keys know the sets by their places.
TEST(Kernels, StandInTheirOrder) {
  ASSERT_GE(std::size(kernels::kernel_sets), 1u);
  EXPECT_EQ(kernels::kernel_sets[0], &kernels::scalar);
#if defined(__x86_64__)
  ASSERT_EQ(std::size(kernels::kernel_sets), 3u);
  EXPECT_EQ(kernels::kernel_sets[1], &kernels::avx2);
  EXPECT_EQ(kernels::kernel_sets[2], &kernels::avx512);
#elif defined(__aarch64__)
  ASSERT_EQ(std::size(kernels::kernel_sets), 2u);
  EXPECT_EQ(kernels::kernel_sets[1], &kernels::neon);
#endif
}

TEST(Kernels, AreListedWithTheChosenOne) {
  const std::vector<kernel_description> list = kernel_list();

  ASSERT_EQ(list.size(), std::size(kernels::kernel_sets));
  std::size_t chosen = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    EXPECT_EQ(list[i].name, kernels::kernel_sets[i]->name);
    EXPECT_EQ(list[i].supported, kernels::kernel_sets[i]->supported());
    EXPECT_FALSE(list[i].needs.empty());
    if (!list[i].chosen) continue;
    ++chosen;
    EXPECT_EQ(list[i].name, kernel_name());
    EXPECT_TRUE(list[i].supported);
  }
  EXPECT_EQ(chosen, 1u);
  EXPECT_EQ(list.front().name, "scalar");
  EXPECT_TRUE(list.front().supported);
}

// ---- a view of keys -------------------------------------------------------------------------------------------------

TEST(KeySource, GivesTheHashesItWasMadeOf) {
  const std::vector<key_hash> hashes = {{1, 2}, {3, 4}, {~std::uint64_t{0}, 0}};

  const hash_span source = hash_span::hashes(hashes);

  ASSERT_EQ(source.size(), 3u);
  EXPECT_EQ(source.form(), hash_span::kind::hashes);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(source.hash(i), hashes[i]);
  EXPECT_EQ(hash_span::hashes({}).size(), 0u);
}

TEST(KeySource, GivesHalvesWithoutTheOtherHalf) {
  const std::vector<std::uint64_t> hash64s = {5, 0, ~std::uint64_t{0}};

  const hash_span source = hash_span::hash64s(hash64s);

  ASSERT_EQ(source.size(), 3u);
  EXPECT_EQ(source.form(), hash_span::kind::hash64s);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(source.hash(i), (key_hash{hash64s[i], 0}));
}

TEST(KeySource, HashesIntegersAsTheirHashDoes) {
  const std::vector<std::uint64_t> keys = {0, 1, 42, ~std::uint64_t{0}};
  for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0}}) {
    const hash_span source = hash_span::mixed(keys, mix(seed));

    ASSERT_EQ(source.size(), keys.size());
    EXPECT_EQ(source.form(), hash_span::kind::mixed);
    for (std::size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(source.hash(i), mix(seed)(keys[i]));
  }
}

TEST(KeySource, HasPartsOfTheSameForm) {
  const std::vector<key_hash> hashes = {{1, 2}, {3, 4}, {5, 6}, {7, 8}};
  const std::vector<std::uint64_t> words = {1, 3, 5, 7};
  for (const hash_span& whole :
       {hash_span::hashes(hashes), hash_span::hash64s(words), hash_span::mixed(words, mix(9))}) {
    for (std::size_t first = 0; first <= 4; ++first) {
      for (std::size_t count = 0; first + count <= 4; ++count) {
        const hash_span part = whole.part(first, count);

        ASSERT_EQ(part.size(), count);
        ASSERT_EQ(part.form(), whole.form());
        for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(part.hash(i), whole.hash(first + i));
      }
    }
  }
}

}  // namespace
}  // namespace bloomery
