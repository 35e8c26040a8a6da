// Malicious and malformed request bodies.
#include "playground/json/json.hpp"

#include "playground/answers.hpp"

#include "support/errors.hpp"

namespace bloomery_tests {
namespace {

using namespace bloomery::playground;
using bloomery::errc;

std::string repeated(const std::string& text, std::size_t times) {
  std::string all;
  all.reserve(text.size() * times);
  for (std::size_t i = 0; i < times; ++i) all += text;
  return all;
}

TEST(Body, ABodyThatIsNotAPlainObjectIsRefusedWithAMessage) {
  const std::size_t many = 1'000'000;
  std::vector<std::string> bodies = {"",
                                     "x",
                                     "null",
                                     "[]",
                                     "1",
                                     "\"a\"",
                                     "{",
                                     "{}x",
                                     "{a:1}",
                                     "{'a':1}",
                                     "{\"\xc0\x80\":1}",
                                     std::string("{\"a\":1}\0", 8),
                                     "{\"a\":1,\"a\":1}",
                                     "{\"a\":{\"b\":1,\"b\":2}}",
                                     "{\"a\":" + repeated("[", many),
                                     "{\"a\":" + repeated("[", many) + repeated("]", many) + "}",
                                     repeated("{\"a\":", many),
                                     repeated("{\"a\":", many) + "1" + repeated("}", many),
                                     "{\"a\":[" + repeated("1,", many) + "1]}",
                                     "{\"keys\":[" + repeated("\"\",", many) + "\"\"]}",
                                     "{\"a\":\"" + repeated("x", many)};
  for (const char* value : {"1,", "01", "1e400", "-1e400", "NaN", "Infinity", "+1", "\"\xff\"", "\"\xed\xa0\x80\"",
                            "\"\\ud800\"", "\"\n\""}) {
    bodies.push_back(std::string("{\"a\":") + value + "}");
  }
  for (const std::string& body : bodies) {
    const auto thrown = error_of([&] { fields refused{std::string_view(body)}; });
    ASSERT_TRUE(thrown) << body.substr(0, 60);
    expect_words(bloomery::playground::json_of(*thrown));
  }
  std::string names = "{";
  for (int i = 0; i < 100'000; ++i) names += "\"" + std::to_string(i) + "\":1,";
  EXPECT_EQ(code_of([&] { fields refused{names + "\"x\":1}"}; }), errc::invalid_argument);
}

TEST(Body, KeysAreBytesAndComeBackAsTheyWere) {
  const std::string strange[] = {std::string("\0a\0", 3),
                                 "",
                                 "\xff\xfe",
                                 "a\xc0",
                                 "\xe4\xbd\xa0\xe5\xa5\xbd",
                                 "\xf0\x9f\x8c\xb8",
                                 "\"\\\n\t",
                                 std::string("a\0", 2),
                                 std::string(1, '\x7f')};
  json list = json::array();
  for (const std::string& key : strange) list.push_back(json_of_key(key));
  const std::string text = json{{"keys", list}}.dump();

  fields body{std::string_view(text)};
  const auto keys = std::get<std::vector<std::string>>(body.keys(100));
  body.end();

  EXPECT_EQ(keys, std::vector<std::string>(std::begin(strange), std::end(strange)));
  EXPECT_EQ(json_of_key("\xff\xfe"), json({{"base64", "//4="}}));
  EXPECT_EQ(json_of_key("Madrid"), "Madrid");
  for (const char* wrong : {"=", "//4", "//4=/", "//4 ", "a===", "\xc3\xa4\xc3\xa4"}) {
    EXPECT_TRUE(code_of([&] {
      fields b{json{{"keys", {{{"base64", wrong}}}}}.dump()};
      b.keys(9);
    })) << wrong;
  }
}

TEST(Body, AHundredThousandKeysOfTenMegabytesAreRead) {
  json list = json::array();
  for (int i = 0; i < 100'000; ++i) list.push_back(std::string(90, 'x') + std::to_string(i));
  const std::string text = json{{"keys", list}}.dump();
  ASSERT_GT(text.size(), std::size_t{9} << 20);

  fields body{std::string_view(text)};

  EXPECT_EQ(std::get<std::vector<std::string>>(body.keys(100'000)).size(), 100'000u);
  fields again{std::string_view(text)};
  EXPECT_EQ(code_of([&] { again.keys(99'999); }), errc::too_large);
}

TEST(Body, AKeyHasALargestLength) {
  const auto taken = [](std::size_t size) {
    return code_of([&] {
      fields b{json{{"key", std::string(size, 'x')}}.dump()};
      b.key("key");
    });
  };

  EXPECT_EQ(taken(demo_session::most_key_bytes), std::nullopt);
  EXPECT_EQ(taken(demo_session::most_key_bytes + 1), errc::too_large);
}

TEST(Body, NumbersAreWholeAndWithinTheirRange) {
  const auto number = [](const std::string& text) -> std::optional<std::uint64_t> {
    try {
      fields b{"{\"n\":" + text + "}"};
      return b.number("n", 1, 1000);
    } catch (const bloomery::error& e) {
      EXPECT_EQ(e.text().where, "n");
      expect_words(bloomery::playground::json_of(e));
      return std::nullopt;
    }
  };

  EXPECT_EQ(number("1"), 1u);
  EXPECT_EQ(number("1000"), 1000u);
  EXPECT_EQ(number("1e3"), 1000u);
  EXPECT_EQ(number("1.0"), 1u);
  for (const char* wrong : {"0", "1001", "-1", "-0", "0.5", "1.5", "1e-300", "1e300", "18446744073709551615",
                            "18446744073709551617", "-9223372036854775809", "\"1\"", "null", "true", "[]", "{}"}) {
    EXPECT_EQ(number(wrong), std::nullopt) << wrong;
  }
}

}  // namespace
}  // namespace bloomery_tests
