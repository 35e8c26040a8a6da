// Schemes, compared byte for byte with the real systems, where these are installed (tools/install-dependencies test).
#include <bloomery/detail/bits.hpp>
#include <bloomery/scheme.hpp>

#include "support/test.hpp"

#include <cstdio>
#include <sstream>

namespace bloomery {
namespace {

std::string peer(const std::string& file) {
#ifdef BLOOMERY_SOURCE_DIR
  const std::filesystem::path tests = std::filesystem::path(BLOOMERY_SOURCE_DIR) / "tests";
#else
  const std::filesystem::path tests = std::filesystem::path(__FILE__).parent_path();
#endif
  return (tests / "peers" / file).string();
}

bool succeeds(const std::string& command) { return std::system((command + " >/dev/null 2>&1").c_str()) == 0; }

std::string output_of(const std::string& command) {
  std::string output;
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return output;
  char buffer[4096];
  while (const std::size_t size = std::fread(buffer, 1, sizeof buffer, pipe)) output.append(buffer, size);
  EXPECT_EQ(pclose(pipe), 0) << command;
  return output;
}

// The bytes of a filter of key-0 .. key-(count - 1).
std::vector<std::uint8_t> bytes_of(const scheme& rule, const geometry& size, std::uint64_t seed, int count) {
  std::vector<std::uint8_t> bytes(bytes_for(size.bits));
  std::vector<std::uint64_t> cells(size.probes);
  for (int i = 0; i < count; ++i) {
    rule.positions("key-" + std::to_string(i), size, {.seed = seed}, cells.data());
    for (const std::uint64_t cell : cells) set_bit(bytes.data(), cell);
  }
  return bytes;
}

std::string hex(const std::vector<std::uint8_t>& bytes) {
  std::string digits;
  for (const std::uint8_t byte : bytes) {
    for (const int shift : {4, 0}) digits += "0123456789abcdef"[byte >> shift & 15];
  }
  return digits;
}

TEST(PerlPeer, HasTheSameSizeAndBytes) {
  if (!succeeds("perl -MBloom::Filter -e1")) {
    std::puts("SKIP peer Bloom::Filter (libbloom-filter-perl) is not installed");
    GTEST_SKIP() << "SKIP peer Bloom::Filter (libbloom-filter-perl) is not installed";
  }
  const scheme& perl = *find_scheme("perl");
  struct {
    std::uint64_t capacity;
    const char* rate;
    std::uint64_t seed;
    const char* salts;
    int keys;
  } const cases[] = {{1000, "0.01", 0, "", 1000}, {100, "0.001", 0, "", 100},      {1, "0.5", 0, "", 1},
                     {5000, "0.5", 7, "7.", 500}, {777, "0.0001", 42, "42.", 777}, {30, "0.9", 0, "", 30}};
  for (const auto& [capacity, rate, seed, salts, keys] : cases) {
    const geometry size = perl.geometry_for(capacity, std::atof(rate));

    std::istringstream theirs(output_of("perl '" + peer("bloom_filter.pl") + "' " + std::to_string(capacity) + ' ' +
                                        rate + " '" + salts + "' " + std::to_string(keys)));

    geometry their_size;
    std::string their_bytes;
    theirs >> their_size.bits >> their_size.probes >> their_bytes;
    EXPECT_EQ(size.bits, their_size.bits) << capacity << " keys at " << rate;
    EXPECT_EQ(size.probes, their_size.probes) << capacity << " keys at " << rate;
    EXPECT_EQ(hex(bytes_of(perl, size, seed, keys)), their_bytes) << capacity << " keys at " << rate;
  }
}

// What Guava's writeTo makes of a filter: strategy 1, k, number of words, words, all big-endian.
std::string guava_file(const geometry& size, const std::vector<std::uint8_t>& bytes) {
  std::vector<std::uint8_t> file = {1, static_cast<std::uint8_t>(size.probes)};
  const std::uint64_t words = size.bits / 64;
  for (int shift = 24; shift >= 0; shift -= 8) file.push_back(static_cast<std::uint8_t>(words >> shift & 0xFF));
  for (std::size_t word = 0; word < bytes.size(); word += 8) {
    for (std::size_t byte = 8; byte-- > 0;) file.push_back(bytes[word + byte]);
  }
  return hex(file);
}

TEST(GuavaPeer, WritesTheSameFile) {
  const std::string jar = "/usr/share/java/guava.jar";
  if (!std::filesystem::exists(jar) || !succeeds("javac -version")) {
    std::puts("SKIP peer Guava (libguava-java, default-jdk-headless) is not installed");
    GTEST_SKIP() << "SKIP peer Guava (libguava-java, default-jdk-headless) is not installed";
  }
  const scheme& guava = *find_scheme("guava");
  struct {
    std::uint64_t capacity;
    const char* rate;
    int keys;
  } const cases[] = {
      {10, "0.01", 1}, {1000, "0.03", 1000}, {10'000, "0.0005", 10'000}, {500, "1e-9", 499}, {3, "0.5", 0}};
  std::string arguments;
  for (const auto& [capacity, rate, keys] : cases) {
    arguments += ' ' + std::to_string(capacity) + ' ' + rate + ' ' + std::to_string(keys);
  }

  std::istringstream theirs(
      output_of("java -cp " + jar + ":/usr/share/java/failureaccess.jar '" + peer("GuavaDump.java") + "'" + arguments));

  for (const auto& [capacity, rate, keys] : cases) {
    const geometry size = guava.geometry_for(capacity, std::atof(rate));
    std::string their_file;
    theirs >> their_file;
    EXPECT_EQ(guava_file(size, bytes_of(guava, size, 0, keys)), their_file) << capacity << " keys at " << rate;
  }
}

}  // namespace
}  // namespace bloomery
