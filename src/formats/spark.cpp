// spark: BloomFilter.writeTo of Apache Spark.
//
//   version 1:  0  1, 32 bits;  4  k;  8  W;            12  W words of 64 bits
//   version 2:  0  2, 32 bits;  4  k;  8  seed;  12  W;  16  W words of 64 bits        all numbers are big-endian
#include "formats/format_row.hpp"

namespace bloomery::formats {
namespace {

constexpr std::uint32_t most_words = 0x7FFFFFFF;

contents read(const head& file) {
  const std::uint32_t version = file.u32_big_endian(0);
  file.check_range("version", version, 1, 2);
  const std::uint32_t probes = file.u32_big_endian(4);
  file.check_range("number of probes", probes, 1, 255);
  const std::uint64_t bits_at = version == 1 ? 12 : 16;
  const std::uint32_t words = file.u32_big_endian(bits_at - 4);
  file.check_range("number of words", words, 1, most_words);
  file.check_length(bits_at, words);
  contents found;
  found.parameters.scheme = version == 1 ? "spark" : "spark2";
  found.parameters.seed = version == 1 ? 0 : file.u32_big_endian(8);
  found.parameters.geometry = {std::uint64_t{64} * words, probes};
  found.bits_at = bits_at;
  return found;
}

std::vector<std::uint8_t> write(const params& p, const key_counts&) {
  const bool has_seed = p.scheme == "spark2";
  if (p.seed > 0xFFFFFFFF) {
    throw error(errc::incompatible, {"the seed of the filter is too large for this format", "", "at most 2^32 - 1",
                                     std::to_string(p.seed), "build the filter again from its keys"});
  }
  std::vector<std::uint8_t> bytes;
  const auto add = [&](std::uint64_t number) {
    append(bytes, static_cast<std::uint32_t>(number), byte_order::big_endian);
  };
  add(has_seed ? 2 : 1);
  add(p.geometry.probes);
  if (has_seed) add(p.seed);
  add(words_for(p.geometry.bits));
  return bytes;
}

}  // namespace

constinit const format_row spark_row = {.name = "spark",
                                        .system = "Apache Spark, BloomFilter.writeTo (Java, Scala)",
                                        .schemes = "spark, spark2",
                                        .order = byte_order::big_endian,
                                        .read = read,
                                        .write = write};

}  // namespace bloomery::formats
