// Tables and filters of RocksDB: recorded ones answer as RocksDB does (tests/golden/foreign/record.sh), and damaged or
// other ones are refused instead of answering that a key is absent.
#include <bloomery/formats.hpp>
#include <bloomery/leveldb.hpp>

#include "filters/rocksdb_table.hpp"
#include "formats/recorded.hpp"
#include "formats/sorted_table.hpp"
#include "support/test.hpp"

#include <fstream>
#include <sstream>

namespace bloomery {
namespace {

using namespace bloomery_tests;

std::string written(const std::string& content) {
  std::ofstream("changed.sst", std::ios::binary) << content;
  return "changed.sst";
}

formats::byte_source source_of(const std::string& file) {
  return {"test.sst", file.size(), [&file](std::uint64_t offset, std::span<std::uint8_t> into) {
            return file.copy(reinterpret_cast<char*>(into.data()), into.size(), offset);
          }};
}

// The place of a block that the metaindex names.
formats::block_handle place_of(const std::string& table, const std::string& name) {
  const formats::byte_source source = source_of(table);
  const formats::table_footer footer = formats::read_table_footer(source);
  return formats::find_block(formats::read_block(source, footer, footer.metaindex, "", formats::most_bytes::metaindex),
                             source, name)
      .value();
}

// A table without checksums, whose blocks can be changed.
std::string changeable() { return content_of(recorded("rocksdb_no_checksum.sst")); }

formats::block_handle filter_place() { return place_of(changeable(), "fullfilter.rocksdb.BuiltinBloomFilter"); }

std::string with_end(const std::string& end) {
  std::string table = changeable();
  const formats::block_handle place = filter_place();
  return table.replace(place.offset + place.bytes - end.size(), end.size(), end);
}

// ---- tables ---------------------------------------------------------------------------------------------------------

TEST(RocksdbTables, AnswerAsRocksdbDoes) {
  for (const std::string name : {"rocksdb_5", "rocksdb_4"}) {
    const leveldb_table table = leveldb_table::open(recorded(name + ".sst"));

    EXPECT_EQ(positives_by([&](const std::string& key) { return table.may_contain(key); }),
              content_of(recorded(name + ".positives")));
    for (const std::string& key : inserted_keys()) EXPECT_TRUE(table.may_contain(key)) << key;
    EXPECT_EQ(table.no_lookups() + table.all_filters_because(), "");
  }
}

TEST(RocksdbTables, ReportTheirFilter) {
  for (const bool is_legacy : {false, true}) {
    const leveldb_table table = leveldb_table::open(recorded(is_legacy ? "rocksdb_4.sst" : "rocksdb_5.sst"));

    ASSERT_TRUE(table.of_rocksdb().has_value());
    EXPECT_EQ(table.of_rocksdb()->is_legacy, is_legacy);
    EXPECT_EQ(table.of_rocksdb()->lines, is_legacy ? 7u : 6u);  // 303 keys of 10 bits; legacy: an odd number
    EXPECT_EQ(table.of_rocksdb()->probes, 6u);
    // At most 303 * 6 bits; keys share bits of their line.
    const double bits = 512.0 * static_cast<double>(table.of_rocksdb()->lines);
    EXPECT_NEAR(static_cast<double>(table.of_rocksdb()->ones) / bits, 1 - std::exp(-303 * 6 / bits), 0.03);
    EXPECT_EQ(table.policy(), "rocksdb.BuiltinBloomFilter");
    EXPECT_TRUE(table.has_checksums());
    EXPECT_TRUE(table.filters().empty());
  }
}

TEST(RocksdbTables, AreLookedUpThroughAHandle) {
  for (const bool is_legacy : {false, true}) {
    const std::string name = is_legacy ? "rocksdb_4" : "rocksdb_5";
    const auto handle = make_handle(leveldb_table::open(recorded(name + ".sst")));

    EXPECT_TRUE(handle->contains("key-7"));
    EXPECT_FALSE(handle->contains("other-0"));
    EXPECT_EQ(handle->parameters().scheme, is_legacy ? "rocksdb_4" : "rocksdb");
    EXPECT_FALSE(handle->capabilities().can_insert);
    EXPECT_ERROR(handle->insert("Madrid"), errc::not_permitted, "for reading only");
    const std::string_view key = "key-7";
    EXPECT_EQ(handle->explain(std::span(&key, 1)).layers.front().cells.size(), 6u);
    const filter_facts facts = handle->info(info_depth::bits);
    EXPECT_EQ(facts.file->format, "rocksdb_table");
    EXPECT_NEAR(facts.fill->estimated_keys->value, 303, 15);
    const std::string found = content_of(recorded(name + ".positives"));
    const double count = static_cast<double>(std::count(found.begin(), found.end(), '\n'));
    EXPECT_NEAR(count, 20'000 * facts.fill->current_fpr, 5 * std::sqrt(count));
  }
}

TEST(RocksdbTables, HaveChecksumsOfAllKinds) {
  for (const std::string kind : {"crc32c", "xxh32", "xxh64", "xxh3"}) {
    SCOPED_TRACE(kind);
    const std::string whole = content_of(recorded("rocksdb_" + kind + ".sst"));
    const leveldb_table table = leveldb_table::open(recorded("rocksdb_" + kind + ".sst"));
    EXPECT_TRUE(table.has_checksums());
    for (const std::string& key : inserted_keys()) EXPECT_TRUE(table.may_contain(key)) << key;

    // Every byte of the filter, and the byte of its compression.
    const formats::block_handle place = place_of(whole, "fullfilter.rocksdb.BuiltinBloomFilter");
    for (std::uint64_t at = place.offset; at <= place.offset + place.bytes; at += at % 7 == 0 ? 1 : 3) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ 8);
      EXPECT_ERROR(leveldb_table::open(written(changed)), errc::damaged, "checksum of the filter block");
    }
  }
}

TEST(RocksdbTables, MayHaveNoChecksums) {
  const leveldb_table table = leveldb_table::open(recorded("rocksdb_no_checksum.sst"));

  EXPECT_FALSE(table.has_checksums());
  for (const std::string& key : inserted_keys()) EXPECT_TRUE(table.may_contain(key)) << key;
}

// No key of a table is absent: the first filter has prefixes, and the others are of kinds that cannot be looked up.
TEST(RocksdbTables, OfOtherKindsAreRefusedByName) {
  const leveldb_table prefixes = leveldb_table::open(recorded("rocksdb_prefixes.sst"));
  EXPECT_NE(prefixes.no_lookups().find("prefixes of keys"), std::string::npos);
  EXPECT_EQ(prefixes.of_rocksdb()->probes, 6u);
  EXPECT_ERROR(prefixes.may_contain("key-1"), errc::incompatible, "prefixes of keys");
  EXPECT_ERROR(make_handle(leveldb_table::open(recorded("rocksdb_prefixes.sst"))), errc::incompatible, "prefixes");

  EXPECT_ERROR(leveldb_table::open(recorded("rocksdb_partitioned.sst")), errc::incompatible, "a partitioned filter");
  EXPECT_ERROR(leveldb_table::open(recorded("rocksdb_ribbon.sst")), errc::incompatible, "a Ribbon filter");
  EXPECT_ERROR(leveldb_table::open(written(with_end(std::string(6, '\0')))), errc::incompatible, "every key");
}

TEST(RocksdbTables, OfUnknownKindsAreRefused) {
  for (const std::string& end :
       {"\xFF\x01\x06\0\0"s, "\xFF\0\x26\0\0"s, "\xFF\0\0\0\0"s, "\xFF\0\x1F\0\0"s, "\xFF\0\x06\x01\0"s,
        "\xFD\0\x06\0\0"s, "\x06\x03\0\0\0"s, "\x06\0\0\0\0"s, "\x06\x06\0\0\0"s})  // an even number of lines
    EXPECT_ERROR(leveldb_table::open(written(with_end(end))), errc::incompatible, "unknown kind");
  EXPECT_NO_THROW(leveldb_table::open(written(with_end("\xFF\0\x1E\0\0"s))));
}

std::string varint(std::uint64_t number) {
  std::string bytes;
  for (; number >= 128; number >>= 7) bytes += static_cast<char>(number | 128);
  return bytes + static_cast<char>(number);
}

// A table without checksums, whose filter block is a hole in the file.
struct sparse_table {
  std::string metaindex;
  std::string footer;
  std::uint64_t bytes;
  std::uint64_t compression_at;
  std::uint8_t compression;
  std::uint64_t most_read = 0;  // at a time

