// Kernels that insert and look up keys, of every set of this build, against the layouts' definitions: one key at a time
// and bit for bit.
//
// KernelBatch runs once for each set and layout: KernelBatch.WritesTheBitsOfTheDefinition/avx2_split_block512. Sets
// that this processor cannot run are skipped.
#include <bloomery/detail/bits.hpp>
#include <bloomery/layout.hpp>
#include <bloomery/layouts/blocked.hpp>
#include <bloomery/layouts/split_block.hpp>
#include <bloomery/layouts/split_block512.hpp>

#include "kernels/kernel_keys.hpp"
#include "kernels/kernels.hpp"
#include "support/fenced.hpp"
#include "support/long_tests.hpp"
#include "support/test.hpp"
#include "support/vast_memory.hpp"

#include <cerrno>
#include <tuple>

namespace bloomery {
namespace {

using namespace bloomery_tests;
using kernels::kernel_set;
using kernels::layout_kernel;

// ---- layouts and sizes under test -----------------------------------------------------------------------------------

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

// ---- one kernel and one layout --------------------------------------------------------------------------------------

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

// A filter beside the bits that its definition sets for the same keys.
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
    // `offset` bytes away from the fence; these bytes must not change.
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

// Inserts into two twins, one with answers about new keys and one without, and looks up these and other keys.
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
  const std::size_t count = repetitions<std::size_t>(1'000'000, 100'000, 10'000'000);
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

TEST_P(KernelBatch, ReportsTheSecondOfTwoEqualKeysAsNotNew) {
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
        if (!is_new) std::fill(expected.begin(), expected.end(), std::uint8_t{0});  // full enough: start again from 0
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

}  // namespace
}  // namespace bloomery
