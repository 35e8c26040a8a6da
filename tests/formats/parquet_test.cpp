// The Bloom filters of the columns of Parquet files: lookups in all row groups, and what is refused.
// parquet_footer_test.cpp compares the answers with those of DuckDB and hyparquet.
#include <bloomery/filter_handle.hpp>
#include <bloomery/parquet.hpp>

#include "formats/parquet_file.hpp"
#include "support/test.hpp"

#include <fstream>

namespace bloomery {
namespace {

using namespace bloomery_tests;

std::string recorded(const std::string& name) { return BLOOMERY_SOURCE_DIR "/tests/golden/foreign/" + name; }

std::string written(const small_parquet& parquet) {
  const bytes file = parquet.file();
  std::ofstream("test.parquet", std::ios::binary)
      .write(reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(file.size()));
  return "test.parquet";
}

TEST(Parquet, ListsColumnsWithAndWithoutFilters) {
  const std::vector<parquet_column> columns = parquet_columns(recorded("duckdb.parquet"));

  const auto column = [&](std::string_view name) {
    return *std::find_if(columns.begin(), columns.end(), [&](const parquet_column& c) { return c.name == name; });
  };
  EXPECT_EQ(columns.size(), 12u);
  EXPECT_EQ(column("s").type, "BYTE_ARRAY");
  EXPECT_EQ(column("s").annotation, "STRING");
  ASSERT_EQ(column("b").row_groups.size(), 3u);
  EXPECT_EQ(column("b").row_groups[2].number, 2u);
  EXPECT_EQ(column("b").row_groups[2].rows, 2048u);
  EXPECT_EQ(column("b").row_groups[2].filter_bytes, 256u);
  EXPECT_EQ(column("without").row_groups[0].filter_bytes, 0u);
  EXPECT_TRUE(is_parquet(recorded("duckdb.parquet")));
  EXPECT_FALSE(is_parquet(recorded("guava.filter")));
}

TEST(Parquet, FindsTheRowGroupsOfAValue) {
  const parquet_filters filters = parquet_filters::open(recorded("duckdb.parquet"), "b");

  EXPECT_THAT(filters.row_groups_with("7919"), ElementsAre(0u));
  EXPECT_TRUE(filters.may_contain("7919"));
  EXPECT_THAT(filters.row_groups_with("-7919"), IsEmpty());
  EXPECT_FALSE(filters.may_contain("-7919"));
  EXPECT_EQ(filters.filter(0)->parameters().hash, "xxh64");
  EXPECT_THAT(filters.filter(0)->may_contain(std::string_view("\xEF\x1E\0\0\0\0\0\0", 8)), true);  // 7919 = 0x1EEF
  EXPECT_ERROR(filters.row_groups_with("Madrid"), errc::invalid_argument, "Madrid");
}

TEST(Parquet, AnswersThroughAHandle) {
  const auto handle = make_handle(parquet_filters::open(recorded("duckdb.parquet"), "b"));

  EXPECT_TRUE(handle->contains("7919"));
  EXPECT_FALSE(handle->contains("-7919"));
  EXPECT_ERROR(handle->insert("1"), errc::not_permitted, "for reading only");
  EXPECT_ERROR(handle->contains(std::uint64_t{7919}), errc::incompatible, "given as text");
  const filter_facts facts = handle->info(info_depth::bits);
  EXPECT_EQ(facts.file->format, "parquet");
  ASSERT_EQ(facts.layers.size(), 3u);
  double none = 1;
  for (std::size_t i = 0; i < 3; ++i) {
    const any_filter& filter = *parquet_filters_of(*handle)->filter(i);
    none *= 1 - filter.current_fpr();
    EXPECT_EQ(*facts.layers[i].cells_set, measure_fill(filter.parameters(), filter.bytes()).ones);
  }
  EXPECT_NEAR(facts.fill->current_fpr, 1 - none, 1e-12);
}

TEST(Parquet, FindsBothZerosOfAFloatingPointColumn) {
  small_parquet parquet;
  parquet.schema_type = parquet.type = 5;  // DOUBLE
  std::fill(parquet.bitset.begin(), parquet.bitset.end(), std::uint8_t{0});
  any_filter filter(params{.layout = "split_block", .hash = "xxh64", .geometry = {512, 8}});
  filter.insert(std::string_view("\0\0\0\0\0\0\0\x80", 8));  // -0
  std::copy(filter.bytes().begin(), filter.bytes().end(), parquet.bitset.begin());

  const parquet_filters filters = parquet_filters::open(written(parquet), "x");

  EXPECT_TRUE(filters.may_contain("0"));
  EXPECT_TRUE(filters.may_contain("-0.0"));
  EXPECT_FALSE(filters.may_contain("1"));
}

TEST(Parquet, RefusesColumnsThatAreMissingAmbiguousOrWithoutFilters) {
  EXPECT_ERROR(parquet_filters::open(recorded("duckdb.parquet"), "x"), errc::not_found, "one of s, b");
  EXPECT_ERROR(parquet_filters::open(recorded("duckdb.parquet"), "without"), errc::not_found, "no Bloom filter");
  EXPECT_ERROR(parquet_filters::open(recorded("guava.filter"), "x"), errc::not_a_filter, "not a Parquet file");

  small_parquet twice;
  twice.children = 2;
  twice.columns = twice.chunks = 2;
  EXPECT_ERROR(parquet_filters::open(written(twice), "x"), errc::incompatible, "two columns of the file");
  EXPECT_EQ(parquet_columns("test.parquet").size(), 2u);

  small_parquet empty;
  empty.row_groups = 0;
  EXPECT_ERROR(parquet_filters::open(written(empty), "x"), errc::not_found, "a file with row groups");

  small_parquet other;  // an unknown algorithm
  other.header = [] {
    thrift_writer w;
    w.i32(1, 64).structure(2, [](thrift_writer& u) { u.structure(2, [](thrift_writer&) {}); });
    w.out.push_back(0);
    return w.out;
  }();
  other.length = static_cast<std::int64_t>(other.header.size()) + 64;
  EXPECT_ERROR(parquet_filters::open(written(other), "x"), errc::incompatible, "cannot be read");
  EXPECT_NE(parquet_columns("test.parquet")[0].unreadable, "");
}

// A thousand row groups that share one filter would take a thousand times its memory.
TEST(Parquet, RefusesFiltersThatOverlap) {
  small_parquet shared;
  shared.row_groups = 1000;

  EXPECT_ERROR(parquet_filters::open(written(shared), "x"), errc::damaged, "two filters of a column overlap");
}

}  // namespace
}  // namespace bloomery
