// Filter files of other systems: files recorded from the systems themselves answer as they do (tests/golden/foreign/
// record.sh), files that the library writes are the same bytes, and damaged files are refused.
#include <bloomery/any_filter.hpp>
#include <bloomery/detail/bits.hpp>
#include <bloomery/filter_handle.hpp>
#include <bloomery/formats.hpp>
#include <bloomery/measure.hpp>
#include <bloomery/scheme.hpp>

#include "formats/recorded.hpp"
#include "support/test.hpp"

namespace bloomery {
namespace {

using namespace bloomery_tests;

std::string from_hex(std::string_view digits) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16));
  return bytes;
}

struct recording {
  const char* name;
  const char* format;
  const char* scheme;
  geometry size;
  std::uint64_t capacity;
  std::uint64_t seed = 0;
};

// Made for 300 keys at 1%, if the file does not state another number.
constexpr recording recordings[] = {{"guava", "guava", "guava", {64 * 45, 7}, 0},
                                    {"guava32", "guava", "guava32", {64 * 45, 7}, 0},
                                    {"bits_and_blooms", "bits_and_blooms", "bits_and_blooms", {2876, 7}, 0},
                                    {"dcso", "dcso", "dcso", {2875, 7}, 300},
                                    {"redisbloom_chunks", "redisbloom_chunks", "redisbloom", {4416, 8}, 400},
                                    {"datasketches", "datasketches", "datasketches", {64 * 45, 7}, 0, 9001}};

TEST(Formats, OfRecordedFilesAreRecognizedByTheirContent) {
  for (const recording& r : recordings) {
    const std::string path = recorded(r.name + ".filter"s);

    const any_filter filter = import_filter(path);

    EXPECT_EQ(recognize_format(path), find_file_format(r.format)) << r.name;
    EXPECT_EQ(filter.parameters().scheme, r.scheme);
    EXPECT_EQ(filter.parameters().geometry, r.size) << r.name;
    EXPECT_EQ(filter.capacity(), r.capacity) << r.name;
    EXPECT_EQ(filter.parameters().seed, r.seed) << r.name;
    EXPECT_EQ(filter.opened_from()->format, r.format);
  }
}

TEST(Formats, OfRecordedFilesAnswerAsTheSystemsThatWroteThem) {
  for (const recording& r : recordings) {
    const auto handle = open_filter(recorded(r.name + ".filter"s));
    for (const std::string& key : inserted_keys()) EXPECT_TRUE(handle->contains(key)) << r.name << ": " << key;

    EXPECT_EQ(positives_of(*handle), content_of(recorded(r.name + ".positives"s))) << r.name;
  }
}

TEST(Formats, OfRecordedFilesAreWrittenByteForByte) {
  for (const recording& r : recordings) {
    const std::string path = recorded(r.name + ".filter"s);
    const any_filter filter = import_filter(path);

    export_filter(filter, "again.foreign", r.format, {.metadata = filter.opened_from()->metadata});

    EXPECT_EQ(content_of("again.foreign"), content_of(path)) << r.name;
  }
}

// The same keys in a filter of our own: the other system would write the same file.
TEST(Formats, HaveTheSameBytesForFiltersThatWereBuiltHere) {
  for (const recording& r : recordings) {
    const std::uint64_t capacity = r.capacity == 0 ? 300 : r.capacity;
    any_filter filter(complete({.scheme = r.scheme, .seed = r.seed, .capacity = capacity, .target_fpr = 0.01}));
    for (const std::string& key : inserted_keys()) filter.insert(key);

    export_filter(filter, "built.foreign", r.format, {.metadata = r.format == "dcso"s ? "a note of the user\n" : ""});

    EXPECT_EQ(content_of("built.foreign"), content_of(recorded(r.name + ".filter"s))) << r.name;
  }
}

TEST(Formats, KeepTheMetadataAndTheCountOfDcso) {
  const any_filter filter = import_filter(recorded("dcso.filter"));

  EXPECT_EQ(filter.opened_from()->metadata, "a note of the user\n");
  EXPECT_EQ(filter.insert_count(), 302u);  // one of the 303 keys was a false positive when it was inserted
  EXPECT_TRUE(filter.count_is_estimate());
  EXPECT_EQ(filter.parameters().target_fpr, 0.01);
}

