// Quotient filters against fingerprints in sorted lists, kept by hand, and their rates against lookups.
#include <bloomery/any_filter.hpp>
#include <bloomery/filter_handle.hpp>
#include <bloomery/measure.hpp>
#include <bloomery/partial_error.hpp>

#include "kernels/kernels.hpp"
#include "layouts/quotient.hpp"
#include "layouts/quotient_filters.hpp"
#include "registry/tables.hpp"
#include "support/fenced.hpp"
#include "support/test.hpp"
#include "support/vast_memory.hpp"

#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <tuple>

namespace bloomery {
namespace {

using namespace bloomery_tests;
using kernels::quotient_blocks;
using kernels::quotient_kernel;
using kernels::quotient_shape;

// ---- the model ------------------------------------------------------------------------------------------------------

__extension__ using wide = unsigned __int128;
std::uint64_t upper(std::uint64_t a, std::uint64_t b) {
  return static_cast<std::uint64_t>(static_cast<wide>(a) * b >> 64);
}

// As docs/format.md defines them.
struct place {
  unsigned bucket;
  std::uint32_t remainder;
  std::uint64_t first, second;
};

place place_of_fingerprint(std::uint64_t fingerprint, unsigned width, std::uint64_t blocks) {
  const std::uint64_t remainders = std::uint64_t{1} << (width - 1);
  const std::uint64_t first = fingerprint / (80 * remainders), tag = fingerprint % (80 * remainders);
  std::uint64_t x = tag + 1;
  x ^= x >> 27;
  x *= 0x3C79AC492BA7B653;
  x ^= x >> 33;
  x *= 0x1C69B3F74AC4AE35;
  x ^= x >> 27;
  const std::uint64_t second = (upper(x, blocks) + blocks - first) % blocks;
  return {static_cast<unsigned>(tag / remainders), static_cast<std::uint32_t>(tag % remainders), first, second};
}

place place_by_the_book(std::uint64_t hash64, unsigned width, std::uint64_t blocks) {
  return place_of_fingerprint(upper(hash64, blocks * 80 << (width - 1)), width, blocks);
}

// What is stored in a slot of a bucket: the remainder, and whether the block is the second one.
using stored = std::pair<std::uint32_t, bool>;

// A list of remainders for each bucket of each block.
class model {
 public:
  model(unsigned width, std::uint64_t blocks)
      : width_(width), slots_((512 - 80) / (width + 1)), blocks_(blocks, std::vector<std::vector<stored>>(80)) {}

  enum class result { is_new, is_copy, no_room };

  result insert(std::uint64_t hash64) {
    const place at = place_of(hash64);
    const std::size_t copies = copies_of(at);
    if (copies >= 15) return result::is_copy;
    const bool second = used(at.second) < used(at.first);
    const std::uint64_t block = second ? at.second : at.first;
    if (used(block) == slots_) return result::no_room;
    blocks_[block][at.bucket].push_back({at.remainder, second});
    return copies == 0 ? result::is_new : result::is_copy;
  }

  bool remove(std::uint64_t hash64) {
    const place at = place_of(hash64);
    if (copies_of(at) == 0) return false;
    if (copies_of(at) >= 15) return true;
    for (const bool second : {false, true}) {
      std::vector<stored>& list = blocks_[second ? at.second : at.first][at.bucket];
      const auto found = std::find(list.begin(), list.end(), stored(at.remainder, second));
      if (found == list.end()) continue;
      list.erase(found);
      return true;
    }
    return false;
  }

  bool has(std::uint64_t hash64) const { return copies_of(place_of(hash64)) > 0; }

  std::size_t used(std::uint64_t block) const {
    std::size_t all = 0;
    for (const auto& list : blocks_[block]) all += list.size();
    return all;
  }

  std::uint64_t used() const {
    std::uint64_t all = 0;
    for (std::uint64_t block = 0; block < blocks_.size(); ++block) all += used(block);
    return all;
  }

  // The share of all fingerprints that a lookup reports.
  double share_of_reported() const {
    const std::uint64_t all = blocks_.size() * 80 << (width_ - 1);
    std::uint64_t reported = 0;
    for (std::uint64_t fingerprint = 0; fingerprint < all; ++fingerprint)
      reported += copies_of(place_of_fingerprint(fingerprint, width_, blocks_.size())) > 0 ? 1 : 0;
    return static_cast<double>(reported) / static_cast<double>(all);
  }

