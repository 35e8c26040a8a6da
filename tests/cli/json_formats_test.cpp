// Filter files in JSON: recorded files are read as the systems that wrote them do (tests/golden/foreign/record.sh), the
// same text is written, and other texts are refused. tests/command/test_formats_peers.py compares answers.
#include "app/json_formats.hpp"

#include "app/base64.hpp"

#include <bloomery/any_filter.hpp>
#include <bloomery/filter_handle.hpp>
#include <bloomery/formats.hpp>

#include "support/test.hpp"

namespace bloomery {
namespace {

using namespace bloomery_tests;

std::string text_of(const std::string& path) {
  const bytes content = read_file(path);
  return {content.begin(), content.end()};
}

class JsonFormats : public testing::Test {
 protected:
  JsonFormats() { add_formats(app::json_formats()); }

  // Reads a text as the format, or as any.
  any_filter read(const std::string& text, std::string_view format = {}) {
    write_file("some.json", text);
    return import_filter("some.json", format);
  }

  std::string written(const any_filter& filter, std::string_view format) {
    export_filter(filter, "written.json", format);
    return text_of("written.json");
  }
};

struct recording {
  const char* format;
  const char* scheme;
  geometry size;
};

// Made for 300 keys at 1%.
constexpr recording recordings[] = {{"bloom_filters", "bloom_filters", {2876, 7}},
                                    {"bloomfilter_js", "bloomfilter_js", {2880, 7}},
                                    {"bits_and_blooms_json", "bits_and_blooms", {2876, 7}}};

// {hello} for 10 keys at 1%, or 128 bits, as the packages write it.
constexpr const char* of_bloom_filters =
    R"({"type":"BloomFilter","_size":96,"_nbHashes":7,"_filter":{"size":96,"content":"QgAAgAAgAAACASAA"},"_seed":78187493520})";
constexpr const char* of_bloomfilter_js = R"({"version":1,"m":128,"k":7,"buckets":[131072,2048,537002048,268437504]})";

TEST_F(JsonFormats, AreInTheListOfAllFormats) {
  const std::string names = file_format_names();
  EXPECT_THAT(names, testing::StartsWith("guava, "));
  EXPECT_THAT(names, testing::EndsWith(", bloom_filters, bloomfilter_js, bits_and_blooms_json"));
  add_formats(app::json_formats());
  EXPECT_EQ(file_format_names(), names);
}

TEST_F(JsonFormats, OfRecordedFilesAreRecognizedAndWrittenByteForByte) {
  for (const recording& r : recordings) {
    const std::string path = std::string(BLOOMERY_SOURCE_DIR) + "/tests/golden/foreign/" + r.format + ".filter";

    const any_filter filter = import_filter(path);

    EXPECT_EQ(recognize_format(path), find_file_format(r.format));
    EXPECT_EQ(filter.opened_from()->format, r.format);
    EXPECT_EQ(filter.parameters().scheme, r.scheme);
    EXPECT_EQ(filter.parameters().geometry, r.size) << r.format;
    EXPECT_EQ(written(filter, r.format), text_of(path));
    EXPECT_FALSE(open_filter(path)->capabilities().can_insert);
    EXPECT_ERROR(open_filter(path, {.mode = access::read_write}), errc::incompatible, "format "s + r.format);
  }
}

TEST_F(JsonFormats, OfOneKeyAreTheTextsOfThePackages) {
  any_filter filter(complete({.scheme = "bloom_filters", .capacity = 10, .target_fpr = 0.01}));
  filter.insert("hello");
  EXPECT_EQ(written(filter, "bloom_filters"), of_bloom_filters);

  any_filter davies(params{.scheme = "bloomfilter_js", .geometry = {128, 7}});
  davies.insert("hello");
  EXPECT_EQ(written(davies, "bloomfilter_js"), of_bloomfilter_js);
}

TEST_F(JsonFormats, AreReadWhateverTheNumberOfBits) {
  for (const recording& r : recordings) {
    for (std::uint64_t bits = 1; bits <= 200; ++bits) {
      if (r.scheme == "bloomfilter_js"s && bits % 32 != 0) continue;
      any_filter filter(params{.scheme = r.scheme, .geometry = {bits, 3}, .capacity = 10});
      filter.insert("Madrid");
      filter.insert("Zürich");

      const std::string text = written(filter, r.format);

      EXPECT_TRUE(read(text) == filter) << text;
      EXPECT_TRUE(read(text, r.format) == filter) << text;
    }
  }
}

TEST_F(JsonFormats, MayHaveSpacesAndAnotherOrderOfFields) {
  const any_filter same =
      read(" \n{ \"buckets\" : [131072, 2048,\t537002048, 268437504],\"k\":7,\n\"version\":1,\"m\":128} \n");

  EXPECT_EQ(written(same, "bloomfilter_js"), of_bloomfilter_js);
}

// The package's own seed 0 selects the hashes of 2^32; the scheme's 0 is the package's default.
TEST_F(JsonFormats, OfBloomFiltersKeepTheSeed) {
  const auto with_seed = [](const std::string& seed) {
    return R"({"type":"BloomFilter","_size":9,"_nbHashes":1,"_filter":{"size":16,"content":"AQE="},"_seed":)" + seed +
           "}";
  };
  EXPECT_EQ(read(with_seed("78187493520")).parameters().seed, 0u);
  for (const char* const seed : {"78187493520", "1", "4294967296", "9007199254740990"})
    EXPECT_EQ(written(read(with_seed(seed)), "bloom_filters"), with_seed(seed));
  EXPECT_EQ(written(read(with_seed("0")), "bloom_filters"), with_seed("4294967296"));
  for (const char* const seed : {"-1", "1.5", "9007199254740991", "1e3", "\"1\"", "null", "18446744073709551616"})
    EXPECT_ERROR(read(with_seed(seed), "bloom_filters"), errc::damaged, "");

  any_filter filter(params{.scheme = "bloom_filters", .seed = ~std::uint64_t{0} - 7, .geometry = {1000, 5}});
  filter.insert("Madrid");
  const any_filter again = read(written(filter, "bloom_filters"));
  EXPECT_EQ(again.parameters().seed, 0xFFFF'FFF8u);
  EXPECT_TRUE(std::ranges::equal(again.bytes(), filter.bytes()));
  EXPECT_TRUE(again.may_contain("Madrid"));
}

TEST_F(JsonFormats, RefuseFieldsThatContradictEachOther) {
  const struct {
    const char* format;
    std::string whole;
    const char* part;
    const char* instead;
    const char* words;
  } changes[] = {
      {"bloom_filters", of_bloom_filters, "BloomFilter", "CuckooFilter", "type"},
      {"bloom_filters", of_bloom_filters, R"("_size":96)", R"("_size":97)", "_filter.size"},
      {"bloom_filters", of_bloom_filters, R"("_size":96)", R"("_size":0)", "_size"},
      {"bloom_filters", of_bloom_filters, R"("_size":96)", R"("_size":4294967296)", "_filter.size"},
      {"bloom_filters",
       R"({"type":"BloomFilter","_size":9,"_nbHashes":1,"_filter":{"size":16,"content":"AQE="},"_seed":1})",
       "AQE=", "AQI=", "unused bits"},
      {"bloom_filters", of_bloom_filters, R"("_nbHashes":7)", R"("_nbHashes":256)", "_nbHashes"},
      {"bloom_filters", of_bloom_filters, R"("_nbHashes":7)", R"("_nbHashes":0)", "_nbHashes"},
      {"bloom_filters", of_bloom_filters, "ASAA", "AS*A", "_filter.content"},
      {"bloom_filters", of_bloom_filters, "ASAA", "ASA=", "_filter.content"},
      {"bloom_filters", of_bloom_filters, "ASAA", "", "_filter.content"},
      {"bloom_filters", of_bloom_filters, "ASAA", "ASAAAAAA", "_filter.content"},
      {"bloom_filters", of_bloom_filters, R"({"size":96,"content":"QgAAgAAgAAACASAA"})", "[1,0,1]", "missing"},
      {"bloom_filters", of_bloom_filters, R"(,"_seed":78187493520)", "", "_seed"},
      {"bloom_filters", of_bloom_filters, R"("type")", R"("x":[],"type")", "other fields"},
      {"bloom_filters", of_bloom_filters, R"("type")", R"("_filter":{},"type")", "twice"},
      {"bloom_filters", of_bloom_filters, R"("_filter":{"size")", R"("_filter.size":96,"_filter":{"size")", "dot"},
      {"bloomfilter_js", of_bloomfilter_js, R"("version":1)", R"("version":2)", "version"},
      {"bloomfilter_js", of_bloomfilter_js, R"("m":128)", R"("m":160)", "4 buckets"},
      {"bloomfilter_js", of_bloomfilter_js, R"("m":128)", R"("m":4294967328)", "field m"},
      {"bloomfilter_js", of_bloomfilter_js, R"("k":7)", R"("k":"7")", "field k"},
      {"bloomfilter_js", of_bloomfilter_js, "131072,", "4294967296,", "32 bits"},
      {"bloomfilter_js", of_bloomfilter_js, "131072,", "-1,", "negative"},
      {"bloomfilter_js", of_bloomfilter_js, "131072,", "[131072],", "nested"},
      {"bloomfilter_js", of_bloomfilter_js, "131072,", "{},", "nested"},
      {"bloomfilter_js", of_bloomfilter_js, "131072,", "\"a\",", "other values than numbers"},
      {"bloomfilter_js", of_bloomfilter_js, "131072,", "null,", "null"},
      {"bloomfilter_js", of_bloomfilter_js, R"("m":128)", R"("m":{"a":{"b":1}})", "nested"},
      {"bloomfilter_js", of_bloomfilter_js, R"("m":128)", R"("m":128,"m":128)", "twice"},
      {"bits_and_blooms_json", R"({"m":9,"k":3,"b":"AAAAAAAAAAkAAAAAAAABAQ=="})", "AAAAAAAAAAk", "AAAAAAAAAAg",
       "length"},
      {"bits_and_blooms_json", R"({"m":9,"k":3,"b":"AAAAAAAAAAkAAAAAAAABAQ=="})", "AAAAAAAAAAk", "AAAAAAAAAEE",
       "length"},
      {"bits_and_blooms_json", R"({"m":9,"k":3,"b":"AAAAAAAAAAkAAAAAAAABAQ=="})", "AQ==", "AR==", "field b"},
      {"bits_and_blooms_json", R"({"m":9,"k":3,"b":"AAAAAAAAAAkAAAAAAAABAQ=="})", "BAQ==", "CAQ==", "unused bits"},
      {"bits_and_blooms_json", R"({"m":9,"k":3,"b":"AAAAAAAAAAkAAAAAAAABAQ=="})", "AkAAAA", "AkBAAA", "unused bits"},
      {"bits_and_blooms_json", R"({"m":9,"k":3,"b":"AAAAAAAAAAkAAAAAAAABAQ=="})", R"("m":9)", R"("m":65)", "field b"},
  };
  for (const auto& change : changes) {
    EXPECT_EQ(read(change.whole).opened_from()->format, change.format);
    std::string text = change.whole;
    ASSERT_NE(text.find(change.part), std::string::npos);
    text.replace(text.find(change.part), std::strlen(change.part), change.instead);

    EXPECT_ERROR(read(text, change.format), errc::damaged, change.words);
    EXPECT_THROW(read(text), error);
    EXPECT_EQ(recognize_format("some.json"), nullptr) << text;
  }
}

TEST_F(JsonFormats, AreListedIfTheFieldsAreThoseOfNone) {
  for (const char* const text : {"{}", R"({"m":32,"k":1})", R"({"version":1,"m":32,"k":1,"buckets":[0],"x":1})"})
    EXPECT_ERROR(read(text), errc::not_a_filter, "one of bloom_filters, bloomfilter_js, bits_and_blooms_json");
  EXPECT_ERROR(read("{}", "bloomfilter_js"), errc::damaged, "a field is missing: expected version");
}

TEST_F(JsonFormats, RefuseTextsThatAreCutOrContinued) {
  for (const std::string text : {of_bloom_filters, of_bloomfilter_js}) {
    for (std::size_t length = 0; length < text.size(); ++length) {
      write_file("cut.json", text.substr(0, length));
      EXPECT_EQ(recognize_format("cut.json"), nullptr);
    }
    EXPECT_ERROR(read(text + text), errc::damaged, "not JSON at byte");
    EXPECT_ERROR(read(text + std::string("\0more", 5)), errc::damaged, "a NUL byte");
    EXPECT_TRUE(read("\xEF\xBB\xBF" + text) == read(text));  // with a byte order mark
  }
  std::string many = "{";
  for (int i = 0; i < 100; ++i) many += "\"" + std::to_string(i) + "\":1,";
  EXPECT_ERROR(read(many + "\"m\":1}"), errc::damaged, "too many fields");
  EXPECT_ERROR(read(std::string(100'000, '[')), errc::not_a_filter, "");
  EXPECT_ERROR(read("{\"a\":" + std::string(100'000, '[')), errc::damaged, "nested");
  EXPECT_ERROR(read("[1]", "bloomfilter_js"), errc::damaged, "array");
  EXPECT_ERROR(read("1", "bloomfilter_js"), errc::damaged, "not an object");
}

TEST_F(JsonFormats, LongerThanAnyStringOfNodeAreRefusedUnread) {
  write_file("huge.json", "{");
  std::filesystem::resize_file("huge.json", std::uint64_t{1} << 34);  // sparse

  EXPECT_ERROR(import_filter("huge.json"), errc::too_large, "huge.json");
  EXPECT_EQ(recognize_format("huge.json"), nullptr);
  std::filesystem::remove("huge.json");
}

// Vectors of RFC 4648.
TEST(Base64, IsThatOfTheStandard) {
  const std::pair<std::string, std::string> vectors[] = {{"", ""},
                                                         {"f", "Zg=="},
                                                         {"fo", "Zm8="},
                                                         {"foo", "Zm9v"},
                                                         {"foob", "Zm9vYg=="},
                                                         {"fooba", "Zm9vYmE="},
                                                         {"foobar", "Zm9vYmFy"},
                                                         {"\xFB\xFF", "+/8="}};
  for (const auto& [plain, text] : vectors) {
    const bytes data(plain.begin(), plain.end());
    EXPECT_EQ(app::base64_of(data, app::base64_standard), text);
    EXPECT_EQ(app::from_base64(text, data.size(), app::base64_standard), data);
    EXPECT_EQ(app::from_base64(text, data.size() + 1, app::base64_standard), std::nullopt) << text;
  }
  EXPECT_EQ(app::base64_of(bytes{0xFB, 0xFF}, app::base64_for_urls), "-_8=");
  EXPECT_EQ(app::from_base64("-_8=", 2, app::base64_for_urls), (bytes{0xFB, 0xFF}));
  for (const char* const wrong : {"-_8=", "+/8", "+/9=", "+/==", "=/8=", "+/8=\n"})
    EXPECT_EQ(app::from_base64(wrong, 2, app::base64_standard), std::nullopt) << wrong;
}

}  // namespace
}  // namespace bloomery
