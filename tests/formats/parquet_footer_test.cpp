// Bloom filters of Parquet files: the same answers as DuckDB and hyparquet give for their files, and errors instead of
// undefined behavior for damaged ones. tests/golden/foreign/make_parquet.mjs wrote the files and the answers.
#include <bloomery/layouts/split_block.hpp>

#include "formats/parquet_file.hpp"
#include "formats/parquet_footer.hpp"
#include "formats/parquet_value.hpp"
#include "platform/posix.hpp"
#include "support/test.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <fstream>
#include <sstream>

namespace {

using namespace bloomery;
using namespace bloomery::formats;
using namespace bloomery_tests;

std::string golden(const std::string& name) { return BLOOMERY_SOURCE_DIR "/tests/golden/foreign/" + name; }

std::uint64_t hash_of(std::span<const std::uint8_t> bytes) { return XXH64(bytes.data(), bytes.size(), 0); }

// BloomFilter.md, without code of the library.
bool parquet_contains(const bytes& bitset, std::uint64_t hash) {
  constexpr std::uint32_t salt[8] = {0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d,
                                     0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31};
  const std::uint64_t block = ((hash >> 32) * (bitset.size() / 32)) >> 32;
  for (std::size_t j = 0; j < 8; ++j) {
    const std::uint32_t bit = (static_cast<std::uint32_t>(hash) * salt[j]) >> 27;
    if ((bitset[32 * block + 4 * j + bit / 8] >> (bit % 8) & 1) == 0) return false;
  }
  return true;
}

bytes bitset_of(const byte_source& source, const parquet_footer& footer, const parquet_chunk& chunk) {
  const parquet_bitset place = read_filter_header(source, footer, chunk);
  bytes bitset(place.bytes);
  source.read_all(place.offset, bitset);
  return bitset;
}

// A line of an .answers file.
struct answers {
  std::string column, prefix, suffix, digits;
  std::int64_t first = 0, step = 0;

  std::string key(std::size_t i) const {
    return prefix + std::to_string(first + static_cast<std::int64_t>(i) * step) + suffix;
  }
  bool may_contain(std::size_t i, std::uint64_t row_group) const { return ((digits[i] - '0') >> row_group & 1) != 0; }
};

std::vector<answers> read_answers(const std::string& name) {
  std::ifstream in(golden(name));
  std::vector<answers> all;
  for (std::string line; std::getline(in, line);) {
    answers a;
    std::istringstream fields(line);
    std::string first, step, count;
    for (std::string* field : {&a.column, &a.prefix, &first, &step, &count, &a.suffix, &a.digits}) {
      std::getline(fields, *field, '\t');
    }
    a.first = std::stoll(first);
    a.step = std::stoll(step);
    EXPECT_EQ(std::to_string(a.digits.size()), count);
    all.push_back(a);
  }
  return all;
}

struct golden_file {
  std::string path;
  posix::opened file = posix::open_regular(path, false);
  byte_source source = formats::source_of(file, path);
  parquet_footer footer = read_parquet_footer(source);

