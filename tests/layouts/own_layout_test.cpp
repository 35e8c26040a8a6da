// User-defined layouts: bulk inserts partition keys by block only if the layout declares blocks_by.
#include <bloomery/filter.hpp>

#include "support/test.hpp"

namespace bloomery {
namespace {

// Blocks as page numbers them, but the bits within come from the other half of the hash.
class page_by_hi {
 public:
  static constexpr std::string_view name = "test.page_by_hi/1";
  static constexpr std::uint32_t block_bits = layouts::blocked_page::block_bits;
  static constexpr std::uint64_t block_of(std::uint64_t hash64, std::uint64_t blocks) {
    return multiply_high(hash64, blocks);
  }

  class cells {
   public:
    cells(const geometry& g, key_hash hash)
        : base_(block_of(hash.hash64, g.bits / block_bits) * block_bits), x_(2 * hash.high64 + 1), count_(g.probes) {}
    std::uint32_t count() const { return count_; }
    std::uint64_t next() {
      const std::uint64_t cell = base_ + (x_ >> 49);
      x_ *= probe_sequence::step;
      return cell;
    }

   private:
    std::uint64_t base_;
    std::uint64_t x_;
    std::uint32_t count_;
  };

  static geometry geometry_for(std::uint64_t n, double p) { return layouts::blocked_page::geometry_for(n, p); }
  static void check(const geometry& g) { layouts::blocked_page::check(g); }
  static double expected_fpr(const geometry& g, std::uint64_t n) { return layouts::blocked_page::expected_fpr(g, n); }
  static double keys_from_zeros(const geometry& g, std::uint64_t z) {
    return layouts::blocked_page::keys_from_zeros(g, z);
  }
};

static_assert(layout<page_by_hi> && !layout_by_hash64<page_by_hi> && !layout_with_kernels<page_by_hi>);
static_assert(layout_by_hash64<layouts::blocked_page> && layout_by_hash64<layouts::split_block512> &&
              layout_by_hash64<layouts::blocked>);
static_assert(layout_by_hash64<layouts::split_block> && !layout_by_hash64<layouts::classic>);

TEST(OwnLayout, LosesNothingWhereKeysAreInsertedAllAtOnce) {
  std::vector<std::uint64_t> keys;
  for (std::uint64_t i = 0; i < 100'000; ++i) keys.push_back(mix64(i));
  const geometry g{2000 * layouts::blocked_page::block_bits, 7};  // 8 MiB: larger than most caches of a core
  filter<std::uint64_t, page_by_hi> one_by_one(g);
  filter<std::uint64_t, page_by_hi> at_once(g);

  for (const std::uint64_t key : keys) one_by_one.insert(key);
  at_once.insert_all(keys, 2);

  EXPECT_TRUE(std::ranges::equal(at_once.bytes(), one_by_one.bytes()));
  EXPECT_EQ(at_once.insert_count(), one_by_one.insert_count());
}

}  // namespace
}  // namespace bloomery
