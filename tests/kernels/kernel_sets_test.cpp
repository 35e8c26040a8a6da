// The other functions of a kernel set, compared with plain loops: hash64s, the split and the scatter into partitions,
// and counts of bits.
//
// KernelSet runs once for each set of this build. Sets that this processor cannot run are skipped.
#include <bloomery/detail/bits.hpp>
#include <bloomery/layouts/split_block.hpp>
#include <bloomery/layouts/split_block512.hpp>

#include "kernels/kernel_keys.hpp"
#include "kernels/kernels.hpp"
#include "support/fenced.hpp"
#include "support/long_tests.hpp"
#include "support/test.hpp"

#include <iterator>

namespace bloomery {
namespace {

using namespace bloomery_tests;
using kernels::kernel_set;

// ---- hash64s, split and scatter -------------------------------------------------------------------------------------

class KernelSet : public testing::TestWithParam<const kernel_set*> {
 protected:
  void SetUp() override {
    if (!GetParam()->supported()) GTEST_SKIP() << "SKIP: this processor has not all of " << GetParam()->needs;
  }
};
INSTANTIATE_TEST_SUITE_P(Each, KernelSet, testing::ValuesIn(kernels::kernel_sets),
                         [](const auto& each) { return std::string(each.param->name); });

TEST_P(KernelSet, WritesTheHash64OfEachHash) {
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

TEST_P(KernelSet, SplitsHashesInOrder) {
  for (const std::size_t count : counts) {
    const auto words = key_words(count, count);
    const fenced<std::uint64_t> from(count), lower(count), upper(count);
    std::copy(words.begin(), words.end(), from.data());
    const std::uint64_t middle = count == 0 ? 0 : words[count / 2];  // equal to a word: belongs to the lower ones
    for (const std::uint64_t last_lower : {std::uint64_t{0}, middle, ~std::uint64_t{0}}) {
      std::vector<std::uint64_t> expected_lower, expected_upper;
      for (const std::uint64_t word : words) (word <= last_lower ? expected_lower : expected_upper).push_back(word);

      const std::size_t in_lower = GetParam()->split(from.data(), count, last_lower, lower.data(), upper.data());

      ASSERT_EQ(in_lower, expected_lower.size());
      EXPECT_TRUE(std::equal(expected_lower.begin(), expected_lower.end(), lower.data()));
      EXPECT_TRUE(std::equal(expected_upper.begin(), expected_upper.end(), upper.data()));
    }
  }
}

// The memory of a scatter, and the keys that each partition has so far.
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

  // Removes the keys of a partition and returns them in the order of insertion.
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

// The keys of each partition, by the block numbers of the layouts.
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

// ---- counts of bits -------------------------------------------------------------------------------------------------

// Densities of set bits: none, all, and some in between.
constexpr double densities[] = {0, 1, 0.5, 0.02, 0.98};

void fill_with_bits(std::span<std::uint8_t> bytes, double density, std::mt19937_64& random) {
  std::bernoulli_distribution one(density);
  for (std::uint8_t& byte : bytes) {
    byte = 0;
    for (unsigned bit = 0; bit < 8; ++bit) byte = static_cast<std::uint8_t>(byte | (one(random) ? 1u : 0u) << bit);
  }
}

// Counts bit by bit.
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
  std::size_t word_bytes;  // 0: the result is the number of ones of the block, otherwise the product over its words
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
      for (std::size_t count = 0; count <= 70; count += under_sanitizer ? 3 : 1) {
        for (const std::size_t shift : {std::size_t{0}, std::size_t{1 + count % 31}}) {
          SCOPED_TRACE(testing::Message() << c.name << ", " << count << " blocks, density " << density);
          const fenced<std::uint8_t> memory(count * c.block_bytes + shift, fence::behind);
          const std::span<std::uint8_t> bytes = memory.all().first(count * c.block_bytes);  // shifted: unaligned
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

// The product over eight words is at most 32^8 = 2^40 or 64^8 = 2^48, and 0 if one word is empty.
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

}  // namespace
}  // namespace bloomery
