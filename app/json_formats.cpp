// Filter files of other systems in JSON.
//
//   bloom_filters         {"type":"BloomFilter","_size":m,"_nbHashes":k,
//                          "_filter":{"size":8 ceil(m / 8),"content":base64 of ceil(m / 8) bytes},"_seed":seed}
//   bloomfilter_js        {"version":1,"m":m,"k":k,"buckets":[m / 32 words]}
//   bits_and_blooms_json  {"m":m,"k":k,"b":base64 of a length in bits and ceil(m / 64) words, as in bits_and_blooms}
//
// Without spaces and with this order of fields, the texts are those that the systems write.
#include "app/json_formats.hpp"

#include "app/base64.hpp"
#include "app/json_fields.hpp"

#include <bloomery/detail/geometry.hpp>
#include <bloomery/error.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <vector>

namespace bloomery::app {
namespace {

static_assert(std::endian::native == std::endian::little);

// The longest string of Node.js 20, so the longest text that JSON.parse() reads there.
constexpr std::uint64_t most_file_bytes = (std::uint64_t{1} << 29) - 24;
constexpr std::uint64_t most_bits = std::uint64_t{1} << 32;

struct json_row {
  file_format facts;
  std::span<const std::string_view> fields;
  added_filter (*read)(const json_fields& fields);
  std::string (*write)(const params& p, std::span<const std::uint8_t> bits);
};

geometry geometry_of(std::uint64_t bits, std::uint64_t probes) { return {bits, static_cast<std::uint32_t>(probes)}; }

// Copies the bits of a filter from bytes that may have more. Those must be 0.
heap_storage storage_of(const json_fields& fields, std::span<const std::uint8_t> bytes, std::uint64_t bits) {
  heap_storage storage(bytes_for(bits));
  std::copy_n(bytes.begin(), storage.size(), storage.data());
  const auto rest = bytes.subspan(storage.size());
  const bool more = bits % 8 != 0 && bytes[storage.size() - 1] >> bits % 8 != 0;
  if (more || std::any_of(rest.begin(), rest.end(), [](std::uint8_t byte) { return byte != 0; }))
    fields.refuse("unused bits are set", "no bits from " + std::to_string(bits) + " on", "");
  return storage;
}

// ---- bloom-filters --------------------------------------------------------------------------------------------------

constexpr std::uint64_t default_seed = 0x12'3456'7890;
constexpr std::uint64_t most_seed = (std::uint64_t{1} << 53) - 2;  // JavaScript adds 2
constexpr std::string_view bloom_filters_fields[] = {"type",         "_size",           "_nbHashes", "_filter",
                                                     "_filter.size", "_filter.content", "_seed"};

added_filter read_bloom_filters(const json_fields& fields) {
  if (fields.text("type") != "BloomFilter") fields.refuse("field type", "BloomFilter", "another class");
  const std::uint64_t bits = fields.number("_size", 1, most_bits);
  const std::uint64_t probes = fields.number("_nbHashes", 1, max_probes);
  fields.number("_filter.size", 8 * bytes_for(bits), 8 * bytes_for(bits));
  const std::uint64_t seed = fields.number("_seed", 0, most_seed);
  const auto bytes = from_base64(fields.text("_filter.content"), bytes_for(bits), base64_standard);
  if (!bytes) fields.refuse("field _filter.content", "base64 of " + std::to_string(bytes_for(bits)) + " bytes", "");
  added_filter found{"bloom_filters", {}, storage_of(fields, *bytes, bits)};
  found.parameters.scheme = "bloom_filters";
  found.parameters.geometry = geometry_of(bits, probes);
  // The scheme's seed 0 is the package's default, and 2^32 selects the hashes of the package's seed 0.
  found.parameters.seed = seed == default_seed ? 0 : seed == 0 ? std::uint64_t{1} << 32 : seed;
  return found;
}

std::string write_bloom_filters(const params& p, std::span<const std::uint8_t> bits) {
  // A seed modulo 2^32 selects the same hashes.
  const std::uint64_t seed = p.seed == 0 ? default_seed : p.seed <= most_seed ? p.seed : p.seed % most_bits;
  return R"({"type":"BloomFilter","_size":)" + std::to_string(p.geometry.bits) + R"(,"_nbHashes":)" +
         std::to_string(p.geometry.probes) + R"(,"_filter":{"size":)" + std::to_string(8 * bits.size()) +
         R"(,"content":")" + base64_of(bits, base64_standard) + R"("},"_seed":)" + std::to_string(seed) + "}";
}

// ---- bloomfilter ----------------------------------------------------------------------------------------------------

constexpr std::string_view bloomfilter_js_fields[] = {"version", "m", "k", "buckets"};

added_filter read_bloomfilter_js(const json_fields& fields) {
  fields.number("version", 1, 1);
  const std::uint64_t bits = fields.number("m", 1, most_bits);
  const std::uint64_t probes = fields.number("k", 1, max_probes);
  const std::vector<std::uint32_t>& words = fields.numbers("buckets");
  if (bits != 32 * words.size())
    fields.refuse("field m", "32 times the " + std::to_string(words.size()) + " buckets", std::to_string(bits));
  added_filter found{"bloomfilter_js", {}, heap_storage(bytes_for(bits))};
  std::memcpy(found.bits.data(), words.data(), found.bits.size());
  found.parameters.scheme = "bloomfilter_js";
  found.parameters.geometry = geometry_of(bits, probes);
  return found;
}

std::string write_bloomfilter_js(const params& p, std::span<const std::uint8_t> bits) {
  std::string text = R"({"version":1,"m":)" + std::to_string(p.geometry.bits) + R"(,"k":)" +
                     std::to_string(p.geometry.probes) + R"(,"buckets":[)";
  for (std::size_t at = 0; at < bits.size(); at += 4) {
    std::uint32_t word;
    std::memcpy(&word, bits.data() + at, sizeof word);
    text += (at == 0 ? "" : ",") + std::to_string(word);
  }
  return text + "]}";
}

// ---- bits-and-blooms ------------------------------------------------------------------------------------------------

constexpr std::string_view bits_and_blooms_fields[] = {"m", "k", "b"};
constexpr std::size_t length_bytes = 8;

std::uint64_t words_for(std::uint64_t bits) { return bits / 64 + (bits % 64 != 0); }

// Converts words between big-endian and little-endian.
void reverse_words(std::span<std::uint8_t> words) {
  for (std::size_t at = 0; at + 8 <= words.size(); at += 8) {
    const auto word = words.subspan(at, 8);
    std::reverse(word.begin(), word.end());
  }
}

added_filter read_bits_and_blooms(const json_fields& fields) {
  const std::uint64_t bits = fields.number("m", 1, most_bits);
  const std::uint64_t probes = fields.number("k", 1, max_probes);
  const std::uint64_t bytes = length_bytes + 8 * words_for(bits);
  auto set = from_base64(fields.text("b"), bytes, base64_for_urls);
  if (!set) fields.refuse("field b", "base64 for URLs of " + std::to_string(bytes) + " bytes", "");
  reverse_words(*set);
  std::uint64_t length;
  std::memcpy(&length, set->data(), sizeof length);
  if (length < bits || length > 64 * words_for(bits))
    fields.refuse("length of the bit set", std::to_string(bits), std::to_string(length));
  added_filter found{"bits_and_blooms_json", {}, storage_of(fields, std::span(*set).subspan(length_bytes), bits)};
  found.parameters.scheme = "bits_and_blooms";
  found.parameters.geometry = geometry_of(bits, probes);
  return found;
}

std::string write_bits_and_blooms(const params& p, std::span<const std::uint8_t> bits) {
  std::vector<std::uint8_t> set(length_bytes + 8 * words_for(p.geometry.bits));
  std::memcpy(set.data(), &p.geometry.bits, length_bytes);
  std::copy(bits.begin(), bits.end(), set.begin() + length_bytes);
  reverse_words(set);
  return R"({"m":)" + std::to_string(p.geometry.bits) + R"(,"k":)" + std::to_string(p.geometry.probes) + R"(,"b":")" +
         base64_of(set, base64_for_urls) + R"("})";
}