  void set(std::uint64_t block, unsigned bucket, std::vector<stored> slots) {
    blocks_[block][bucket] = std::move(slots);
  }

  std::vector<std::uint8_t> bytes() const {
    std::vector<std::uint8_t> all(64 * blocks_.size());
    for (std::size_t block = 0; block < blocks_.size(); ++block) {
      std::vector<bool> bits;
      for (const auto& list : blocks_[block]) {
        bits.insert(bits.end(), list.size(), false);
        bits.push_back(true);
      }
      bits.resize(slots_ + 80);
      for (unsigned i = 0; i < 80; ++i) bits[i] = !bits[i];
      for (const auto& list : blocks_[block]) {
        for (const auto& [remainder, second] : list) {
          for (unsigned i = 0; i < width_ - 1; ++i) bits.push_back((remainder >> i & 1) != 0);
          bits.push_back(second);
        }
      }
      for (std::size_t i = 0; i < bits.size(); ++i)
        all[64 * block + i / 8] = static_cast<std::uint8_t>(all[64 * block + i / 8] | (bits[i] ? 1 : 0) << i % 8);
    }
    return all;
  }

 private:
  place place_of(std::uint64_t hash64) const { return place_by_the_book(hash64, width_, blocks_.size()); }

  std::size_t copies_of(const place& at) const {
    const auto in = [&](std::uint64_t block, bool second) {
      const auto& list = blocks_[block][at.bucket];
      return static_cast<std::size_t>(std::count(list.begin(), list.end(), stored(at.remainder, second)));
    };
    return in(at.first, false) + in(at.second, true);
  }

  unsigned width_, slots_;
  std::vector<std::vector<std::vector<stored>>> blocks_;
};

std::vector<unsigned> widths() {
  std::vector<unsigned> all;
  for (unsigned width = quotient::least_width; width <= quotient::most_width; ++width) all.push_back(width);
  return all;
}

// ---- operations -----------------------------------------------------------------------------------------------------

struct named_kernel {
  const char* name;
  const quotient_kernel* kernel;
  const kernels::kernel_set* set;
};

std::vector<named_kernel> all_kernels() {
  std::vector<named_kernel> all = {{"plain", &kernels::quotient_plain, &kernels::scalar}};
#if defined(__x86_64__)
  all.push_back({"avx2", &kernels::quotient_avx2, &kernels::avx2});
  all.push_back({"avx512", &kernels::quotient_avx512, &kernels::avx512});
#elif defined(__aarch64__)
  all.push_back({"neon", &kernels::quotient_neon, &kernels::neon});
#endif
  return all;
}

class QuotientKernel : public testing::TestWithParam<named_kernel> {
 protected:
  void SetUp() override {
    if (!GetParam().set->supported()) GTEST_SKIP() << "SKIP: this processor has not all of " << GetParam().set->needs;
  }

