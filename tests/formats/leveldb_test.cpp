// Tables of LevelDB: recorded tables answer as LevelDB does (tests/golden/foreign/record.sh), and damaged
// or unknown tables are refused instead of answering that a key is absent.
#include <bloomery/leveldb.hpp>
#include <bloomery/scheme.hpp>

#include "formats/recorded.hpp"
#include "formats/snappy.hpp"
#include "formats/sorted_table.hpp"
#include "hash/crc32c.hpp"
#include "hash/leveldb.hpp"
#include "support/test.hpp"

#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

namespace bloomery {
namespace {

using namespace bloomery_tests;

std::string written(const std::string& content) {
  std::ofstream("changed.ldb", std::ios::binary) << content;
  return "changed.ldb";
}

std::vector<std::string> keys_of_tables() {
  std::vector<std::string> keys = inserted_keys();
  for (int i = 20'000; i < 60'000; i += 37) keys.push_back("other-" + std::to_string(i));
  return keys;
}

std::span<const std::uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

formats::byte_source source_of(const std::string& file) {
  return {"test.ldb", file.size(), [&file](std::uint64_t offset, std::span<std::uint8_t> into) {
            return file.copy(reinterpret_cast<char*>(into.data()), into.size(), offset);
          }};
}

std::string number(std::uint32_t value) {
  std::string bytes(4, '\0');
  std::memcpy(bytes.data(), &value, 4);
  return bytes;
}

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

// A block of entries, each with its whole key.
std::string block_of(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string block;
  for (const auto& [key, value] : entries) block += varint(0) + varint(key.size()) + varint(value.size()) + key + value;
  return block + number(0) + number(1);
}

// A table whose data blocks are zeros: as many bytes as the filters are for.
struct made_table {
  std::string filters;  // the filter block
  std::string index;
  char compression_of_index = 0;

  std::string file() const {
    std::string bytes(4096, '\0');
    const std::string filters_at = append(bytes, filters, 0);
    const std::string metaindex_at = append(bytes, block_of({{"filter.leveldb.BuiltinBloomFilter2", filters_at}}), 0);
    std::string footer = metaindex_at + append(bytes, index, compression_of_index);
    footer.resize(40);
    return bytes + footer + "\x57\xFB\x80\x8B\x24\x75\x47\xDB";
  }

