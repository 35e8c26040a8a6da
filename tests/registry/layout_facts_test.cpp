// The facts of all layouts, compared with a table written from docs/format.md, and with the behavior of filters.
#include <bloomery/layout.hpp>

#include <bloomery/params.hpp>

#include "support/test.hpp"

#include <string>
#include <vector>

namespace bloomery {
namespace {

struct expected_facts {
  std::string name;
  bloomery::family family;
  std::uint32_t block_bits, cell_bits, lanes, fixed_probes, hash_bits;
  bool may_be_shared;
};

const std::vector<expected_facts> table = [] {
  std::vector<expected_facts> all = {
      {"split_block", family::plain, 256, 1, 8, 8, 64, false},
      {"split_block512", family::plain, 512, 1, 8, 8, 64, true},
      {"blocked", family::plain, 512, 1, 0, 0, 64, true},
      {"blocked_page", family::plain, 32768, 1, 0, 0, 64, false},
      {"classic", family::plain, 0, 1, 0, 0, 128, false},
      {"counting", family::counting, 512, 4, 0, 0, 64, true},
      {"sliding", family::sliding_window, 4096, 8, 0, 0, 64, false},
      {"sliding64", family::sliding_window, 512, 8, 0, 0, 64, false},
  };
  for (std::uint32_t width = 4; width <= 24; ++width)
    all.push_back({"quotient" + std::to_string(width), family::quotient, 512, 512, 0, 2, 64, false});
  for (std::uint32_t width = 1; width <= 32; ++width)
    all.push_back({"fuse" + std::to_string(width), family::static_set, 0, width, 0, 3, 64, false});
  for (std::uint32_t width = 1; width <= 32; ++width)
    all.push_back({"ribbon" + std::to_string(width), family::static_set, 0, 1, 0, 1, 64, false});
  for (std::uint32_t width = 1; width <= 32; ++width)
    all.push_back({"cascade" + std::to_string(width), family::static_set, 0, 1, 0, 1, 64, false});
  return all;
}();

TEST(LayoutFacts, AreThoseOfTheFormat) {
  for (const expected_facts& e : table) {
    SCOPED_TRACE(e.name);

    const layout_facts* facts = find_layout_facts(e.name);

    ASSERT_NE(facts, nullptr);
    EXPECT_EQ(facts->name, e.name);
    EXPECT_EQ(facts->family, e.family);
    EXPECT_EQ(facts->block_bits, e.block_bits);
    EXPECT_EQ(facts->cell_bits, e.cell_bits);
    EXPECT_EQ(facts->lanes, e.lanes);
    EXPECT_EQ(facts->fixed_probes, e.fixed_probes);
    EXPECT_EQ(facts->hash_bits, e.hash_bits);
    EXPECT_EQ(facts->may_be_shared, e.may_be_shared);
  }
}

TEST(LayoutFacts, ListEachLayoutInOneFamily) {
  std::size_t listed = 0;

  for (const family f :
       {family::plain, family::counting, family::sliding_window, family::static_set, family::quotient}) {
    for (const layout_facts& facts : layouts_of(f)) {
      EXPECT_EQ(facts.family, f) << facts.name;
      EXPECT_EQ(facts, *find_layout_facts(facts.name));
      ++listed;
    }
  }

  EXPECT_EQ(listed, std::size(table));
}

TEST(LayoutFacts, SayWhetherAFilterMayHaveAnotherNumberOfProbes) {
  for (const layout_facts& facts : layouts_of(family::plain)) {
    SCOPED_TRACE(facts.name);
    params p{.layout = std::string(facts.name), .capacity = 1000, .target_fpr = 0.01};
    p.geometry = complete(p).geometry;
    EXPECT_EQ(p.geometry.bits % facts.unit_bits(), 0u);

    p.geometry.probes = 5;

    if (facts.user_chooses_probes())
      EXPECT_EQ(complete(p).geometry.probes, 5u);
    else
      EXPECT_THROW(complete(p), error);
  }
}

}  // namespace
}  // namespace bloomery