  explicit golden_file(const std::string& name) : path(golden(name)) {}
};

void expect_the_answers(const std::string& name, std::size_t expected_lookups, std::size_t expected_positives) {
  const golden_file parquet(name + ".parquet");
  std::size_t lookups = 0;
  std::size_t positives = 0;
  for (const answers& a : read_answers(name + ".answers")) {
    for (const parquet_chunk& chunk : parquet.footer.chunks) {
      if (chunk.column != a.column) continue;
      const bytes bitset = chunk.filter ? bitset_of(parquet.source, parquet.footer, chunk) : bytes();
      for (std::size_t i = 0; chunk.filter && i < a.digits.size(); ++i) {
        std::array<std::uint8_t, plain_number_bytes> buffer{};
        const std::string key = a.key(i);
        const bool found = parquet_contains(bitset, hash_of(plain_value(chunk, key, buffer)));
        ASSERT_EQ(found, a.may_contain(i, chunk.row_group)) << key << " in row group " << chunk.row_group;
        ++lookups;
        positives += found;
      }
      if (!chunk.filter) {
        for (std::size_t i = 0; i < a.digits.size(); ++i) EXPECT_TRUE(a.may_contain(i, chunk.row_group)) << a.column;
      }
    }
  }
  EXPECT_EQ(lookups, expected_lookups);
  EXPECT_EQ(positives, expected_positives);
}

// ---- files of other programs ----------------------------------------------------------------------------------------

// 1,980 keys are present, and 426 of 71,520 lookups of absent keys are false positives.
TEST(ParquetFooter, GivesTheAnswersOfDuckdbForItsFile) { expect_the_answers("duckdb", 73'500, 2'406); }
// 4,000 keys are present, and 374 of 35,000 lookups of absent keys are false positives.
TEST(ParquetFooter, GivesTheAnswersOfDuckdbAndHyparquetForAFileOfHyparquet) {
  expect_the_answers("hyparquet", 39'000, 4'374);
}

TEST(ParquetFooter, ListsTheColumnsOfEachRowGroup) {
  const golden_file parquet("duckdb.parquet");

  const parquet_footer& footer = parquet.footer;
  EXPECT_THAT(footer.created_by, HasSubstr("DuckDB version v1.5.6"));
  EXPECT_EQ(footer.rows, 6144u);
  EXPECT_EQ(footer.row_groups, 3u);
  EXPECT_EQ(footer.columns, 12u);
  ASSERT_EQ(footer.chunks.size(), 36u);
  std::string list;
  for (const parquet_chunk& chunk : std::span(footer.chunks).subspan(12, 12)) {
    EXPECT_EQ(chunk.row_group, 1u);
    EXPECT_EQ(chunk.rows, 2048u);
    EXPECT_EQ(chunk.values, chunk.column == "tags.list.element" ? 4096u : 2048u) << chunk.column;
    list += std::to_string(chunk.column_number) + " " + chunk.column + " " + name_of(chunk.type) + " " +
            std::string(chunk.annotation) + (chunk.is_unsigned ? " unsigned" : "") + (chunk.filter ? " filter" : "") +
            "\n";
  }
  EXPECT_EQ(list,
            "0 s BYTE_ARRAY STRING filter\n"
            "1 b INT64 INT_64 filter\n"
            "2 n INT32 INT_32 filter\n"
            "3 d DOUBLE  filter\n"
            "4 f FLOAT  filter\n"
            "5 u INT32 UINT_32 unsigned filter\n"
            "6 day INT32 DATE filter\n"
            "7 nulls INT64 INT_64 filter\n"
            "8 without BOOLEAN \n"
            "9 nested.inner INT64 INT_64 filter\n"
            "10 nested.x.y BYTE_ARRAY STRING filter\n"
            "11 tags.list.element BYTE_ARRAY STRING filter\n");
}

TEST(ParquetFooter, HasTheBitsThatSplitBlockSetsForTheSameKeys) {
  const golden_file parquet("duckdb.parquet");
  for (const std::uint64_t group : {0u, 1u, 2u}) {
    const parquet_chunk& chunk = parquet.footer.chunks[12 * group];
    const bytes expected = bitset_of(parquet.source, parquet.footer, chunk);
    const geometry g{8 * expected.size(), 8};
    bytes actual(expected.size());

    for (std::uint64_t i = 0; i < 150; ++i) {
      const std::string key = "město " + std::to_string(1000 * group + i);
      layouts::split_block::cells cells(g, {XXH64(key.data(), key.size(), 0), 0});
      for (std::uint32_t probe = 0; probe < layouts::split_block::cells::count(); ++probe) {
        const std::uint64_t cell = cells.next();
        actual[cell / 8] = static_cast<std::uint8_t>(actual[cell / 8] | 1 << (cell % 8));
      }
    }

    EXPECT_EQ(actual, expected) << "row group " << group;
  }
}

TEST(ParquetFooter, ReadsOnlyTheFooterAndTheHeaders) {
  const bytes file = read_file(golden("hyparquet.parquet"));
  std::uint64_t read = 0;
  byte_source source = source_of(file);
  const auto inner = source.read;
  source.read = [&](std::uint64_t offset, std::span<std::uint8_t> into) {
    read += into.size();
    return inner(offset, into);
  };

  const parquet_footer footer = read_parquet_footer(source);
  EXPECT_EQ(read, file.size() - footer.offset + 4);
  read = 0;
  read_filter_header(source, footer, footer.chunks[0]);
  EXPECT_LE(read, 1024u);
}

// ---- damaged and unusual files --------------------------------------------------------------------------------------

// Reads all that can be read, and checks what the header file states.
void read_whole(const bytes& file) {
  const byte_source source = source_of(file);
  const parquet_footer footer = read_parquet_footer(source);
  ASSERT_EQ(footer.chunks.size(), footer.row_groups * footer.columns);
  for (const parquet_chunk& chunk : footer.chunks) {
    if (!chunk.filter || chunk.is_encrypted) continue;
    ASSERT_LT(chunk.filter->offset, footer.offset);
    error_of([&] {
      const parquet_bitset bits = read_filter_header(source, footer, chunk);
      ASSERT_EQ(bits.bytes % 32, 0u);
      ASSERT_LE(bits.offset + bits.bytes, footer.offset);
    });
  }
}

TEST(ParquetFooter, AFlippedBitGivesAnErrorOrFiltersWithinTheFile) {
  for (const char* name : {"duckdb.parquet", "hyparquet.parquet"}) {
    bytes file = read_file(golden(name));
    const std::uint64_t footer = read_parquet_footer(source_of(file)).offset;
    for (std::size_t at = footer; at < file.size(); ++at) {
      for (unsigned bit = 0; bit < 8; bit += 3) {
        file[at] = static_cast<std::uint8_t>(file[at] ^ 1u << bit);
        error_of([&] { read_whole(file); });
        file[at] = static_cast<std::uint8_t>(file[at] ^ 1u << bit);
      }
    }
  }
}

TEST(ParquetFooter, AnyTruncatedFooterIsAnError) {
  const small_parquet parquet;
  const bytes footer = parquet.footer();
  for (std::size_t length = 0; length < footer.size(); ++length) {
    const bytes file = parquet.around({footer.begin(), footer.begin() + static_cast<std::ptrdiff_t>(length)});
    EXPECT_EQ(code_of([&] { read_whole(file); }), errc::damaged) << length;
  }
  EXPECT_EQ(code_of([&] { read_whole(parquet.file()); }), std::nullopt);
}

TEST(ParquetFooter, RefusesFilesOfOtherKinds) {
  const bytes whole = small_parquet().file();
  const auto with = [&](std::size_t at, char c) {
    bytes changed = whole;
    changed[at] = static_cast<std::uint8_t>(c);
    return changed;
  };

  EXPECT_ERROR(read_whole(bytes()), errc::not_a_filter, "test.parquet: not a Parquet file: expected at least 12 bytes");
  EXPECT_ERROR(read_whole(with(0, 'Q')), errc::not_a_filter, "expected a file that starts with PAR1");
  EXPECT_ERROR(read_whole(with(whole.size() - 1, 'x')), errc::damaged, "the Parquet file is truncated");
  EXPECT_ERROR(read_whole(with(whole.size() - 1, 'E')), errc::incompatible, "footer of this Parquet file is encrypted");
  EXPECT_ERROR(read_whole(with(3, 'E')), errc::incompatible, "footer of this Parquet file is encrypted");
  EXPECT_ERROR(read_whole(with(whole.size() - 5, '\x7f')), errc::damaged, "length of the footer: expected 1 to");
}

TEST(ParquetFooter, RefusesAFooterThatContradictsItself) {
  const auto refuses = [](const char* words, auto change) {
    small_parquet parquet;
    change(parquet);
    EXPECT_ERROR(read_whole(parquet.file()), errc::damaged, words);
  };

  refuses("type INT32 as in the schema, found INT64", [](small_parquet& p) { p.type = 2; });
  refuses("a type from 0 to 7, found 8", [](small_parquet& p) { p.schema_type = 8; });
  refuses("a type from 0 to 7, found -1", [](small_parquet& p) { p.type = -1; });
  refuses("path of a column as in the schema", [](small_parquet& p) { p.path = {"y"}; });
  refuses("path of a column as in the schema", [](small_parquet& p) { p.path = {"root", "x"}; });
  refuses("path of a column as in the schema", [](small_parquet& p) { p.path = {}; });
  refuses("all children of the groups of the schema", [](small_parquet& p) { p.children = 2; });
  refuses("an element outside of its tree", [](small_parquet& p) { p.children = 0; });
  refuses("a number of at least 0, found -1", [](small_parquet& p) { p.children = -1; });
  refuses("one chunk per column of the schema, found more", [](small_parquet& p) { p.chunks = 2; });
  refuses("one chunk per column of the schema, found fewer", [](small_parquet& p) { p.chunks = 0; });
  refuses("the metadata of a column chunk, found none", [](small_parquet& p) { p.has_metadata = false; });
  refuses("the length of the values of a column", [](small_parquet& p) { p.schema_type = 7; });
  refuses("a column without children",
          [](small_parquet& p) { p.more_in_schema = [](thrift_writer& w) { w.i32(5, 1); }; });
  refuses("within bytes 4 to 84, found 96 at", [](small_parquet& p) {
    p.offset = 96;
    p.length = std::nullopt;
  });
  refuses("within bytes 4 to", [](small_parquet& p) { p.offset = 3; });
  refuses("within bytes 4 to", [](small_parquet& p) { p.offset = -4; });
  refuses("80 bytes from offset 20", [](small_parquet& p) {
    p.offset = 20;
    p.length = 80;
  });
  refuses("found 0 bytes from", [](small_parquet& p) { p.length = 0; });
  refuses("a number of 32 bits", [](small_parquet& p) { p.length = std::int64_t{1} << 40; });
}

TEST(ParquetFooter, BoundsEveryDeclaredSize) {
  const auto refuses = [](const char* words, const std::function<void(thrift_writer&)>& fields) {
    small_parquet parquet;
    parquet.more_in_footer = fields;
    EXPECT_ERROR(read_whole(parquet.file()), errc::damaged, words);
  };
  const auto nested = [](unsigned depth, std::uint8_t opening) {
    return [=](thrift_writer& w) { w.field(30, t_list).raw(bytes(depth, opening)).raw({0x10 | 3, 7}); };
  };

  refuses("elements in the remaining bytes", [](thrift_writer& w) { w.field(30, t_list).list(1'000'000, t_i32); });
  refuses("elements in the remaining bytes", [](thrift_writer& w) { w.field(30, 11).varint(1u << 31); });
  refuses("bytes, found", [](thrift_writer& w) { w.field(30, t_binary).varint(~std::uint64_t{0}); });
  refuses("a number of 64 bits", [](thrift_writer& w) { w.field(30, t_i64).raw(bytes(10, 0xFF)); });
  refuses("a type from 0 to 13", [](thrift_writer& w) { w.field(30, 14); });
  refuses("a type of elements from 1 to 13", [](thrift_writer& w) { w.field(30, t_list).raw({0x10}); });
  refuses("a field number of 16 bits", [](thrift_writer& w) { w.field(40'000, t_true); });
  refuses("at most 64 nested values", nested(64, 0x19));
  refuses("at most 64 nested values", [](thrift_writer& w) { w.field(30, t_struct).raw(bytes(70, 0x1C)); });
}

TEST(ParquetFooter, SkipsFieldsThatItDoesNotKnow) {
  small_parquet parquet;
  parquet.more_in_footer = [](thrift_writer& w) {
    w.field(100, t_true).field(101, t_false).field(102, 3).raw({200}).field(103, 4).zigzag(-300);
    w.field(104, 7).raw(bytes(8, 1)).field(105, 13).raw(bytes(16, 1)).binary(106, "text");
    w.field(107, t_list).list(3, t_true).raw({1, 2, 1}).field(108, 10).list(20, 3).raw(bytes(20, 9));
    w.field(109, 11).varint(0).field(110, 11).varint(2).raw({0x85}).text("a").zigzag(1).text("b").zigzag(2);
    w.field(111, t_list).list(0, 0);
    w.structure(112, [](thrift_writer& s) { s.structure(1, [](thrift_writer&) {}).i64(2, 5); });
    w.field(113, t_list).raw(bytes(40, 0x19)).raw({0x13, 7});
    w.field(-5, t_true);
  };
  parquet.more_in_metadata = [](thrift_writer& w) { w.binary(200, "more"); };
  const bytes file = parquet.file();

  const parquet_footer footer = read_parquet_footer(source_of(file));

  ASSERT_EQ(footer.chunks.size(), 1u);
  EXPECT_EQ(footer.created_by, "tests");
  EXPECT_EQ(footer.chunks[0].column, "x");
  EXPECT_EQ(read_filter_header(source_of(file), footer, footer.chunks[0]).offset, 4 + parquet.header.size());
}

TEST(ParquetFooter, RefusesHeadersOfFiltersThatItCannotRead) {
  const auto refuses = [](errc code, const char* words, bytes header, std::optional<std::int64_t> length = {}) {
    small_parquet parquet;
    parquet.header = std::move(header);
    parquet.length = length;
    const bytes file = parquet.file();
    const byte_source source = source_of(file);
    const parquet_footer footer = read_parquet_footer(source);
    EXPECT_ERROR(read_filter_header(source, footer, footer.chunks.at(0)), code, words);
  };
  // A header with another alternative in one of its unions.
  const auto other = [](int id, int alternative) {
    thrift_writer w;
    w.i32(1, 64);
    for (int i = 2; i <= 4; ++i) {
      w.structure(i, [&](thrift_writer& u) { u.structure(i == id ? alternative : 1, [](thrift_writer&) {}); });
    }
    w.out.push_back(0);
    return w.out;
  };
  const bytes whole = filter_header(64);

  refuses(errc::incompatible, "unsupported algorithm of the Bloom filter of column x: expected BLOCK", other(2, 2));
  refuses(errc::incompatible, "unsupported hash of the Bloom filter of column x: expected XXHASH", other(3, 2));
  refuses(errc::incompatible, "unsupported compression", other(4, 3));
  // As @dsnp/parquetjs 1.8.8 writes it. DuckDB and hyparquet ignore this filter, too.
  refuses(errc::incompatible, "expected BLOCK, found none", {0x15, 0x80, 0x01, 0x1C, 0, 0x1C, 0, 0x1C, 0, 0});
  refuses(errc::incompatible, "expected BLOCK, found another", {0x15, 0x80, 0x01, 0x1C, 0x1C, 0, 0x1C, 0, 0, 0});
  refuses(errc::damaged, "a multiple of 32 bytes, found 48", filter_header(48));
  refuses(errc::damaged, "a multiple of 32 bytes, found 0", filter_header(0));
  refuses(errc::damaged, "a multiple of 32 bytes, found -32", filter_header(-32));
  refuses(errc::damaged, "a number of 32 bits", filter_header(std::int64_t{1} << 31));
  refuses(errc::damaged, "expected at most", filter_header(1 << 27));
  refuses(errc::damaged, "expected 60 bytes, found 64", whole, static_cast<std::int64_t>(whole.size()) + 60);
  refuses(errc::damaged, "expected another byte, found the end", whole, 10);
  refuses(errc::damaged, "size, algorithm, hash and compression", {0x15, 0x80, 0x01, 0});
  refuses(errc::damaged, "expected a type from 0 to 13, found 15", {0x1F});
}

TEST(ParquetFooter, AcceptsSizesThatAreNotPowersOfTwo) {
  small_parquet parquet;
  parquet.header = filter_header(96);
  parquet.bitset = bytes(96);
  parquet.length = static_cast<std::int64_t>(parquet.header.size()) + 96;
  const bytes file = parquet.file();

  const parquet_footer footer = read_parquet_footer(source_of(file));

  EXPECT_EQ(read_filter_header(source_of(file), footer, footer.chunks[0]).bytes, 96u);
}

TEST(ParquetFooter, RefusesFiltersThatAreEncryptedOrElsewhere) {
  const auto refuses = [](errc code, const char* words, auto change) {
    small_parquet parquet;
    change(parquet);
    const bytes file = parquet.file();
    const byte_source source = source_of(file);
    const parquet_footer footer = read_parquet_footer(source);
    ASSERT_EQ(footer.chunks.size(), 1u);
    EXPECT_EQ(footer.chunks[0].column, "x");
    EXPECT_ERROR(read_filter_header(source, footer, footer.chunks[0]), code, words);
  };

  refuses(errc::not_found, "no Bloom filter of column x, row group 0",
          [](small_parquet& p) { p.offset = std::nullopt; });
  refuses(errc::incompatible, "are in another file", [](small_parquet& p) {
    p.first_in_chunk = [](thrift_writer& w) { w.binary(1, "part-0.parquet"); };
    p.offset = 1 << 30;
  });
  refuses(errc::incompatible, "is encrypted", [](small_parquet& p) {
    p.more_in_chunk = [](thrift_writer& w) {
      w.structure(8, [](thrift_writer& u) { u.structure(1, [](thrift_writer&) {}); });
    };
  });
  refuses(errc::incompatible, "is encrypted", [](small_parquet& p) {
    p.has_metadata = false;
    p.more_in_chunk = [](thrift_writer& w) {
      w.structure(8, [](thrift_writer& u) {
        u.structure(2, [](thrift_writer& key) { key.field(1, t_list).list(1, t_binary).text("x").binary(2, "key"); });
      });
      w.binary(9, "secret");
    };
  });
}

TEST(ParquetFooter, UnderstandsLogicalTypes) {
  const auto column_with = [](const std::function<void(thrift_writer&)>& fields) {
    small_parquet parquet;
    parquet.more_in_schema = fields;
    return read_parquet_footer(source_of(parquet.file())).chunks.at(0);
  };
  const auto logical = [&](int number, const std::function<void(thrift_writer&)>& fields) {
    return column_with(
        [&](thrift_writer& w) { w.i32(6, 5).structure(10, [&](thrift_writer& u) { u.structure(number, fields); }); });
  };

  EXPECT_EQ(logical(6, [](thrift_writer&) {}).annotation, "DATE");
  EXPECT_EQ(logical(99, [](thrift_writer&) {}).annotation, "UNKNOWN");
  EXPECT_EQ(column_with([](thrift_writer& w) { w.i32(6, -1); }).annotation, "UNKNOWN");
  const parquet_chunk is_signed = logical(10, [](thrift_writer& w) { w.field(1, 3).raw({32}).field(2, t_true); });
  EXPECT_EQ(is_signed.annotation, "INTEGER");
  EXPECT_FALSE(is_signed.is_unsigned);
  EXPECT_TRUE(logical(10, [](thrift_writer& w) { w.field(1, 3).raw({32}).field(2, t_false); }).is_unsigned);
}

TEST(ParquetFooter, ReadsFieldsInAnyOrder) {
  const small_parquet parquet;
  const bytes footer = parquet.footer();
  // The fields of the footer, row groups first. The list of row groups ends before "tests", field 6.
  const bytes end = {0x28, 5, 't', 'e', 's', 't', 's', 0};
  const auto at_end = std::search(footer.begin(), footer.end(), end.begin(), end.end());
  const bytes list_header = {0x19, 0x1C, 0x19};
  const auto at_groups = std::find_end(footer.begin(), at_end, list_header.begin(), list_header.end());
  ASSERT_NE(at_groups, at_end);
  thrift_writer w;
  w.field(4, t_list).raw({at_groups + 1, at_end});
  w.field(2, t_list).raw({footer.begin() + 3, at_groups}).raw({0});
  const bytes file = parquet.around(w.out);

  const parquet_footer read = read_parquet_footer(source_of(file));

  EXPECT_EQ(read.rows, 10u);
  ASSERT_EQ(read.chunks.size(), 1u);
  EXPECT_EQ(read.chunks[0].column, "x");
}

// ---- keys -----------------------------------------------------------------------------------------------------------

parquet_chunk column_of(parquet_type type, bool is_unsigned = false, std::uint32_t value_bytes = 0) {
  parquet_chunk column;
  column.column = "x";
  column.type = type;
  column.is_unsigned = is_unsigned;
  column.value_bytes = value_bytes;
  return column;
}

bytes plain(const parquet_chunk& column, std::string_view text) {
  std::array<std::uint8_t, plain_number_bytes> buffer{};
  return copy_of(plain_value(column, text, buffer));
}

TEST(ParquetValue, IsThePlainEncodingOfTheType) {
  EXPECT_EQ(plain(column_of(parquet_type::boolean), "true"), bytes({1}));
  EXPECT_EQ(plain(column_of(parquet_type::boolean), "false"), bytes({0}));
  EXPECT_EQ(plain(column_of(parquet_type::int32), "-2"), bytes({0xFE, 0xFF, 0xFF, 0xFF}));
  EXPECT_EQ(plain(column_of(parquet_type::int32, true), "4294967295"), bytes({0xFF, 0xFF, 0xFF, 0xFF}));
  EXPECT_EQ(plain(column_of(parquet_type::int64), "-9223372036854775808"), bytes({0, 0, 0, 0, 0, 0, 0, 0x80}));
  EXPECT_EQ(plain(column_of(parquet_type::int64, true), "18446744073709551615"), bytes(8, 0xFF));
  EXPECT_EQ(plain(column_of(parquet_type::float32), "3.5"), bytes({0, 0, 0x60, 0x40}));
  EXPECT_EQ(plain(column_of(parquet_type::float64), "-1e0"), bytes({0, 0, 0, 0, 0, 0, 0xF0, 0xBF}));
  EXPECT_EQ(plain(column_of(parquet_type::float64), "4.9e-324"), bytes({1, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(plain(column_of(parquet_type::float32), "-inf"), bytes({0, 0, 0x80, 0xFF}));
  EXPECT_EQ(plain(column_of(parquet_type::byte_array), "a\0b"s), bytes({'a', 0, 'b'}));
  EXPECT_EQ(plain(column_of(parquet_type::byte_array), ""), bytes());
  EXPECT_EQ(plain(column_of(parquet_type::fixed_len_byte_array, false, 2), "hi"), bytes({'h', 'i'}));
  EXPECT_EQ(hash_of(plain(column_of(parquet_type::byte_array), "hello")), 0x26c7827d889f6da3u);
  EXPECT_EQ(hash_of(plain(column_of(parquet_type::int64), "42")), 0xb556806fb6d14353u);
}

TEST(ParquetValue, RefusesTextThatIsNotAValueOfTheType) {
  const std::pair<parquet_chunk, std::vector<std::string>> refused[] = {
      {column_of(parquet_type::boolean), {"", "1", "TRUE", "true "}},
      {column_of(parquet_type::int32), {"", " 1", "1 ", "+1", "1.0", "1e3", "0x1", "2147483648", "-2147483649", "x"}},
      {column_of(parquet_type::int32, true), {"-1", "4294967296"}},
      {column_of(parquet_type::int64), {"9223372036854775808", "--1", "-"}},
      {column_of(parquet_type::int64, true), {"-1", "18446744073709551616"}},
      {column_of(parquet_type::float32),
       {"", "1e39", "1e-60", "nan", "NaN", "0x1p3", " 1", "1 ", "+1", "1e", "1,5", "."}},
      {column_of(parquet_type::float64), {"", "1e309", "-1e309", "1e-400", "nan", "-nan", "infinity", "1..2", "-"}},
      {column_of(parquet_type::fixed_len_byte_array, false, 3), {"", "ab", "abcd"}},
  };
  for (const auto& entry : refused) {
    const parquet_chunk& column = entry.first;
    for (const std::string& text : entry.second) {
      EXPECT_EQ(code_of([&] { plain(column, text); }), errc::invalid_argument) << name_of(column.type) << " " << text;
    }
  }
  EXPECT_ERROR(plain(column_of(parquet_type::int32), "3000000000"), errc::invalid_argument,
               "x: the key is not a value of the column: expected an integer from -2147483648 to 2147483647 (type "
               "INT32), found '3000000000'");
  EXPECT_ERROR(plain(column_of(parquet_type::int96), "1"), errc::incompatible, "values of type INT96 have no text");
}

// BloomFilter.md hashes bit patterns. DuckDB 1.5.6 excludes 0 from a file that has only -0.
TEST(ParquetValue, ZeroAndMinusZeroHaveDifferentBytes) {
  for (const parquet_type type : {parquet_type::float32, parquet_type::float64}) {
    const parquet_chunk column = column_of(type);
    std::array<std::uint8_t, plain_number_bytes> buffer{};
    const bytes zero = copy_of(plain_value(column, "0", buffer));

    EXPECT_TRUE(flip_zero(column, buffer));
    EXPECT_EQ(copy_of(std::span(buffer).first(zero.size())), plain(column, "-0.0"));
    EXPECT_NE(zero, plain(column, "-0.0"));
    EXPECT_TRUE(flip_zero(column, buffer));
    EXPECT_EQ(copy_of(std::span(buffer).first(zero.size())), zero);
    plain_value(column, "1", buffer);
    EXPECT_FALSE(flip_zero(column, buffer));
  }
  std::array<std::uint8_t, plain_number_bytes> buffer{};
  EXPECT_FALSE(flip_zero(column_of(parquet_type::int64), buffer));
}

}  // namespace
