// redisbloom: the value of a key of RedisBloom or Redis 8, as DUMP returns it and RESTORE takes it.
//
//   type MBbloom--, version 4, see module_value.hpp
//   integer keys;  integer number of layers;  integer options;  integer growth
//   per layer:  integer capacity;  f64 target FPR;  integer k;  f64 bits per key;  integer m;  integer log2;
//               bytes bits;  integer keys
#include "formats/module_value.hpp"
#include "formats/redisbloom.hpp"

namespace bloomery::formats {
namespace {

constexpr module_type type{"MBbloom--", 4};
static_assert(type.identity() == 0x3016E5A289BEF804);

redisbloom::chain read_chain(module_value_reader& in, const head& file) {
  in.begin(type);
  redisbloom::chain all;
  all.keys = in.integer();
  all.layers = in.integer();
  all.options = in.integer();
  all.growth = in.integer();
  redisbloom::check_chain(all, file);
  return all;
}

// All numbers of a layer but the last, which follows the bits.
redisbloom::layer read_layer(module_value_reader& in) {
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
module_value_reader::stored_bytes read_lengths(module_value_reader& in, const redisbloom::layer& of, const head& file) {
  const module_value_reader::stored_bytes lengths = in.lengths();
  file.check_range("length of the bits", lengths.expanded, of.bits / 8, of.bits / 8);
  return lengths;
}

contents read(const head& file) {
  module_value_reader in(file, file.bytes());
  const redisbloom::chain all = read_chain(in, file);
  redisbloom::layer first = read_layer(in);
  first.keys = all.layers == 1 ? all.keys : 0;
  contents found;
  found.parameters = redisbloom::params_of(all, first, file);
  found.layers = all.layers;
  found.keys = all.keys;
  const std::uint64_t stored = read_lengths(in, first, file).stored;
  if (all.layers == 1) {
    const std::uint64_t length = in.at() + stored + 1 + rdb::bytes_of_length(all.keys) + module_value_end;
    file.check_range("length of the file", file.file_bytes(), length, length + 1);  // of redis-cli, a newline
  }
  return found;
}

std::vector<stored_layer> read_layers(const head& file, std::span<const std::uint8_t> bytes) {
  module_value_reader in(file, bytes);
  const redisbloom::chain all = read_chain(in, file);
  std::vector<stored_layer> layers;
  std::uint64_t keys = 0;
  for (std::uint64_t i = 0; i < all.layers; ++i) {
    redisbloom::layer of = read_layer(in);
    const module_value_reader::stored_bytes lengths = read_lengths(in, of, file);
    const std::span<const std::uint8_t> data = in.stored(lengths);
    heap_storage words(lengths.expanded);
    in.expand(lengths, data, {words.data(), static_cast<std::size_t>(lengths.expanded)});
    of.keys = in.integer();
    keys += of.keys;
    layers.push_back({redisbloom::params_of(all, of, file), std::move(words), of.keys});
  }
  file.check_range("number of keys of all layers", keys, all.keys, all.keys);
  in.end();
  return layers;
}

std::vector<std::uint8_t> write(const params& p, const key_counts& counts) {
  const auto [all, first] = redisbloom::describe(p, counts);
  module_value_writer out;
  out.begin(type);
  for (const std::uint64_t number : {all.keys, all.layers, all.options, all.growth, first.capacity})
    out.integer(number);
  out.floating(first.target_fpr);
  out.integer(first.probes);
  out.floating(first.bits_per_key);
  out.integer(first.bits);
  out.integer(first.log2);
  out.begin_bytes(first.bits / 8);
  return out.bytes;
}

std::vector<std::uint8_t> write_end(const params&, const key_counts& counts, std::uint64_t crc) {
  module_value_writer out;
  out.integer(counts.inserted);
  out.end(crc);
  return out.bytes;
}

bool has_signature(const head& file) { return type.has_signature(file); }

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