  explicit sparse_table(std::uint64_t filter_bytes, std::uint8_t compression_of_filter = 0,
                        std::uint64_t metaindex_bytes = 0)
      : compression(compression_of_filter) {
    constexpr std::uint64_t filter_at = 4096;
    const std::string name = "fullfilter.rocksdb.BuiltinBloomFilter";
    const std::string place = varint(filter_at) + varint(filter_bytes);
    metaindex = varint(0) + varint(name.size()) + varint(place.size()) + name + place + "\0\0\0\0\1\0\0\0"s;
    const std::string where = varint(0) + varint(std::max<std::uint64_t>(metaindex.size(), metaindex_bytes));
    footer = '\0' + where + where;
    footer.resize(41);
    footer += "\5\0\0\0\xF7\xCF\xF4\x85\xB7\x41\xE2\x88"s;
    compression_at = filter_at + filter_bytes;
    bytes = compression_at + 5 + footer.size();
  }

  formats::byte_source source() {
    return {"sparse.sst", bytes, [this](std::uint64_t offset, std::span<std::uint8_t> into) {
              most_read = std::max<std::uint64_t>(most_read, into.size());
              for (std::size_t i = 0; i < into.size(); ++i) into[i] = at(offset + i);
              return into.size();
            }};
  }

  std::uint8_t at(std::uint64_t offset) const {
    if (offset < metaindex.size()) return static_cast<std::uint8_t>(metaindex[offset]);
    if (offset == compression_at) return compression;
    const std::uint64_t footer_at = bytes - footer.size();
    return offset < footer_at ? 0 : static_cast<std::uint8_t>(footer[offset - footer_at]);
  }
};

TEST(RocksdbTables, WithLargeHolesAreRefusedBeforeTheyAreRead) {
  const struct {
    sparse_table table;
    errc code;
    const char* words;
  } cases[] = {{sparse_table(std::uint64_t{1} << 31), errc::incompatible, "a filter that reports every key"},
               {sparse_table(std::uint64_t{1} << 40), errc::incompatible, "a filter that reports every key"},
               {sparse_table(std::uint64_t{1} << 31, 7), errc::incompatible, "the filter block is compressed"},
               {sparse_table(std::uint64_t{1} << 40, 1), errc::damaged, "the filter block is too large"},
               {sparse_table(std::uint64_t{1} << 31, 0, std::uint64_t{1} << 30), errc::damaged,
                "the metaindex block is too large"}};
  for (auto [table, code, words] : cases) {
    const formats::byte_source source = table.source();
    EXPECT_ERROR(read_rocksdb_table(source, formats::read_table_footer(source)), code, words);
    EXPECT_LT(table.most_read, 1000u);
  }
}

TEST(RocksdbTables, WithoutTheirPropertiesAreNotLookedUp) {
  std::string table = changeable();
  const std::size_t name = table.find("whole.key.filtering");
  table[name] = 'W';
  const leveldb_table without = leveldb_table::open(written(table));
  EXPECT_NE(without.no_lookups().find("does not state"), std::string::npos);

  table = changeable();
  table[name + 19] = '0';
  EXPECT_NE(leveldb_table::open(written(table)).no_lookups().find("prefixes"), std::string::npos);
}

TEST(RocksdbTables, OfLaterVersionsAndChecksumsAreRefused) {
  std::string file = content_of(recorded("rocksdb_5.sst"));
  file[file.size() - 12] = 6;
  EXPECT_ERROR(leveldb_table::open(written(file)), errc::incompatible, "at most 5, found 6");
  file[file.size() - 12] = 5;
  file[file.size() - 53] = 5;
  EXPECT_ERROR(leveldb_table::open(written(file)), errc::incompatible, "kind 0 to 4, found 5");
}

// ---- filters without a table ----------------------------------------------------------------------------------------

std::string filter_of(const std::string& name) {
  const std::string table = content_of(recorded(name + ".sst"));
  const formats::block_handle place = place_of(table, "fullfilter.rocksdb.BuiltinBloomFilter");
  return table.substr(place.offset, place.bytes);
}

TEST(RocksdbFilters, AreReadAndWrittenAsRocksdbDoes) {
  for (const std::string name : {"rocksdb_5", "rocksdb_4"}) {
    const std::string filter = filter_of(name);
    const any_filter read = import_filter(written(filter), "rocksdb");

    EXPECT_EQ(positives_by([&](const std::string& key) { return read.may_contain(key); }),
              content_of(recorded(name + ".positives")));
    EXPECT_EQ(read.parameters().scheme, name == "rocksdb_4" ? "rocksdb_4" : "rocksdb");
    EXPECT_EQ(recognize_format("changed.sst"), nullptr);

    any_filter built(params{.scheme = read.parameters().scheme, .geometry = read.parameters().geometry});
    for (const std::string& key : inserted_keys()) built.insert(key);
    export_filter(built, "built.foreign", "rocksdb");
    EXPECT_EQ(content_of("built.foreign"), filter);
  }
}

TEST(RocksdbFilters, OfOtherLengthsAndEndsAreRefused) {
  const std::string filter = filter_of("rocksdb_5");
  for (const std::string& file : {""s, filter.substr(1), filter + '\0', filter.substr(filter.size() - 5),
                                  filter.substr(64, 7), filter.substr(0, filter.size() - 5) + "\xFE\0\x06\0\0"s,
                                  filter.substr(0, filter.size() - 5) + "\x06\x07\0\0\0"s})
    EXPECT_ERROR(import_filter(written(file), "rocksdb"), errc::damaged, "");
}

}  // namespace
}  // namespace bloomery