  // Returns the handle of the block.
  static std::string append(std::string& bytes, const std::string& block, char compression) {
    const std::string handle = varint(bytes.size()) + varint(block.size());
    const std::string all = block + compression;
    const std::uint32_t crc = hashes::crc32c(bytes_of(all));
    bytes += all + number((crc >> 15 | crc << 17) + 0xA282EAD8);
    return handle;
  }
};

constexpr char of_value[] = "\x01\x05\0\0\0\0\0\0";  // what a database appends to a key

std::string internal(const std::string& key) { return key + std::string(of_value, 8); }

// Blocks at 0 and at 2048, with keys up to "h" and up to "p".
std::string two_blocks() {
  return block_of({{internal("h"), varint(0) + varint(100)}, {internal("p"), varint(2048) + varint(100)}});
}

std::string filter_block_of(const std::vector<std::string>& filters) {
  std::string bytes;
  std::string offsets;
  for (const std::string& filter : filters) {
    offsets += number(static_cast<std::uint32_t>(bytes.size()));
    bytes += filter;
  }
  return bytes + offsets + number(static_cast<std::uint32_t>(bytes.size())) + '\x0B';
}

const std::string hello = "\x01\x40\0\x01\x04\x10\x40\0\x06"s;  // what CreateFilter returns for "hello"

TEST(LeveldbTables, AnswerAsLeveldbDoes) {
  for (const std::string name : {"leveldb_none", "leveldb_snappy"}) {
    const leveldb_table table = leveldb_table::open(recorded(name + ".ldb"), leveldb_order::bytewise);
    std::string positives;
    for (int i = 0; i < 20'000; ++i) {
      const std::string key = "other-" + std::to_string(i);
      if (table.may_contain(key)) positives += key + '\n';
    }

    EXPECT_EQ(positives, content_of(recorded(name + ".positives"))) << name;
    for (const std::string& key : keys_of_tables()) EXPECT_TRUE(table.may_contain(key)) << key;
    EXPECT_FALSE(table.may_contain("\xF0"));  // after the last key
    EXPECT_EQ(table.no_lookups() + table.all_filters_because(), "");
  }
}

TEST(LeveldbTables, HaveAnIndexThatIsCompressedBySnappy) {
  for (const bool compressed : {false, true}) {
    const std::string file = content_of(recorded(compressed ? "leveldb_snappy.ldb" : "leveldb_none.ldb"));
    const formats::byte_source source = source_of(file);
    const formats::table_footer footer = formats::read_table_footer(source);

    const formats::table_block index =
        formats::read_block(source, footer, footer.index, "index block", formats::most_bytes::index);

    EXPECT_EQ(index.compression == formats::block_compression::snappy, compressed);
  }
}

TEST(LeveldbTables, ReportTheirFilters) {
  for (const std::string name : {"leveldb_none.ldb", "leveldb_snappy.ldb"}) {
    const leveldb_table table = leveldb_table::open(recorded(name));
    double keys = 0;
    double sum_of_rates = 0;
    double variance = 0;
    std::uint64_t bits = 0;
    const std::vector<leveldb_filter> filters = table.filters();
    ASSERT_GE(filters.size(), 7u);

    for (std::size_t i = 0; i < filters.size(); ++i) {
      EXPECT_EQ(filters[i].first, 2048 * i);
      EXPECT_EQ(filters[i].end, 2048 * (i + 1));
      EXPECT_EQ(filters[i].size.probes, 6u);
      keys += filters[i].keys.value;
      variance += filters[i].keys.sigma * filters[i].keys.sigma;
      sum_of_rates += filters[i].current_fpr;
      bits += filters[i].size.bits;
    }

    const double count = static_cast<double>(keys_of_tables().size());
    EXPECT_NEAR(keys, count, 5 * std::sqrt(variance)) << name;
    EXPECT_NEAR(static_cast<double>(bits), 10 * count, 8.0 * static_cast<double>(filters.size())) << name;
    const double rate = sum_of_rates / static_cast<double>(filters.size());
    const std::string positives = content_of(recorded(name.substr(0, name.size() - 4) + ".positives"));
    const double found = static_cast<double>(std::count(positives.begin(), positives.end(), '\n'));
    EXPECT_NEAR(found, 20'000 * rate, 5 * std::sqrt(20'000 * rate)) << name;
    EXPECT_EQ(table.policy(), "leveldb.BuiltinBloomFilter2");
    EXPECT_EQ(table.file_bytes(), content_of(recorded(name)).size());
    EXPECT_EQ(table.of_rocksdb(), std::nullopt);
  }
}

// A factor for all filters accounts for LevelDB's hashing. The scheme measures each filter by its own bits.
TEST(LeveldbTables, HaveTheRatesOfTheScheme) {
  const std::string whole = content_of(recorded("leveldb_none.ldb"));
  const formats::byte_source source = source_of(whole);
  const formats::table_footer footer = formats::read_table_footer(source);
  formats::block_handle place;
  formats::each_entry(
      formats::read_block(source, footer, footer.metaindex, "metaindex block", formats::most_bytes::metaindex).bytes,
      source, "", [&](const formats::block_entry& e) { place = formats::handle_of(e.value, source, ""); });
  const formats::filter_block block(
      formats::read_block(source, footer, place, "filter block", formats::most_bytes::filter).bytes, source);
  const auto filters = leveldb_table::open(recorded("leveldb_none.ldb")).filters();
  double sum = 0;
  double expected = 0;

  for (std::size_t i = 0; i < filters.size(); ++i) {
    const double rate =
        find_scheme("leveldb")->current_fpr(filters[i].size, {.ones = filters[i].ones, .beginning = block.filter(i)});
    EXPECT_NEAR(filters[i].current_fpr / rate, 1, 0.25) << i;
    sum += filters[i].current_fpr;
    expected += rate;
  }

  EXPECT_NEAR(sum / expected, 1, 0.04);
}

TEST(LeveldbTables, AreLookedUpThroughAHandle) {
  const auto handle = make_handle(leveldb_table::open(recorded("leveldb_snappy.ldb"), leveldb_order::bytewise));

  EXPECT_TRUE(handle->contains("key-7"));
  EXPECT_FALSE(handle->contains("other-0"));
  EXPECT_FALSE(handle->capabilities().can_insert);
  EXPECT_ERROR(handle->insert("Madrid"), errc::not_permitted, "for reading only");
  EXPECT_ERROR(handle->contains(std::uint64_t{7}), errc::incompatible, "text");
  const filter_facts facts = handle->info(info_depth::bits);
  EXPECT_EQ(facts.layers.size(), 7u);
  EXPECT_EQ(facts.bits, 13'864u);
  EXPECT_NEAR(facts.fill->current_fpr, 0.0086, 0.0005);
  EXPECT_FALSE(facts.fill->is_exact);
}

// The folder of the recorded tables has no manifest.
TEST(LeveldbTables, AreLookedUpInAllFiltersIfTheirOrderIsUnknown) {
  const leveldb_table table = leveldb_table::open(recorded("leveldb_snappy.ldb"));
  const auto handle = make_handle(leveldb_table::open(recorded("leveldb_snappy.ldb")));
  int found = 0;
  for (int i = 0; i < 20'000; ++i) found += table.may_contain("other-" + std::to_string(i)) ? 1 : 0;

  EXPECT_NE(table.all_filters_because().find("no CURRENT and MANIFEST"), std::string::npos);
  for (const std::string& key : keys_of_tables()) EXPECT_TRUE(table.may_contain(key)) << key;
  const double rate = handle->info(info_depth::bits).fill->current_fpr;
  EXPECT_NEAR(rate, 1 - std::pow(1 - 0.0086, 7), 0.004);
  EXPECT_NEAR(found, 20'000 * rate, 5 * std::sqrt(20'000 * rate));
}

TEST(LeveldbTables, UseTheIndexIfTheManifestNamesLeveldbsOrder) {
  for (const bool is_bytewise : {true, false}) {
    const leveldb_table table =
        leveldb_table::open(recorded(is_bytewise ? "leveldb_bytewise/000005.ldb" : "leveldb_reverse/000005.ldb"));

    EXPECT_EQ(table.all_filters_because().empty(), is_bytewise) << table.all_filters_because();
    const std::vector<std::string> keys = keys_of_tables();
    for (std::size_t i = 0; i < 303; ++i) EXPECT_TRUE(table.may_contain(keys[i])) << keys[i];
    EXPECT_FALSE(table.may_contain("\xF0"));
  }
}

// One byte of the manifest, or its name, is wrong: the order is unknown. A longer CURRENT is not its name.
TEST(LeveldbTables, TrustNoDamagedManifest) {
  const std::string manifest = content_of(recorded("leveldb_bytewise/MANIFEST-000002"));
  const std::string table = written(content_of(recorded("leveldb_bytewise/000005.ldb")));
  const auto uses_index = [&](const std::string& current, const std::string& content) {
    std::ofstream("CURRENT", std::ios::binary) << current;
    std::ofstream("MANIFEST-000002", std::ios::binary) << content;
    return leveldb_table::open(table).all_filters_because().empty();
  };

  EXPECT_TRUE(uses_index("MANIFEST-000002\n", manifest));
  for (std::size_t at = 0; at < 35; ++at) {
    std::string changed = manifest;
    changed[at] = static_cast<char>(changed[at] ^ 4);
    EXPECT_FALSE(uses_index("MANIFEST-000002\n", changed)) << at;
    EXPECT_FALSE(uses_index("MANIFEST-000002\n", manifest.substr(0, at))) << at;
  }
  for (const std::string current : {"", "MANIFEST-000002", "MANIFEST-\n", "MANIFEST-000003\n", "MANIFEST-./000002\n"})
    EXPECT_FALSE(uses_index(current, manifest)) << current;
  std::remove("CURRENT");
  std::remove("MANIFEST-000002");
}

// An index of one entry shows no order: the key "z" comes before "a", the last one.
TEST(LeveldbTables, OfAnotherOrderMissNoKey) {
  const made_table reverse{filter_block_of({hello}), block_of({{internal("a"), varint(0) + varint(100)}})};
  EXPECT_TRUE(leveldb_table::open(written(reverse.file())).may_contain("hello"));

  // Numbers in the order of their values, which is that of their bytes at the ends of the blocks: 9, 99.
  const made_table numbers{filter_block_of({"", hello}), block_of({{internal("i"), varint(0) + varint(100)},
                                                                   {internal("zz"), varint(2048) + varint(100)}})};
  EXPECT_TRUE(leveldb_table::open(written(numbers.file())).may_contain("hello"));

  // A data block without a filter may have any key.
  const made_table short_filters{filter_block_of({""}), two_blocks()};
  EXPECT_TRUE(leveldb_table::open(written(short_filters.file())).may_contain("hello"));
}

// Keys of 8 bytes without those of a database look like sequence numbers, which decrease for the same key.
TEST(LeveldbTables, UseNoIndexWithIncreasingSequenceNumbers) {
  const auto index = [](char first, char second) {
    return block_of({{"h\x01"s + first + std::string(6, '\0'), varint(0) + varint(100)},
                     {"h\x01"s + second + std::string(6, '\0'), varint(2048) + varint(100)}});
  };
  const auto reason = [&](char first, char second) {
    const made_table table{filter_block_of({hello, hello}), index(first, second)};
    return leveldb_table::open(written(table.file()), leveldb_order::bytewise).all_filters_because();
  };

  EXPECT_EQ(reason(7, 6), "");
  EXPECT_NE(reason(6, 6).find("sequence numbers"), std::string::npos);
  EXPECT_NE(reason(6, 7).find("sequence numbers"), std::string::npos);
}

// A name that is long or shared by many entries takes no quadratic time.
TEST(LeveldbTables, WithManyLongNamesAreRefusedQuickly) {
  constexpr std::size_t length = 400'000;
  std::string metaindex = varint(0) + varint(length) + varint(0) + std::string(length, 'f');
  for (std::size_t i = 0; i < length / 5; ++i) metaindex += varint(length) + varint(0) + varint(0);
  std::string file(4096, '\0');
  std::string footer = made_table::append(file, metaindex + number(0) + number(1), 0);
  footer += made_table::append(file, two_blocks(), 0);
  footer.resize(40);
  const std::string path = written(file + footer + "\x57\xFB\x80\x8B\x24\x75\x47\xDB");
  const auto start = std::chrono::steady_clock::now();

  EXPECT_ERROR(leveldb_table::open(path), errc::not_found, "no filter");

  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(3));
}

TEST(LeveldbTables, UseTheFilterOfTheDataBlockOfAKey) {
  const auto may_contain = [](const std::string& first, const std::string& second, std::string_view key) {
    return leveldb_table::open(written(made_table{filter_block_of({first, second}), two_blocks()}.file()),
                               leveldb_order::bytewise)
        .may_contain(key);
  };

  EXPECT_TRUE(may_contain(hello, "", "hello") == false);  // "hello" is after "h", in the second block
  EXPECT_TRUE(may_contain("", hello, "hello"));
  EXPECT_FALSE(may_contain("", hello, "help"));
  EXPECT_FALSE(may_contain("", "", "hello"));       // no keys
  EXPECT_FALSE(may_contain("", "\x06", "hello"));   // LevelDB does not use a filter without bits
  EXPECT_FALSE(may_contain(hello, hello, "q"));     // after the last key
  for (const char probes : {'\0', '\x1F', '\xFF'})  // LevelDB reports every key
    EXPECT_TRUE(may_contain("", std::string(8, '\0') + probes, "hello")) << int{probes};
  const made_table one{filter_block_of({""}), two_blocks()};  // no filter for the second block
  EXPECT_TRUE(leveldb_table::open(written(one.file()), leveldb_order::bytewise).may_contain("hello"));
  EXPECT_EQ(leveldb_table::open(written(one.file())).filters().size(), 1u);
}

TEST(LeveldbTables, RefuseDamagedFilterBlocks) {
  const std::string good = filter_block_of({hello, hello});
  const auto changed = [&](std::size_t at, const std::string& bytes) {
    return std::string(good).replace(at, bytes.size(), bytes);
  };
  for (const std::string& filters : {good.substr(0, 4), changed(18, number(10)), changed(18, number(0xFFFFFFFF)),
                                     changed(good.size() - 5, number(27)), changed(good.size() - 1, "\x21")}) {
    EXPECT_ERROR(leveldb_table::open(written(made_table{filters, two_blocks()}.file())), errc::damaged, "filter block");
  }
}

TEST(LeveldbTables, UseNoIndexThatContradictsItsOrder) {
  const struct {
    std::string index;
    const char* words;
  } tables[] = {{block_of({{"hello, Madrid", varint(0) + varint(100)}}), "not those of a database"},
                {block_of({{"short", varint(0) + varint(100)}}), "not those of a database"},
                {block_of({{internal("p"), varint(0) + varint(100)}, {internal("h"), varint(2048) + varint(100)}}),
                 "not in the order of their bytes"},
                {varint(0) + varint(9) + varint(2) + internal("h") + varint(0) + varint(100) + varint(1) + varint(8) +
                     varint(2) + internal("") + varint(0) + varint(100) + number(0) + number(1),
                 "shortened keys"}};
  for (const auto& [index, words] : tables) {
    const std::string path = written(made_table{filter_block_of({hello, hello}), index}.file());
    const leveldb_table table = leveldb_table::open(path, leveldb_order::bytewise);
    EXPECT_NE(table.all_filters_because().find(words), std::string::npos) << table.all_filters_because();
    EXPECT_TRUE(table.may_contain("hello"));
    EXPECT_FALSE(table.may_contain("help"));
  }
}

TEST(LeveldbTables, RefuseDamagedOrUnknownIndexes) {
  const made_table damaged{filter_block_of({hello, hello}), "\x01\x00\x00"s + number(0) + number(1)};
  EXPECT_ERROR(leveldb_table::open(written(damaged.file())), errc::damaged, "index block is damaged");

  const std::string path = written(made_table{filter_block_of({hello, hello}), two_blocks(), 2}.file());
  const leveldb_table opened = leveldb_table::open(path);
  EXPECT_NE(opened.no_lookups().find("compressed"), std::string::npos) << opened.no_lookups();
  EXPECT_ERROR(opened.may_contain("hello"), errc::incompatible, "compressed");
  EXPECT_ERROR(make_handle(leveldb_table::open(path)), errc::incompatible, "compressed");
  EXPECT_EQ(opened.filters().size(), 2u);
}

// Every byte after the data, one at a time: an error, or the same answers.
TEST(LeveldbTables, NeverMissAKeyBecauseOfADamagedByte) {
  for (const std::string name : {"leveldb_none.ldb", "leveldb_snappy.ldb"}) {
    const std::string whole = content_of(recorded(name));
    const std::uint64_t data_end = leveldb_table::open(recorded(name)).filters().back().end;
    std::size_t opened = 0;
    for (std::size_t at = data_end; at < whole.size(); ++at) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ 0x10);
      try {
        const leveldb_table table = leveldb_table::open(written(changed), leveldb_order::bytewise);
        for (const std::string& key : keys_of_tables()) ASSERT_TRUE(table.may_contain(key)) << name << ", byte " << at;
        ++opened;
      } catch (const error& e) {
        ASSERT_FALSE(e.text().what.empty());
      }
    }
    EXPECT_LT(opened, 40u) << name;  // unused bytes of the footer
  }
}

