// redisbloom: the value of a key of RedisBloom or Redis 8, as DUMP returns it and RESTORE takes it.
//
//   u8 7: a value of a module;  u8 0x81, u64: "MBbloom--" in 9 x 6 bits, and version 4 in 10 bits
//   2, keys;  2, number of layers;  2, options;  2, growth
//   per layer:  2, capacity;  4, f64 target FPR;  2, k;  4, f64 bits per key;  2, m;  2, log2;  5, bits;  2, keys
//   u8 0: end;  u16 version of RDB;  u64 CRC-64 of all bytes before
//
// The bytes 2, 4 and 5 announce an integer, a floating-point number and bytes. Integers have 1, 2, 5 or 9 bytes, see
// rdb.hpp. Bits are their length and the bytes, or 0xC3, the compressed length, the length and LZF data. f64, u16 and
// the checksum are little-endian. redis-cli --raw appends a newline.
#include "formats/rdb.hpp"
#include "formats/redisbloom.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace bloomery::formats {
namespace {

constexpr std::uint8_t value_of_module = 7;
constexpr std::uint8_t length_of_64_bits = 0x81;
constexpr std::uint64_t version = 4;
constexpr std::uint64_t version_bits = 10;
constexpr std::uint8_t compressed = 0xC3;
constexpr std::uint16_t rdb_version = 9;  // of Redis 5, which later versions accept
constexpr std::size_t footer_bytes = 10;
constexpr std::size_t checksum_bytes = 8;

// The name of a module's type, 9 letters of 6 bits.
constexpr std::uint64_t identity_of(std::string_view name) {
  constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::uint64_t identity = 0;
  for (const char letter : name) identity = identity << 6 | alphabet.find(letter);
  return identity;
}
constexpr std::uint64_t identity = identity_of("MBbloom--");
static_assert(identity << version_bits == 0x3016E5A289BEF800);

enum part : std::uint8_t { end = 0, integer = 2, floating = 4, string = 5 };

// Reads the parts of a value, each of which begins with its kind.
class parts {
 public:
  parts(const head& file, std::span<const std::uint8_t> bytes) : file_(file), bytes_(bytes), in_(bytes) {}

  std::uint8_t byte() { return checked(in_.byte()); }
  std::uint64_t u64_big_endian() { return checked(in_.number(8)); }
  std::uint64_t integer() {
    expect(part::integer);
    return checked(in_.length());
  }
  double floating() {
    expect(part::floating);
    const std::uint64_t image = __builtin_bswap64(u64_big_endian());
    double value;
    std::memcpy(&value, &image, sizeof value);
    return value;
  }
  void expect(part kind) {
    const std::uint8_t found = byte();
    if (found != kind) file_.refuse("kind of a value", std::to_string(kind), std::to_string(found));
  }

  // The lengths of the bits, which follow.
  struct string_lengths {
    std::uint64_t stored;
    std::uint64_t expanded;
    bool is_compressed;
  };
  string_lengths string() {
    expect(part::string);
    if (in_.at() < bytes_.size() && bytes_[in_.at()] == compressed) {
      byte();
      const std::uint64_t stored = checked(in_.length());
      return {stored, checked(in_.length()), true};
    }
    const std::uint64_t stored = checked(in_.length());
    return {stored, stored, false};
  }

  std::span<const std::uint8_t> take(std::uint64_t length) { return checked(in_.bytes(length)); }

  std::uint64_t at() const { return in_.at(); }

 private:
  template <class T>
  T checked(T value) const {
    if (!in_.is_valid()) refuse_truncated();
    return value;
  }
  [[noreturn]] void refuse_truncated() const {
    file_.refuse("a number or the bits are truncated or in an unknown form, at offset " + std::to_string(in_.at()), "",
                 "");
  }