// Vectors of docs/formats.md, for a system that is not installed here: 10 keys at 1%.
TEST(Formats, OfSparkHaveThePublishedBytesOfOneKey) {
  const struct {
    const char* scheme;
    std::string key;
    const char* file;
  } vectors[] = {
      {"spark", "hello", "00000001000000070000000200010004080020000200080000400000"},
      {"spark", std::string("\x2A\0\0\0\0\0\0\0", 8),
       "0000000100000007000000020024900000000000"
       "0000000000000092"},
      {"spark2", "hello",
       "00000002000000070000000000000002"
       "0000000000000040"
       "8102040810000000"},
      {"spark2", std::string("\x2A\0\0\0\0\0\0\0", 8),
       "00000002000000070000000000000002"
       "0000000000000000"
       "0000000000924920"},
  };
  for (const auto& [scheme, key, file] : vectors) {
    any_filter filter(complete({.scheme = scheme, .capacity = 10, .target_fpr = 0.01}));
    filter.insert(key);

    export_filter(filter, "one.spark", "spark");

    EXPECT_EQ(content_of("one.spark"), from_hex(file)) << scheme;
    write_file("one.spark", from_hex(file));
    EXPECT_EQ(recognize_format("one.spark"), find_file_format("spark"));
    EXPECT_TRUE(import_filter("one.spark") == filter) << scheme;
  }
}

TEST(Formats, OfSparkKeepTheSeed) {
  any_filter filter(complete({.scheme = "spark2", .seed = 0x89ABCDEF, .capacity = 100, .target_fpr = 0.01}));
  filter.insert("Madrid");

  export_filter(filter, "seeded.spark", "spark");

  const any_filter again = import_filter("seeded.spark");
  EXPECT_TRUE(again == filter);
  EXPECT_EQ(again.parameters().seed, 0x89ABCDEFu);
  EXPECT_TRUE(again.may_contain("Madrid"));
  params p = filter.parameters();
  p.seed = 0x1'0000'0000;
  EXPECT_ERROR(export_filter(any_filter(p), "wide.spark", "spark"), errc::incompatible, "seed");
}

// Files of the same keys: as written after update(), and after the set bits were counted.
TEST(Formats, OfDataSketchesAreReadWithAndWithoutANumberOfSetBits) {
  const std::string counted = content_of(recorded("datasketches.counted"));
  const std::string uncounted = content_of(recorded("datasketches.filter"));
  ASSERT_NE(counted, uncounted);

  const any_filter filter = import_filter(recorded("datasketches.counted"));

  EXPECT_TRUE(filter == import_filter(recorded("datasketches.filter")));
  EXPECT_EQ(counted[24] & 0xFF, static_cast<int>(count_ones(filter.bytes()) & 0xFF));
  export_filter(filter, "again.foreign", "datasketches");
  EXPECT_EQ(content_of("again.foreign"), uncounted);
  write_file("changed", counted.substr(0, 24) + "\x41\x0B"s + std::string(6, '\0') + counted.substr(32));
  EXPECT_ERROR(import_filter("changed"), errc::not_a_filter, "");  // 2881 of 2880 bits
  EXPECT_ERROR(import_filter("changed", "datasketches"), errc::damaged, "number of set bits");
}

TEST(Formats, OfDataSketchesHaveNoWordsWithoutKeys) {
  const std::string empty = content_of(recorded("datasketches.empty"));

  const auto handle = open_filter(recorded("datasketches.empty"));
  any_filter filter = import_filter(recorded("datasketches.empty")).clone();

  EXPECT_EQ(handle->parameters().geometry, (geometry{64 * 45, 7}));
  EXPECT_EQ(handle->parameters().seed, 9001u);
  EXPECT_EQ(handle->info(info_depth::bits).fill->current_fpr, 0);
  EXPECT_FALSE(handle->contains("key-1"));
  export_filter(filter, "again.foreign", "datasketches");
  EXPECT_EQ(content_of("again.foreign"), empty);
  for (const std::string& key : inserted_keys()) filter.insert(key);
  export_filter(filter, "again.foreign", "datasketches");
  EXPECT_EQ(content_of("again.foreign"), content_of(recorded("datasketches.filter")));
  filter.clear();
  export_filter(filter, "again.foreign", "datasketches");
  EXPECT_EQ(content_of("again.foreign"), empty);

  // Java writes an empty filter of a MemorySegment with the head of a full one.
  write_file("java", '\4' + empty.substr(1));
  EXPECT_TRUE(import_filter("java") == import_filter(recorded("datasketches.empty")));
  for (const std::string& other : {empty.substr(0, 23), empty + '\0', '\2' + empty.substr(1)}) {
    write_file("changed", other);
    EXPECT_EQ(recognize_format("changed"), nullptr);
    EXPECT_ERROR(import_filter("changed", "datasketches"), errc::damaged, "");
  }
}

