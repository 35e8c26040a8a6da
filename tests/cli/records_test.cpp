// Records of CSV and JSON Lines: the same records and keys, however the text is split into chunks.
#include "cli/io/records.hpp"

#include "support/test.hpp"

#include <nlohmann/json.hpp>

namespace bloomery::cli {
namespace {

using namespace bloomery_tests;

chunk chunk_of(const std::string& text, std::size_t slack = 0) {
  static const std::string name = "test";
  chunk piece;
  piece.room = text.size() + slack;
  piece.buffer = std::make_unique<char[]>(piece.room + 1);
  std::memcpy(piece.buffer.get(), text.data(), text.size());
  piece.size = text.size();
  piece.source = &name;
  return piece;
}

std::vector<std::string> keys_in(const std::string& text, const input_options& options) {
  const chunk piece = chunk_of(text);
  record_cutter cutter(options);
  records found;
  cutter.cut(piece, found);
  EXPECT_EQ(found.keys.size(), found.lines.size());
  return {found.keys.begin(), found.keys.end()};
}

input_options csv(const std::string& fields) {
  input_options options;
  options.csv = true;
  options.fields = parse_fields(fields, "-f");
  return options;
}

// Text of bytes that mean something in CSV. All of its quotes are closed.
std::string random_csv(std::mt19937& random, std::size_t size) {
  constexpr std::string_view bytes = "\"\"\",,\n\r\nab";
  std::string text;
  while (text.size() < size) text += bytes[random() % bytes.size()];
  csv_scanner scanner(',');
  scanner.last_end(text, 0);
  return text + (scanner.in_quotes() ? "\"\n" : "\n");
}

// ---- CSV ------------------------------------------------------------------------------------------------------------

TEST(CsvScanner, FindsTheSameEndsHoweverTheTextArrives) {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    const std::string text = random_csv(random, 200);
    std::vector<std::size_t> ends;
    std::size_t at = 0;
    for (csv_cursor cursor(text, ','); cursor.next();) ends.push_back(at += cursor.record().size() + 1);

    csv_scanner scanner(',');
    std::size_t base = 0, seen = 0, fed = 0;
    while (fed < text.size()) {
      const std::size_t before = fed;
      fed = std::min(text.size(), fed + 1 + random() % 9);
      const std::size_t end = scanner.last_end(std::string_view(text).substr(base, fed - base), seen);
      std::size_t expected = 0;
      for (const std::size_t known : ends) {
        // The quote that a later one doubles may be the last byte: then what follows it decides.
        if (known <= fed && known > before) expected = known;
      }
      ASSERT_EQ(end == 0 ? 0 : base + end, expected) << text;
      base += end;
      seen = fed - base;
    }
    EXPECT_FALSE(scanner.in_quotes());
  }
}

TEST(CsvScanner, KnowsWhereTheOpenQuoteIs) {
  csv_scanner scanner(',');
  const std::string text = "a\nb,\"c\nd";

  const std::size_t end = scanner.last_end(text, 0);

  EXPECT_EQ(end, 2u);
  ASSERT_TRUE(scanner.in_quotes());
  EXPECT_EQ(text.substr(end)[scanner.quote_at()], '"');
}

TEST(RecordCutter, ReadsTheFieldsOfCsv) {
  EXPECT_THAT(keys_in("a,b\r\n\"a,\"\"\n\",x\n,\"\"\n\n\"q\"r\"s\",t\n\"a\"\r\n", csv("1")),
              ElementsAre("a", "a,\"\n", "", "", "qr\"s\"", "a"));
  EXPECT_THAT(keys_in("a,b\r\n\"a\",\"b\"\r\nc\n", csv("2,1")), ElementsAre("b\x1F"
                                                                            "a",
                                                                            "b\x1F"
                                                                            "a",
                                                                            "\x1F"
                                                                            "c"));
  EXPECT_THAT(keys_in("a,\x1F\n", csv("1,2")), ElementsAre("a\x1F\x1B\x1F"));
}

TEST(Reader, GivesTheRecordsOfCsvWholeWhateverTheirLength) {
  const scratch_folder folder;
  std::mt19937 random(9);
  std::string text = "\xEF\xBB\xBF\"name\",x\n";
  std::vector<std::string> expected;
  for (int i = 0; i < 3000; ++i) {
    std::string inner(i % 500 == 0 ? 300'000 : random() % 200, 'v');
    for (std::size_t at = 0; at < inner.size(); at += 7) inner[at] = i % 2 == 0 ? '\n' : ',';
    expected.push_back(std::to_string(i) + ",\"" + inner + "\"");
    text += expected.back() + "\n";
  }
  write_file(folder / "t.csv", text);
  input_options options = csv("name");
  options.files = {folder / "t.csv", folder / "t.csv"};
  const std::vector<std::string> once = expected;
  expected.insert(expected.end(), once.begin(), once.end());

  std::vector<std::string> lines;
  std::vector<std::string_view> found;
  reader in(options);
  for (chunk piece; in.next(piece);) {
    ASSERT_TRUE(piece.header);
    EXPECT_THAT(piece.header->names, ElementsAre("name", "x"));
    cut_records(piece.text(), options, found);
    lines.insert(lines.end(), found.begin(), found.end());
  }

  EXPECT_TRUE(lines == expected);
  EXPECT_EQ(measure_text(options).lines, expected.size());
}

// ---- JSON Lines -----------------------------------------------------------------------------------------------------

TEST(JsonReader, ReadsAtTheEndOfMemoryAndWithinIt) {
  const auto paths = parse_json_paths(".a,.b[1]", "--jsonl");
  json_reader reader({&paths[0], &paths[1]});
  for (std::size_t length = 0; length < 200; ++length) {
    const std::string text = R"({"a":")" + std::string(length, 'x') + R"(","b":[0,"y\n"]})";
    const std::unique_ptr<char[]> exact(new char[text.size()]);  // a byte too many would be noticed by a sanitizer
    std::memcpy(exact.get(), text.data(), text.size());
    for (const bool padded : {false, true}) {
      const std::string longer = text + std::string(64, '}');
      const std::string_view line(padded ? longer.data() : exact.get(), text.size());

      ASSERT_EQ(reader.read(line, padded ? longer.size() : text.size()), "");

      EXPECT_EQ(reader.values()[0], std::string(length, 'x'));
      EXPECT_EQ(reader.values()[1], "y\n");
    }
  }
}

TEST(JsonReader, RefusesWhatAnotherParserRefuses) {
  const auto paths = parse_json_paths(".a", "--jsonl");
  json_reader reader({&paths[0]});
  std::mt19937 random(4);
  constexpr std::string_view bytes = "{}[],:\"a1-.eE+ tn\\";
  int valid = 0;
  for (int i = 0; i < 200'000; ++i) {
    std::string text = R"({"a":)";
    for (std::size_t length = random() % 5; length > 0; --length) text += bytes[random() % bytes.size()];
    text += "}";
    const bool is_json = nlohmann::json::accept(text);
    const std::string why = reader.read(text, text.size());
    valid += is_json ? 1 : 0;
    if (is_json) {
      ASSERT_EQ(why, "") << text;
    }
    // A path leads to the value, so all of it is read, but for the inside of objects and arrays.
    const bool is_nested = text.find_first_of("{[", 1) != std::string::npos;
    if (!is_json && !is_nested) {
      ASSERT_NE(why, "") << text;
    }
  }
  EXPECT_GT(valid, 100);
}

TEST(JsonPaths, AreReadAsJqReadsThem) {
  const auto steps = [](const std::string& text) { return parse_json_paths(text, "--jsonl").front().steps; };
  using step = std::variant<std::string, std::uint64_t>;

  EXPECT_THAT(steps(".a.b"), ElementsAre(step("a"), step("b")));
  EXPECT_THAT(steps(".a[3].\"b.c\""), ElementsAre(step("a"), step(std::uint64_t{3}), step("b.c")));
  EXPECT_THAT(steps(".[0][\"x\\\"y\"]"), ElementsAre(step(std::uint64_t{0}), step("x\"y")));
  EXPECT_EQ(parse_json_paths(".a,.b[0],.c", "--jsonl").size(), 3u);
  for (const char* wrong :
       {"", ".", "a", ".a.", ".a[", ".a[1", ".a[-1]", ".a[99999999999999999999]", ".\"a", ".a,", ",.a", ".a b]"})
    EXPECT_THROW(parse_json_paths(wrong, "--jsonl"), error) << wrong;
}

}  // namespace
}  // namespace bloomery::cli