  const head& file_;
  std::span<const std::uint8_t> bytes_;
  rdb::reader in_;
};

redisbloom::chain read_chain(parts& in, const head& file) {
  file.check_range("type of the value", in.byte(), value_of_module, value_of_module);
  file.check_range("form of the module's identity", in.byte(), length_of_64_bits, length_of_64_bits);
  const std::uint64_t module = in.u64_big_endian();
  if (module >> version_bits == identity_of("bloomfltr")) {
    throw error(errc::incompatible,
                {"valkey-bloom has other hashes than RedisBloom, which bloomery does not have", file.path(),
                 "a filter of RedisBloom or Redis 8", "a filter of valkey-bloom", "build a filter from its keys"});
  }
  if (module >> version_bits != identity) file.refuse("this is not a Bloom filter of RedisBloom", "", "");
  if (module != (identity << version_bits | version)) {
    throw error(errc::incompatible, {"unknown version of the values of RedisBloom", file.path(),
                                     std::to_string(version), std::to_string(module & ((1 << version_bits) - 1)),
                                     "restore it on a server with a newer RedisBloom, and dump it there"});
  }
  redisbloom::chain all;
  all.keys = in.integer();
  all.layers = in.integer();
  all.options = in.integer();
  all.growth = in.integer();
  redisbloom::check_chain(all, file);
  return all;
}

// All numbers of a layer but the last, which follows the bits.
redisbloom::layer read_layer(parts& in) {
  redisbloom::layer of;
  of.capacity = in.integer();
  of.target_fpr = in.floating();
  of.probes = in.integer();
  of.bits_per_key = in.floating();
  of.bits = in.integer();
  of.log2 = in.integer();
  return of;
}

// The lengths are compared before memory is allocated.
parts::string_lengths read_lengths(parts& in, const redisbloom::layer& of, const head& file) {
  const parts::string_lengths lengths = in.string();
  file.check_range("length of the bits", lengths.expanded, of.bits / 8, of.bits / 8);
  file.check_range("length of the stored bits", lengths.stored, lengths.expanded / rdb::most_expansion,
                   lengths.expanded);
  return lengths;
}

contents read(const head& file) {
  parts in(file, file.bytes());
  const redisbloom::chain all = read_chain(in, file);
  redisbloom::layer first = read_layer(in);
  first.keys = all.layers == 1 ? all.keys : 0;
  contents found;
  found.parameters = redisbloom::params_of(all, first, file);
  found.layers = all.layers;
  found.keys = all.keys;
  const std::uint64_t stored = read_lengths(in, first, file).stored;
  if (all.layers == 1) {
    const std::uint64_t length = in.at() + stored + 1 + rdb::bytes_of_length(all.keys) + 1 + footer_bytes;
    file.check_range("length of the file", file.file_bytes(), length, length + 1);  // of redis-cli, a newline
  }
  return found;
}

std::vector<stored_layer> read_layers(const head& file, std::span<const std::uint8_t> bytes) {
  parts in(file, bytes);
  const redisbloom::chain all = read_chain(in, file);
  std::vector<stored_layer> layers;
  std::uint64_t keys = 0;
  for (std::uint64_t i = 0; i < all.layers; ++i) {
    redisbloom::layer of = read_layer(in);
    const parts::string_lengths lengths = read_lengths(in, of, file);
    const std::span<const std::uint8_t> data = in.take(lengths.stored);
    of.keys = in.integer();
    keys += of.keys;
    layers.push_back({redisbloom::params_of(all, of, file), heap_storage(lengths.expanded), of.keys});
    heap_storage& words = layers.back().words;
    if (!lengths.is_compressed)
      std::copy(data.begin(), data.end(), words.data());
    else if (!rdb::expand_lzf(data, {words.data(), static_cast<std::size_t>(lengths.expanded)}))
      file.refuse("the compressed bits of layer " + std::to_string(i) + " are invalid", "", "");
  }
  file.check_range("number of keys of all layers", keys, all.keys, all.keys);
  in.expect(part::end);
  in.take(2);
  const std::uint64_t computed = rdb::crc64(0, bytes.first(static_cast<std::size_t>(in.at())));
  std::uint64_t stated;
  std::memcpy(&stated, in.take(checksum_bytes).data(), sizeof stated);
  if (stated != computed) file.refuse("the bytes do not match their checksum", "", "");
  if (in.at() < bytes.size() && bytes[in.at()] == '\n') in.take(1);
  file.check_range("length of the file", bytes.size(), in.at(), in.at());
  return layers;
}

void append_integer(std::vector<std::uint8_t>& bytes, std::uint64_t number) {
  append(bytes, std::uint8_t{integer});
  rdb::append_length(bytes, number);
}

void append_floating(std::vector<std::uint8_t>& bytes, double number) {
  append(bytes, std::uint8_t{floating});
  append(bytes, number);
}

std::vector<std::uint8_t> write(const params& p, const key_counts& counts) {
  const auto [all, first] = redisbloom::describe(p, counts);
  std::vector<std::uint8_t> bytes;
  append(bytes, value_of_module);
  append(bytes, length_of_64_bits);
  append(bytes, identity << version_bits | version, byte_order::big_endian);
  for (const std::uint64_t number : {all.keys, all.layers, all.options, all.growth, first.capacity})
    append_integer(bytes, number);
  append_floating(bytes, first.target_fpr);
  append_integer(bytes, first.probes);
  append_floating(bytes, first.bits_per_key);
  append_integer(bytes, first.bits);
  append_integer(bytes, first.log2);
  append(bytes, std::uint8_t{string});
  rdb::append_length(bytes, first.bits / 8);
  return bytes;
}

std::vector<std::uint8_t> write_end(const params&, const key_counts& counts, std::uint64_t crc) {
  std::vector<std::uint8_t> bytes;
  append_integer(bytes, counts.inserted);
  append(bytes, std::uint8_t{end});
  append(bytes, rdb_version);
  append(bytes, rdb::crc64(crc, bytes));
  return bytes;
}

bool has_signature(const head& file) {
  return file.byte(0) == value_of_module && file.byte(1) == length_of_64_bits &&
         file.u64_big_endian(2) >> version_bits == identity;
}

}  // namespace

constinit const format_row redisbloom_row = {.name = "redisbloom",
                                             .system = "RedisBloom and Redis 8 (BF.*), the value that DUMP returns",
                                             .schemes = redisbloom::scheme_name,
                                             .order = byte_order::little_endian,
                                             .read = read,
                                             .write = write,
                                             .read_layers = read_layers,
                                             .write_end = write_end,
                                             .has_signature = has_signature};

}  // namespace bloomery::formats