TEST(Formats, OfDataSketchesHashIntegersAsEightBytes) {
  any_filter filter(complete({.scheme = "datasketches", .seed = ~0ull, .capacity = 300, .target_fpr = 0.01}));
  for (std::uint64_t key = 0; key < 300; ++key)
    filter.insert(std::string_view(reinterpret_cast<const char*>(&key), sizeof key));

  export_filter(filter, "built.foreign", "datasketches");

  EXPECT_EQ(content_of("built.foreign"), content_of(recorded("datasketches.u64")));
}

TEST(Formats, OfGuavaHaveThePublishedBytesOfOneKey) {
  any_filter filter(complete({.scheme = "guava", .capacity = 10, .target_fpr = 0.01}));
  filter.insert("hello");
  export_filter(filter, "one.guava", "guava");
  EXPECT_EQ(content_of("one.guava"), from_hex("01070000000200100000090000048000004000002000"));

  any_filter old(params{.scheme = "guava32", .geometry = {128, 3}});
  old.insert("hello");
  export_filter(old, "one.guava", "guava");
  EXPECT_EQ(content_of("one.guava"), from_hex("00030000000200200000008000000000001000000000"));
}

TEST(Formats, AreReadWhateverTheNumberOfBits) {
  for (const std::string_view scheme : {"dcso", "bits_and_blooms"}) {
    for (std::uint64_t bits = 1; bits <= 200; ++bits) {
      any_filter filter(params{.scheme = std::string(scheme), .geometry = {bits, 3}, .capacity = 10});
      filter.insert("Madrid");

      export_filter(filter, "some.foreign", scheme);

      EXPECT_TRUE(import_filter("some.foreign") == filter) << scheme << ", " << bits << " bits";
    }
  }
}

// A file of LevelDB's CreateFilter has no numbers that determine its length.
TEST(Formats, OfLeveldbAreReadIfTheFormatIsNamed) {
  const std::string path = recorded("leveldb.filter");
  const any_filter filter = import_filter(path, "leveldb");

  EXPECT_EQ(recognize_format(path), nullptr);
  EXPECT_ERROR(import_filter(path), errc::not_a_filter, "name the format");
  EXPECT_EQ(filter.parameters().scheme, "leveldb");
  EXPECT_EQ(filter.parameters().geometry, (geometry{3032, 6}));  // 303 keys of 10 bits
  for (const std::string& key : inserted_keys()) EXPECT_TRUE(filter.may_contain(key)) << key;
  std::string positives;
  for (int i = 0; i < 20'000; ++i) {
    const std::string key = "other-" + std::to_string(i);
    if (filter.may_contain(key)) positives += key + '\n';
  }
  EXPECT_EQ(positives, content_of(recorded("leveldb.positives")));
  EXPECT_NEAR(filter.approximate_size(), 303, 30);

  export_filter(filter, "again.foreign", "leveldb");
  EXPECT_EQ(content_of("again.foreign"), content_of(path));
  any_filter built(params{.scheme = "leveldb", .geometry = {3032, 6}});
  for (const std::string& key : inserted_keys()) built.insert(key);
  export_filter(built, "built.foreign", "leveldb");
  EXPECT_EQ(content_of("built.foreign"), content_of(path));
  any_filter one(params{.scheme = "leveldb", .geometry = {64, 6}});
  one.insert("hello");
  export_filter(one, "one.foreign", "leveldb");
  EXPECT_EQ(content_of("one.foreign"), from_hex("014000010410400006"));
}

TEST(Formats, OfLeveldbHaveAtLeastAByteAndAtMost30Probes) {
  for (const char* const file : {"", "06", "0000", "001f", "00ff"}) {
    write_file("changed", from_hex(file));
    EXPECT_ERROR(import_filter("changed", "leveldb"), errc::damaged, "number of");
  }
  for (const std::uint64_t bytes : {1u, 2u, 7u, 8u, 9u, 63u, 64u, 65u}) {
    any_filter filter(params{.scheme = "leveldb", .geometry = {8 * bytes, 30}});
    filter.insert("Madrid");
    export_filter(filter, "some.foreign", "leveldb");
    EXPECT_TRUE(import_filter("some.foreign", "leveldb") == filter) << bytes;
  }
}