TEST(LeveldbTables, RefuseTruncatedFiles) {
  const std::string whole = content_of(recorded("leveldb_none.ldb"));
  for (std::size_t length = 0; length < whole.size(); length += length < 100 ? 1 : 397)
    EXPECT_ERROR(leveldb_table::open(written(whole.substr(0, length))), errc::not_a_filter, "not a table");
  const std::string end = whole.substr(whole.size() - 48);
  for (std::size_t length = 8; length < 48; ++length)
    EXPECT_ERROR(leveldb_table::open(written(end.substr(48 - length))), errc::damaged, "truncated");
  EXPECT_ERROR(leveldb_table::open(written(end)), errc::damaged, "not within the file");
}

TEST(LeveldbTables, AreRecognizedByTheirLastBytes) {
  for (const char* const name : {"leveldb_none.ldb", "leveldb_snappy.ldb", "rocksdb_5.sst", "rocksdb_4.sst"})
    EXPECT_TRUE(is_leveldb_table(recorded(name))) << name;
  EXPECT_FALSE(is_leveldb_table(recorded("leveldb.filter")));
  EXPECT_FALSE(is_leveldb_table(written("")));
  EXPECT_ERROR(is_leveldb_table("missing"), errc::not_found, "missing");
  EXPECT_ERROR(leveldb_table::open("missing"), errc::not_found, "missing");
}