  // Checks that the kernel reads no other keys, writes all words of the bitmap, and no bits after the last key.
  static std::vector<bool> look_up(const quotient_blocks& at, const std::vector<std::uint64_t>& keys) {
    const fenced<std::uint64_t> same(keys.size());
    std::copy(keys.begin(), keys.end(), same.data());
    std::vector<std::uint64_t> bitmap((keys.size() + 63) / 64, ~std::uint64_t{0});
    GetParam().kernel->has(at, same.data(), same.size(), bitmap.data());
    std::vector<bool> found(64 * bitmap.size());
    for (std::size_t i = 0; i < found.size(); ++i) found[i] = (bitmap[i / 64] >> i % 64 & 1) != 0;
    EXPECT_EQ(std::count(found.begin() + static_cast<std::ptrdiff_t>(keys.size()), found.end(), true), 0);
    found.resize(keys.size());
    return found;
  }
};
INSTANTIATE_TEST_SUITE_P(Each, QuotientKernel, testing::ValuesIn(all_kernels()),
                         [](const auto& each) { return std::string(each.param.name); });

// Few different keys, some of them often, so that blocks fill up and keys reach the maximum of copies. With many
// blocks, those of some keys in a row differ, so that kernels work on several keys at once.
TEST_P(QuotientKernel, WritesTheBytesOfTheModel) {
  for (const unsigned width : widths()) {
    for (const std::uint64_t blocks : {1u, 2u, 7u, 100u}) {
      const quotient_shape shape = quotient::shape_of(width);
      const fenced<std::uint8_t> bytes(64 * blocks);
      std::fill_n(bytes.data(), 64 * blocks, std::uint8_t{0});
      const quotient_blocks at{bytes.data(), blocks, quotient::masks_of(width), blocks >= 7};
      model expected(width, blocks);
      std::mt19937_64 random(width * 100 + blocks);
      std::vector<std::uint64_t> known(blocks * shape.slots);
      for (std::uint64_t& key : known) key = random();
      std::uint64_t refused = 0;
      for (int round = 0; round < 60; ++round) {
        const bool inserts = round % 3 != 2;
        std::vector<std::uint64_t> keys(1 + random() % std::max<std::uint64_t>(40, blocks * shape.slots / 8));
        for (std::uint64_t& key : keys)
          key = random() % 8 == 0 ? known[random() % 2] : random() % 5 == 0 ? random() : known[random() % known.size()];
        std::vector<std::uint8_t> results(keys.size(), 7), by_model(keys.size(), 7);
        if (inserts) {
          std::size_t done = 0;
          std::uint64_t all_new = 0, new_by_model = 0;
          for (; done < keys.size(); ++done) {
            const model::result result = expected.insert(keys[done]);
            if (result == model::result::no_room) break;
            by_model[done] = result == model::result::is_new ? 1 : 0;
            new_by_model += by_model[done];
          }
          refused += done < keys.size() ? 1 : 0;
          ASSERT_EQ(GetParam().kernel->insert(at, keys.data(), keys.size(), results.data(), all_new), done);
          ASSERT_EQ(all_new, new_by_model);
        } else {
          for (std::size_t i = 0; i < keys.size(); ++i) by_model[i] = expected.remove(keys[i]) ? 1 : 0;
          GetParam().kernel->remove(at, keys.data(), keys.size(), results.data());
        }
        ASSERT_EQ(results, by_model);
        if (blocks < 100 || round % 10 == 9) {  // the model is slow
          const std::vector<std::uint8_t> wanted = expected.bytes();
          ASSERT_TRUE(std::equal(wanted.begin(), wanted.end(), bytes.data()))
              << "width " << width << ", " << blocks << " blocks, round " << round;
        }
        const std::vector<bool> found = look_up(at, keys);
        for (std::size_t i = 0; i < keys.size(); ++i) {
          ASSERT_EQ(found[i], expected.has(keys[i]));
          ASSERT_EQ(GetParam().kernel->has_one(at, keys[i]), expected.has(keys[i]));
        }
      }
      EXPECT_GT(refused, 0u) << "width " << width << ": no block became full";
    }
  }
}

// A bit in eight is set.
std::uint64_t sparse(std::mt19937_64& random) {
  const std::uint64_t a = random(), b = random(), c = random();
  return a & b & c;
}

// Runs of more than 64 slots, of which the first ones are searched for: a bucket has nearly all slots of its block,
// eight copies of a fingerprint and then those of another one.
TEST_P(QuotientKernel, FindsSlotsInLongRuns) {
  for (const unsigned width : {4u, 5u}) {  // only these have so many slots
    constexpr std::uint64_t blocks = 100;
    const quotient_shape shape = quotient::shape_of(width);
    model expected(width, blocks);
    const fenced<std::uint8_t> bytes(64 * blocks);
    const quotient_blocks at{bytes.data(), blocks, quotient::masks_of(width), true};
    for (const unsigned bucket : {0u, 3u, 79u}) {
      std::vector<stored> slots(8, {1, false});
      slots.resize(shape.slots - 6, {2, false});
      for (std::uint64_t block = 0; block < blocks; ++block) expected.set(block, bucket, slots);
      const std::vector<std::uint8_t> before = expected.bytes();
      std::copy(before.begin(), before.end(), bytes.data());

      std::vector<std::uint64_t> keys;
      for (std::uint64_t remainder = 0; remainder < 4; ++remainder) {
        const std::uint64_t tag = std::uint64_t{bucket} << (width - 1) | remainder;
        for (std::uint64_t block = 0; block < blocks; ++block)
          keys.push_back(quotient::hash_of(block * shape.tags() + tag, blocks * shape.tags()));
      }
      const std::vector<bool> found = look_up(at, keys);
      for (std::size_t i = 0; i < keys.size(); ++i) {
        ASSERT_EQ(found[i], i / blocks == 1 || i / blocks == 2) << i;
        ASSERT_EQ(GetParam().kernel->has_one(at, keys[i]), found[i]) << i;
      }

      std::vector<std::uint8_t> is_new(keys.size()), removed(keys.size()), by_model(keys.size());
      const auto has_its_bytes = [&] {
        const std::vector<std::uint8_t> wanted = expected.bytes();
        return std::equal(wanted.begin(), wanted.end(), bytes.data());
      };
      std::transform(keys.begin(), keys.end(), by_model.begin(),
                     [&](std::uint64_t key) { return expected.insert(key) == model::result::is_new ? 1 : 0; });
      std::uint64_t all_new = 0;
      ASSERT_EQ(GetParam().kernel->insert(at, keys.data(), keys.size(), is_new.data(), all_new), keys.size());
      ASSERT_EQ(is_new, by_model);
      ASSERT_TRUE(has_its_bytes()) << width << ", bucket " << bucket;
      std::transform(keys.begin(), keys.end(), by_model.begin(),
                     [&](std::uint64_t key) { return expected.remove(key) ? 1 : 0; });
      GetParam().kernel->remove(at, keys.data(), keys.size(), removed.data());
      ASSERT_EQ(removed, by_model);
      ASSERT_TRUE(has_its_bytes()) << width << ", bucket " << bucket;
      for (std::uint64_t block = 0; block < blocks; ++block) expected.set(block, bucket, {});
    }
  }
}

// More blocks than 32 bits can number.
TEST_P(QuotientKernel, FindsItsWayInAHugeFilter) {
  for (const std::uint64_t blocks : {(std::uint64_t{1} << 32) - 1, (std::uint64_t{1} << 32) + 3}) {
    constexpr unsigned width = 8;
    const vast_memory bytes(64 * blocks), of_plain(64 * blocks);
    if (!bytes.granted() || !of_plain.granted()) GTEST_SKIP() << "SKIP: the system does not give the addresses";
    const quotient_blocks at{bytes.data(), blocks, quotient::masks_of(width), true};
    const quotient_blocks at_plain{of_plain.data(), blocks, quotient::masks_of(width), true};
    std::mt19937_64 random(8);
    std::vector<std::uint64_t> keys(100), absent(100);
    std::generate(keys.begin(), keys.end(), std::ref(random));
    std::generate(absent.begin(), absent.end(), std::ref(random));
    std::uint64_t all_new = 0, plain_new = 0;
    ASSERT_EQ(GetParam().kernel->insert(at, keys.data(), keys.size(), nullptr, all_new), keys.size());
    ASSERT_EQ(kernels::quotient_plain.insert(at_plain, keys.data(), keys.size(), nullptr, plain_new), keys.size());
    EXPECT_EQ(all_new, plain_new);
    EXPECT_EQ(look_up(at, keys), std::vector<bool>(keys.size(), true));
    EXPECT_EQ(look_up(at, absent), std::vector<bool>(keys.size(), false));
    for (const std::uint64_t key : keys) {
      const place expected = place_by_the_book(key, width, blocks);
      for (const std::uint64_t block : {expected.first, expected.second}) {
        ASSERT_EQ(std::memcmp(bytes.data() + 64 * block, of_plain.data() + 64 * block, 64), 0) << block;
      }
    }
  }
}

// Damaged bytes may give any answer, but all kernels give the same answers, without an access outside the filter, which
// lies between guarded pages.
TEST_P(QuotientKernel, StaysInsideOfAnyBytes) {
  std::mt19937_64 random(5);
  for (const unsigned width : widths()) {
    for (const std::uint64_t blocks : {3u, 100u}) {
      const fenced<std::uint8_t> bytes(64 * blocks);
      std::vector<std::uint8_t> of_plain(64 * blocks);
      const quotient_blocks at{bytes.data(), blocks, quotient::masks_of(width), true};
      const quotient_blocks at_plain{of_plain.data(), blocks, quotient::masks_of(width), true};
      for (int round = 0; round < (blocks == 3 ? 200 : 20); ++round) {
        const auto dense = random() % 4;
        std::generate(of_plain.begin(), of_plain.end(), [&] {
          return static_cast<std::uint8_t>(dense == 0 ? 0xFF : dense == 1 ? sparse(random) : random());
        });
        std::copy(of_plain.begin(), of_plain.end(), bytes.data());
        std::vector<std::uint64_t> keys(60);
        std::generate(keys.begin(), keys.end(), std::ref(random));
        const auto results = [&](const quotient_kernel& kernel, const quotient_blocks& to) {
          std::vector<std::uint64_t> all(1);
          std::vector<std::uint8_t> each(2 * keys.size());
          kernel.has(to, keys.data(), keys.size(), all.data());
          for (std::size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(kernel.has_one(to, keys[i]), (all[0] >> i & 1) != 0);
          for (std::size_t done = 0; done < keys.size(); ++done) {  // goes on after keys without room
            const std::size_t some =
                kernel.insert(to, keys.data() + done, keys.size() - done, each.data() + done, all.emplace_back());
            all.push_back(done += some);
          }
          for (const std::uint64_t& key : keys) {
            if (kernel.insert(to, &key, 1, nullptr, all.emplace_back()) == 0) continue;
            EXPECT_TRUE(kernel.has_one(to, key)) << "an inserted key is missing";
          }
          kernel.remove(to, keys.data(), keys.size(), each.data() + keys.size());
          all.insert(all.end(), each.begin(), each.end());
          return all;
        };
        ASSERT_EQ(results(*GetParam().kernel, at), results(kernels::quotient_plain, at_plain)) << width;
        ASSERT_TRUE(std::equal(of_plain.begin(), of_plain.end(), bytes.data())) << width;
      }
    }
  }
}

TEST(Quotient, ScansAnyBytes) {
  std::mt19937_64 random(6);
  for (const unsigned width : widths()) {
    const params p = quotient_filter(width, 5).parameters();
    for (int round = 0; round < 20; ++round) {
      std::vector<std::uint8_t> bytes(bytes_for(p.geometry.bits));
      for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
      const fill_statistics seen = measure_fill(p, bytes);
      EXPECT_LE(seen.ones, 5 * quotient::shape_of(width).slots);
      EXPECT_TRUE(seen.current_fpr >= 0 && seen.current_fpr <= 1);
    }
  }
}

// ---- sizes and rates ------------------------------------------------------------------------------------------------

TEST(Quotient, HasTheDocumentedShapes) {
  EXPECT_EQ(quotient::shape_of(7).slots, 54u);
  EXPECT_EQ(quotient::shape_of(7).buckets, 80u);
  for (const unsigned width : widths()) {
    const quotient_shape shape = quotient::shape_of(width);
    EXPECT_EQ(shape.buckets, 80u);
    EXPECT_TRUE(shape.marks() + shape.slots * width <= 512 && shape.marks() + (shape.slots + 1) * width + 1 > 512);
  }
}

TEST(Quotient, TakesTheFewestBlocksThatKeepTheRate) {
  for (const unsigned width : {4u, 7u, 16u, 24u}) {
    const double least = quotient::rate(width, 1'000'001, 30'000'000 / width);
    for (const std::uint64_t keys : {1u, 10u, 60u, 1000u, 12'345u}) {
      for (const double rate : {0.9, 0.1, 4 * least}) {
        const params p = complete({.layout = quotient_layout(width), .capacity = keys, .target_fpr = rate});
        const std::uint64_t blocks = p.geometry.bits / 512;
        EXPECT_LE(expected_fpr(p, keys), rate);
        EXPECT_GE(quotient::keys_for(width, blocks), keys);
        for (std::uint64_t fewer = 1; fewer < blocks; ++fewer) {
          ASSERT_FALSE(quotient::keys_for(width, fewer) >= keys && quotient::rate(width, fewer, keys) <= rate)
              << keys << " keys, " << rate << ": " << fewer << " blocks are enough";
        }
      }
    }
  }
}

// The name without a width takes the smallest.
TEST(Quotient, ChoosesTheWidthWithTheFewestBits) {
  for (const double rate : {0.5, 0.03, 0.01, 1e-3, 1e-6, 2e-7}) {
    const params chosen = complete({.layout = "quotient", .capacity = 1'000'000, .target_fpr = rate});
    std::uint64_t fewest = std::numeric_limits<std::uint64_t>::max();
    for (const unsigned width : widths()) {
      const params p = complete({.layout = quotient_layout(width), .capacity = 1'000'000, .target_fpr = rate});
      fewest = std::min(fewest, p.geometry.bits);
    }
    EXPECT_EQ(chosen.geometry.bits, fewest) << chosen.layout;
  }
  EXPECT_EQ(complete({.layout = "quotient", .capacity = 10'000'000, .target_fpr = 0.01}).layout, "quotient7");
  EXPECT_LT(complete({.layout = "quotient", .capacity = 10'000'000, .target_fpr = 0.01}).geometry.bits, 104'600'000u);
  EXPECT_ERROR(complete({.layout = "quotient", .capacity = 1'000'000, .target_fpr = 4e-9}), errc::too_large,
               "no quotient filter suits this FPR");
  EXPECT_ERROR(complete({.layout = "quotient", .geometry = {512, 2}}), errc::invalid_argument,
               "quotient4 to quotient24");
  EXPECT_ERROR(complete({.layout = "quotient8", .geometry = {1000, 2}}), errc::invalid_argument, "512");
  EXPECT_ERROR(complete({.layout = "quotient8", .geometry = {512, 3}}), errc::invalid_argument, "2");
}

TEST(Quotient, CountsTheExactRateOfThePresentSlots) {
  for (const auto& [width, blocks] : {std::pair{4u, 1u}, {4u, 2u}, {6u, 5u}, {8u, 4u}}) {
    any_filter filter = quotient_filter(width, blocks);
    model expected(width, blocks);
    std::mt19937_64 random(width + blocks);
    for (std::uint64_t i = 0; i < blocks * (quotient::shape_of(width).slots - 8); ++i) {
      const std::uint64_t key = random() % 1000;
      if (expected.insert(mix{}(key).hash64) == model::result::no_room) break;
      filter.insert(key);
      const fill_statistics seen = measure_fill(filter.parameters(), filter.bytes());
      ASSERT_EQ(seen.ones, expected.used());
      if (i % 16 == 0) {
        ASSERT_NEAR(seen.current_fpr, expected.share_of_reported(), 1e-12) << width << ' ' << blocks << ' ' << i;
      }
    }
  }
}

// The mean of many filters, and its standard error by the formula of the variance.
TEST(Quotient, HasTheExpectedRateOnAverage) {
  for (const auto& [width, blocks] : {std::tuple{4u, 1u}, {4u, 2u}, {5u, 9u}, {7u, 24u}, {9u, 5u}}) {
    const std::uint64_t keys = std::max<std::uint64_t>(quotient::keys_for(width, blocks), 20);
    const std::string layout = quotient_layout(width);
    const params p = quotient_filter(width, blocks).parameters();
    const double expected = expected_fpr(p, keys);
    constexpr int filters = 1500;
    double sum = 0, squares = 0;
    std::uint64_t key = 0;
    for (int i = 0; i < filters; ++i) {
      any_filter filter = quotient_filter(width, blocks);
      for (std::uint64_t k = 0; k < keys; ++k) filter.insert(++key);
      const double fpr = filter.current_fpr();
      sum += fpr;
      squares += fpr * fpr;
    }
    const double mean = sum / filters;
    const double sigma = std::sqrt((squares / filters - mean * mean) / filters);
    EXPECT_NEAR(mean, expected, 4.5 * sigma + 1e-12) << layout << ", " << blocks << " blocks";
    const double predicted = expected * std::sqrt(find_layout(layout)->slots->relative_variance(p.geometry, keys));
    EXPECT_NEAR(sigma * std::sqrt(filters), predicted, 0.25 * predicted + 1e-12) << layout << ", " << blocks;
  }
}

TEST(Quotient, MeasuredRatesAreExpected) {
  for (const unsigned width : {4u, 7u, 10u, 12u}) {
    constexpr std::uint64_t keys = 100'000, queries = 4'000'000;
    any_filter filter(
        complete({.layout = quotient_layout(width), .keys = key_kind::u64le, .capacity = keys, .target_fpr = 0.2}));
    std::vector<std::uint64_t> all(keys), absent(queries), bitmap(queries / 64);
    std::iota(all.begin(), all.end(), std::uint64_t{0});
    std::iota(absent.begin(), absent.end(), std::uint64_t{1} << 40);
    filter.insert(all);
    filter.may_contain(absent, bitmap);
    std::uint64_t found = 0;
    for (const std::uint64_t word : bitmap) found += static_cast<std::uint64_t>(std::popcount(word));
    const double exact = filter.current_fpr(), expected = filter.expected_fpr();
    EXPECT_NEAR(
        exact / expected, 1,
        4.5 * std::sqrt(
                  find_layout(quotient_layout(width))->slots->relative_variance(filter.parameters().geometry, keys)));
    EXPECT_NEAR(static_cast<double>(found), exact * queries, 4.5 * std::sqrt(exact * queries)) << width;
  }
}

// Each fingerprint has the hashes from its lowest one up to that of the next fingerprint.
TEST(Quotient, FindsTheLowestHashOfAFingerprint) {
  std::mt19937_64 random(7);
  const auto is_lowest = [](std::uint64_t fingerprint, std::uint64_t all) {
    const std::uint64_t hash64 = quotient::hash_of(fingerprint, all);
    return upper(hash64, all) == fingerprint && (hash64 == 0 || upper(hash64 - 1, all) + 1 == fingerprint);
  };
  constexpr std::uint64_t most = std::uint64_t{1} << 60;
  for (const std::uint64_t all : {std::uint64_t{640}, std::uint64_t{80} << 23, most / 640 * 640, most - 1, most}) {
    for (int i = 0; i < 10'000; ++i) ASSERT_TRUE(is_lowest(random() % all, all)) << all;
    EXPECT_TRUE(is_lowest(0, all) && is_lowest(1, all) && is_lowest(all - 1, all)) << all;
  }
}

// The example of docs/format.md.
TEST(Quotient, WritesTheExampleOfTheFormat) {
  any_filter filter(complete({.layout = "quotient8", .geometry = {512 * 7, 2}}));
  filter.insert("Madrid");
  std::vector<std::pair<std::size_t, unsigned>> written;
  for (std::size_t i = 0; i < filter.bytes().size(); ++i) {
    if (filter.bytes()[i] != 0) written.emplace_back(i, filter.bytes()[i]);
  }
  EXPECT_EQ(written, (std::vector<std::pair<std::size_t, unsigned>>{{136, 0x10}, {138, 0x01}, {144, 0x4A}}));
  EXPECT_EQ(filter.cells("Madrid"), (std::vector<std::uint64_t>{2, 6}));
}

TEST(Quotient, ExplainsThePlaceOfAKey) {
  any_filter filter = quotient_filter(9, 7);
  for (std::uint64_t key = 0; key < 150; ++key) filter.insert(key);
  filter.insert(3);
  const auto handle = make_handle(std::move(filter));
  for (std::uint64_t key = 0; key < 400; ++key) {
    const key_explanation found = handle->explain(std::span(&key, 1));
    const place expected = place_by_the_book(mix{}(key).hash64, 9, 7);
    EXPECT_EQ(found.slots->bucket, expected.bucket);
    EXPECT_EQ(found.slots->remainder, expected.remainder);
    std::vector<std::uint64_t> blocks;
    std::uint64_t copies = 0;
    for (const explained_cell& cell : found.layers.front().cells) {
      blocks.push_back(cell.cell);
      copies += cell.value;
    }
    EXPECT_EQ(blocks, expected.first == expected.second ? std::vector{expected.first}
                                                        : std::vector({expected.first, expected.second}));
    EXPECT_EQ(found.maybe_present, handle->contains(key));
    EXPECT_EQ(found.maybe_present, copies > 0);
    if (key == 3) {
      EXPECT_GE(copies, 2u);
    }
  }
}

}  // namespace
}  // namespace bloomery