// More than one slice of a megabyte.
TEST(Formats, AreReadAndWrittenInSlices) {
  for (const file_format& format : file_formats()) {
    const std::string_view scheme = format.schemes.substr(0, format.schemes.find(','));
    any_filter filter(
        params{.scheme = std::string(scheme), .geometry = {512 * 37'501, 5}, .capacity = 1000, .target_fpr = 0.05});
    for (int i = 0; i < 1000; ++i) filter.insert(std::to_string(i));

    export_filter(filter, "large.foreign", format.name);

    EXPECT_TRUE(import_filter("large.foreign", format.name) == filter) << format.name;
    EXPECT_EQ(recognize_format("large.foreign"),
              format.name == "leveldb" || format.name == "rocksdb" ? nullptr : &format);
  }
}

TEST(Formats, AreOpenedForReadingOnly) {
  for (const recording& r : recordings) {
    const std::string path = "here.foreign";
    std::filesystem::copy_file(recorded(r.name + ".filter"s), path, std::filesystem::copy_options::overwrite_existing);
    const auto handle = open_filter(path);

    EXPECT_FALSE(handle->capabilities().can_insert) << r.name;
    EXPECT_ERROR(handle->insert("Madrid"), errc::not_permitted, "for reading only");
    EXPECT_ERROR(handle->clear(), errc::not_permitted, "for reading only");
    EXPECT_ERROR(open_filter(path, {.mode = access::read_write}), errc::incompatible, "format "s + r.format);
    any_filter filter = import_filter(path);
    EXPECT_FALSE(filter.is_writable());
    EXPECT_ERROR(filter.insert("Madrid"), errc::not_permitted, "for reading only");
    EXPECT_EQ(content_of(path), content_of(recorded(r.name + ".filter"s)));

    any_filter copy = filter.clone();
    copy.insert("Madrid");
    EXPECT_TRUE(copy.may_contain("Madrid"));
  }
}

TEST(Formats, ReportTheExactRateOfTheBits) {
  for (const recording& r : recordings) {
    const auto handle = open_filter(recorded(r.name + ".filter"s));

    const filter_facts facts = handle->info(info_depth::bits);

    EXPECT_EQ(facts.file->format, r.format);
    EXPECT_NEAR(facts.fill->estimated_keys->value, 303, 5 * facts.fill->estimated_keys->sigma) << r.name;
    std::uint64_t found = 0;
    constexpr std::uint64_t queries = 200'000;
    for (std::uint64_t i = 0; i < queries; ++i) found += handle->contains("absent-" + std::to_string(i)) ? 1 : 0;
    const double rate = facts.fill->current_fpr;
    EXPECT_NEAR(static_cast<double>(found) / queries, rate, 5 * std::sqrt(rate / queries) + 0.05 * rate) << r.name;
  }
}

TEST(Formats, RefuseOtherKindsOfFilters) {
  const any_filter blocks(complete({.capacity = 100, .target_fpr = 0.01}));
  const any_filter pharo(complete({.scheme = "pharo", .capacity = 100, .target_fpr = 0.01}));
  for (const file_format& format : file_formats()) {
    EXPECT_ERROR(export_filter(blocks, "no.foreign", format.name), errc::incompatible, "layout split_block");
    EXPECT_ERROR(export_filter(pharo, "no.foreign", format.name), errc::incompatible, "scheme pharo");
  }
  EXPECT_FALSE(std::filesystem::exists("no.foreign"));
  EXPECT_ERROR(export_filter(pharo, "no.foreign", "fortran"), errc::invalid_argument, "guava, spark, dcso");
  EXPECT_ERROR(import_filter(recorded("guava.filter"), "fortran"), errc::invalid_argument, "guava, spark, dcso");
  const any_filter guava(complete({.scheme = "guava", .capacity = 100, .target_fpr = 0.01}));
  EXPECT_ERROR(export_filter(guava, "no.foreign", "guava", {.metadata = "a note"}), errc::incompatible, "metadata");
  const any_filter unknown(params{.scheme = "dcso", .geometry = {100, 3}});
  EXPECT_ERROR(export_filter(unknown, "no.foreign", "dcso"), errc::incompatible, "capacity");
}

TEST(Formats, RefuseFilesOfBloomeryAndUnknownFiles) {
  any_filter(complete({.capacity = 100, .target_fpr = 0.01})).save("own.bloom");
  write_file("empty", "");
  write_file("text", "Madrid\nBarcelona\n");
  for (const char* const name : {"own.bloom", "empty", "text"}) {
    EXPECT_EQ(recognize_format(name), nullptr) << name;
    EXPECT_ERROR(import_filter(name), errc::not_a_filter, "not a filter file of another system");
  }
  EXPECT_ERROR(import_filter("missing"), errc::not_found, "missing");
  EXPECT_ERROR(import_filter("."), errc::not_a_filter, "");
  EXPECT_ERROR(open_filter("text"), errc::not_a_filter, "not a bloomery filter");
}

// The numbers of a header, one at a time: a reader takes no memory for words that the file does not have.
TEST(Formats, RefuseNumbersThatContradictTheLengthOfTheFile) {
  const struct {
    const char* name;
    std::size_t at;
    std::size_t bytes;
    const char* words;
  } numbers[] = {{"guava", 0, 1, "strategy"},
                 {"guava", 2, 4, "number of words"},
                 {"bits_and_blooms", 0, 8, "number of bits"},
                 {"bits_and_blooms", 8, 8, "number of probes"},
                 {"bits_and_blooms", 16, 8, "length of the bit set"},
                 {"dcso", 0, 8, "version"},
                 {"dcso", 8, 8, "capacity"},
                 {"dcso", 16, 8, "target FPR"},
                 {"dcso", 24, 8, "number of probes"},
                 {"dcso", 32, 8, "number of bits"},
                 {"redisbloom_chunks", 0, 8, "number of keys"},
                 {"redisbloom_chunks", 8, 4, "number of layers"},
                 {"redisbloom_chunks", 20, 8, "length of the bits"},
                 {"redisbloom_chunks", 28, 8, "number of bits"},
                 {"redisbloom_chunks", 44, 8, "target FPR"},
                 {"redisbloom_chunks", 52, 8, "bits per key"},
                 {"redisbloom_chunks", 60, 4, "number of probes"},
                 {"redisbloom_chunks", 64, 8, "capacity"},
                 {"datasketches", 0, 1, "number of words before the bits"},
                 {"datasketches", 1, 1, "version"},
                 {"datasketches", 2, 1, "family"},
                 {"datasketches", 3, 1, "flags"},
                 {"datasketches", 4, 2, "number of probes"},
                 {"datasketches", 6, 2, "number of probes"},
                 {"datasketches", 16, 4, "number of words"},
                 {"datasketches", 20, 4, "number of words"}};
  for (const auto& number : numbers) {
    const std::string whole = content_of(recorded(number.name + ".filter"s));
    for (const char filling : {'\0', '\xFF'}) {
      if (filling == 0 && (number.words == "strategy"s || number.words == "target FPR"s)) continue;  // both may be 0
      const std::string changed =
          whole.substr(0, number.at) + std::string(number.bytes, filling) + whole.substr(number.at + number.bytes);
      if (changed == whole) continue;
      write_file("changed", changed);
      EXPECT_ERROR(import_filter("changed", number.name), errc::damaged, number.words);
      EXPECT_EQ(recognize_format("changed"), nullptr) << number.name << ", " << number.words;
    }
  }
}

// Every file that is shorter or longer by some bytes is refused: no memory is taken for what is not there.
TEST(Formats, RefuseFilesOfAnotherLength) {
  for (const recording& r : recordings) {
    const std::string whole = content_of(recorded(r.name + ".filter"s));
    const std::size_t words_end =
        whole.size() - import_filter(recorded(r.name + ".filter"s)).opened_from()->metadata.size();
    for (std::size_t length = 0; length < words_end; length += length < 64 ? 1 : 7) {
      write_file("cut", whole.substr(0, length));
      EXPECT_ERROR(import_filter("cut", r.format), errc::damaged, "cut");
      EXPECT_EQ(recognize_format("cut"), nullptr) << r.name << ", " << length;
    }
    if (r.format == "dcso"s) continue;  // the user's own bytes may follow
    write_file("cut", whole + '\0');
    EXPECT_ERROR(import_filter("cut", r.format), errc::damaged, "too long");
  }
}

}  // namespace
}  // namespace bloomery