TEST(LeveldbTables, WithoutAFilterNameTheOthers) {
  std::string file(4096, '\0');
  const std::string metaindex = made_table::append(file, block_of({{"filter.mine", varint(0) + varint(1)}}), 0);
  std::string footer = metaindex + made_table::append(file, two_blocks(), 0);
  footer.resize(40);

  EXPECT_ERROR(leveldb_table::open(written(file + footer + "\x57\xFB\x80\x8B\x24\x75\x47\xDB")), errc::not_found,
               "found filter.mine");
}

TEST(Snappy, DecompressesLiteralsAndCopies) {
  const auto decompressed = [](const std::string& block) -> std::string {
    const auto bytes = formats::decompress_snappy(bytes_of(block));
    return bytes ? std::string(bytes->begin(), bytes->end()) : "damaged";
  };

  EXPECT_EQ(decompressed("\x00"s), "");
  EXPECT_EQ(decompressed("\x03\x08"
                         "abc"s),
            "abc");
  EXPECT_EQ(decompressed("\x09\x08"
                         "abc\x09\x03"s),
            "abcabcabc");  // copies its own bytes, length 6
  EXPECT_EQ(decompressed("\x08\x08"
                         "abc\x12\x03\x00"s),
            "abcabcab");  // an offset of 2 bytes
  EXPECT_EQ(decompressed("\x08\x08"
                         "abc\x13\x03\x00\x00\x00"s),
            "abcabcab");  // of 4 bytes
  EXPECT_EQ(decompressed("\x46\xF0\x45"s + std::string(70, 'x')), std::string(70, 'x'));
  for (const std::string& block : {""s, "\x03"s,
                                   "\x03\x08"
                                   "ab"s,
                                   "\x02\x08"
                                   "abc"s,
                                   "\x04\x08"
                                   "abc"s,
                                   "\x09\x08"
                                   "abc\x09\x04"s,
                                   "\x09\x08"
                                   "abc\x09\x00"s,
                                   "\x09\x08"
                                   "abc\x09"s,
                                   "\xFF\xFF\xFF\xFF\x0F\x08"
                                   "abc"s,
                                   "\x03\xF0"s})
    EXPECT_EQ(decompressed(block), "damaged");
}

TEST(LeveldbHashes, HaveTheKnownValues) {
  EXPECT_EQ(hashes::crc32c(bytes_of("123456789")), 0xE3069283u);
  EXPECT_EQ(hashes::leveldb_32("hello", 0xBC9F1D34), 0xF795964Eu);
}

}  // namespace
}  // namespace bloomery
