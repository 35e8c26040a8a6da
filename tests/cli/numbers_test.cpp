// Parsing and formatting of numbers as people write them.
#include "app/numbers.hpp"

#include "support/test.hpp"

namespace bloomery::cli {

using namespace app;

namespace {

using namespace bloomery_tests;

TEST(ParseCount, TakesCountsAsPeopleWriteThem) {
  const std::pair<const char*, std::uint64_t> cases[] = {{"0", 0},
                                                         {"1", 1},
                                                         {"007", 7},
                                                         {"1000", 1000},
                                                         {"1_000_000", 1'000'000},
                                                         {"100M", 100'000'000},
                                                         {"100m", 100'000'000},
                                                         {"2.5k", 2500},
                                                         {"2.5K", 2500},
                                                         {"1e9", 1'000'000'000},
                                                         {"1E3", 1000},
                                                         {"3 M", 3'000'000},
                                                         {".5k", 500},
                                                         {"1G", 1'000'000'000},
                                                         {"1T", 1'000'000'000'000},
                                                         {"1P", 1'000'000'000'000'000},
                                                         {"1e3k", 1'000'000},
                                                         {"9007199254740993", 9'007'199'254'740'993},
                                                         {"9223372036854775807", 9'223'372'036'854'775'807},
                                                         {"9223372036854775808", 9'223'372'036'854'775'808u}};
  for (const auto& [text, count] : cases) EXPECT_EQ(parse_count(text, "-n"), count) << text;
}

TEST(ParseCount, RefusesAllElseAndNamesTheOption) {
  for (const char* text :
       {"",     " ",       "abc",      "k",   "-1",  "-",     "+1",  "1.5",   "1e-4",  "0x10",
        "nan",  "inf",     "infinity", "1KB", "1Ki", "1%",    "1 2", "1.2.3", "1,000", "9223372036854775809",
        "1e20", "1e99999", "1e",       "1kk", "_",   "0X1p3", "ten", "1\n",   "１"}) {
    const auto refused = error_of([&] { parse_count(text, "-n"); });

    ASSERT_TRUE(refused) << text;
    EXPECT_EQ(refused->code(), errc::invalid_argument);
    EXPECT_THAT(refused->what(), HasSubstr("-n: "));
    EXPECT_THAT(refused->what(), HasSubstr("'" + std::string(text) + "'"));
  }
}

TEST(ParseBits, TakesBitsAndBytes) {
  const std::pair<const char*, std::uint64_t> cases[] = {
      {"1000000", 1'000'000}, {"1k", 1000},          {"8Mbit", 8'000'000},    {"8bit", 8},        {"10B", 80},
      {"500kB", 4'000'000},   {"64MB", 512'000'000}, {"64MiB", 512ull << 20}, {"1.5KiB", 12'288}, {"1 GiB", 8ull << 30},
      {"2TiB", 16ull << 40},  {"1e6", 1'000'000}};
  for (const auto& [text, count] : cases) EXPECT_EQ(parse_bits(text, "-m"), count) << text;
}

TEST(ParseBits, RefusesAllElse) {
  for (const char* text : {"", "MiB", "10b", "10mb", "10Kb", "1XiB", "-1B", "1e30", "nan", "1%", "0x10"}) {
    EXPECT_EQ(code_of([&] { parse_bits(text, "-m"); }), errc::invalid_argument) << text;
  }
}

TEST(ParseRate, TakesProbabilitiesAsPeopleWriteThem) {
  const std::pair<const char*, double> cases[] = {{"0.01", 0.01},      {".5", 0.5},       {"1e-4", 1e-4},
                                                  {"1%", 0.01},        {"0.1 %", 0.001},  {"99.9%", 0.999},
                                                  {"1 in 1000", 1e-3}, {"1 in 1k", 1e-3}, {"2 in 1_000", 2e-3},
                                                  {"1/1000", 1e-3},    {"1/1M", 1e-6},    {"1e-300", 1e-300}};
  for (const auto& [text, rate] : cases) EXPECT_DOUBLE_EQ(parse_rate(text, "-p"), rate) << text;
}

TEST(ParseRate, RefusesInvalidProbabilities) {
  for (const char* text : {"",        "0",      "1",      "0.0",    "1.0",   "100%", "0%",     "-0.1",      "2",
                           "nan",     "inf",    "1 in 0", "1 in 1", "1/0",   "0/5",  "1 in",   "1 of 1000", "1 in x",
                           "1 in -5", "5 in 1", "%",      "1%%",    "1 % 2", "1k",   "1e-400", "0x1p-4",    "0,01"}) {
    EXPECT_EQ(code_of([&] { parse_rate(text, "-p"); }), errc::invalid_argument) << text;
  }
}

TEST(NumbersAsText, AreShortAndRight) {
  EXPECT_EQ(count_text(0), "0");
  EXPECT_EQ(count_text(999), "999");
  EXPECT_EQ(count_text(1000), "1,000");
  EXPECT_EQ(count_text(1'234'567), "1,234,567");
  EXPECT_EQ(count_text(std::numeric_limits<std::uint64_t>::max()), "18,446,744,073,709,551,615");
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(999), "999 B");
  EXPECT_EQ(bytes_text(1000), "0.977 KiB");
  EXPECT_EQ(bytes_text(1024), "1 KiB");
  EXPECT_EQ(bytes_text(119'537'664), "114 MiB");
  EXPECT_EQ(bytes_text(1023 << 10), "0.999 MiB");
  EXPECT_EQ(bytes_text(std::uint64_t{1} << 36), "64 GiB");
  EXPECT_EQ(bytes_text(std::numeric_limits<std::uint64_t>::max()), "16 EiB");
  EXPECT_EQ(rate_text(0.0105), "1.05%");
  EXPECT_EQ(rate_text(1), "100%");
  EXPECT_EQ(rate_text(0), "0%");
  EXPECT_EQ(rate_text(1.28e-4), "0.0128%");
  EXPECT_EQ(rate_text(1e-4), "0.01%");
  EXPECT_EQ(rate_text(9.99e-6), "9.99e-06");
  EXPECT_EQ(share_text(1, 8), "12.5%");
  EXPECT_EQ(share_text(0, 8), "0%");
  EXPECT_EQ(share_text(1, 0), "-");
}

}  // namespace
}  // namespace bloomery::cli