// ---- the table ------------------------------------------------------------------------------------------------------

constexpr json_row rows[] = {
    {{"bloom_filters", "bloom-filters 2 and 3, saveAsJSON() (npm)", "bloom_filters", false},
     bloom_filters_fields,
     read_bloom_filters,
     write_bloom_filters},
    {{"bloomfilter_js", "bloomfilter 1.1, toJSON() (npm)", "bloomfilter_js", false},
     bloomfilter_js_fields,
     read_bloomfilter_js,
     write_bloomfilter_js},
    {{"bits_and_blooms_json", "bits-and-blooms/bloom, MarshalJSON (Go)", "bits_and_blooms", false},
     bits_and_blooms_fields,
     read_bits_and_blooms,
     write_bits_and_blooms},
};

const json_row& row_of(std::string_view format) {
  return *std::find_if(std::begin(rows), std::end(rows), [&](const json_row& row) { return row.facts.name == format; });
}

// Whether the first byte that is neither a space nor of a byte order mark is a brace.
bool may_read(std::span<const std::uint8_t> beginning) {
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  std::string_view text(reinterpret_cast<const char*>(beginning.data()), beginning.size());
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{';
}

added_filter read(std::span<const std::uint8_t> file, std::string_view format, const std::string& path) {
  const json_fields fields(file, path);
  if (!format.empty()) {
    fields.check_names(row_of(format).fields);
    return row_of(format).read(fields);
  }
  for (const json_row& row : rows) {
    if (fields.has_exactly(row.fields)) return row.read(fields);
  }
  std::string names;
  for (const json_row& row : rows) names += (names.empty() ? "" : ", ") + std::string(row.facts.name);
  throw error(errc::not_a_filter, {"not the JSON of a filter", path, "the fields of one of " + names, "other fields",
                                   "name the format to learn which field does not fit"});
}

std::string write(std::string_view format, const params& p, std::span<const std::uint8_t> bits) {
  std::string text = bits.size() <= most_file_bytes ? row_of(format).write(p, bits) : "";
  if (!text.empty() && text.size() <= most_file_bytes) return text;
  throw error(errc::incompatible, {"the filter is too large for JSON", "format " + std::string(format),
                                   "at most " + std::to_string(most_file_bytes) + " bytes of text", "", hint::none});
}

}  // namespace

added_formats json_formats() {
  static const std::vector<file_format> formats = [] {
    std::vector<file_format> list;
    for (const json_row& row : rows) list.push_back(row.facts);
    return list;
  }();
  return {formats, most_file_bytes, may_read, read, write};
}

}  // namespace bloomery::app
