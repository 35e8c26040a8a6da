// redisbloom_chunks: the chunks that BF.SCANDUMP returns, one after another.
//
//   0  u64 keys;  8  u32 number of layers;  12  u32 options;  16  u32 growth
//  20  per layer, 53 bytes:  0  u64 bytes of bits;  8  u64 m;  16  u64 keys;  24  f64 target FPR;  32  f64 bits per key
//                           40  u32 k;  44  u64 capacity;  52  u8 log2
//      the bits of all layers
//
// All numbers are little-endian. The first chunk, of iterator 1, has the numbers.
#include "formats/redisbloom.hpp"

#include <algorithm>

namespace bloomery::formats {
namespace {

constexpr std::size_t chain_bytes = 20;
constexpr std::size_t layer_bytes = 53;

template <class T>
T get(std::span<const std::uint8_t> bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// The numbers of all layers. Requires the beginning of the file; refuses a table that does not end in it.
struct table {
  redisbloom::chain all;
  std::vector<redisbloom::layer> layers;
  std::uint64_t bits_at = 0;
};

table read_table(const head& file, std::span<const std::uint8_t> bytes) {
  if (bytes.size() < chain_bytes) file.refuse("the file is truncated", "", std::to_string(bytes.size()) + " bytes");
  table found;
  redisbloom::chain& all = found.all;
  all.keys = get<std::uint64_t>(bytes, 0);
  all.layers = get<std::uint32_t>(bytes, 8);
  all.options = get<std::uint32_t>(bytes, 12);
  all.growth = get<std::uint32_t>(bytes, 16);
  const std::uint64_t most = (bytes.size() - chain_bytes) / layer_bytes;
  if (most == 0) file.refuse("the file is truncated", "", std::to_string(bytes.size()) + " bytes");
  file.check_range("number of layers", all.layers, 1, most);
  std::uint64_t keys = 0;
  found.bits_at = chain_bytes + layer_bytes * all.layers;
  std::uint64_t end = found.bits_at;
  for (std::uint64_t i = 0; i < all.layers; ++i) {
    const auto row = bytes.subspan(chain_bytes + layer_bytes * i, layer_bytes);
    redisbloom::layer& of = found.layers.emplace_back();
    of.bits = get<std::uint64_t>(row, 8);
    of.keys = get<std::uint64_t>(row, 16);
    of.target_fpr = get<double>(row, 24);
    of.bits_per_key = get<double>(row, 32);
    of.probes = get<std::uint32_t>(row, 40);
    of.capacity = get<std::uint64_t>(row, 44);
    of.log2 = row[52];
    redisbloom::params_of(all, of, file);
    const auto bits_bytes = get<std::uint64_t>(row, 0);
    file.check_range("length of the bits", bits_bytes, of.bits / 8, of.bits / 8);
    keys += of.keys;
    end += bits_bytes;
    if (end > file.file_bytes())
      file.refuse("the file is truncated", "at least " + std::to_string(end) + " bytes",
                  std::to_string(file.file_bytes()));
  }
  file.check_length(found.bits_at, (end - found.bits_at) / 8);
  file.check_range("number of keys of all layers", keys, all.keys, all.keys);
  redisbloom::check_chain(all, file);  // last: only what else has this format is refused for its hashes
  return found;
}

contents read(const head& file) {
  const table found = read_table(file, file.bytes());
  contents result;
  result.parameters = redisbloom::params_of(found.all, found.layers.front(), file);
  result.bits_at = found.bits_at;
  result.keys = found.all.keys;
  result.layers = found.all.layers;
  return result;
}

std::vector<stored_layer> read_layers(const head& file, std::span<const std::uint8_t> bytes) {
  const table found = read_table(file, bytes);
  std::vector<stored_layer> layers;
  std::uint64_t at = found.bits_at;
  for (const redisbloom::layer& of : found.layers) {
    layers.push_back({redisbloom::params_of(found.all, of, file), heap_storage(of.bits / 8), of.keys});
    std::copy_n(bytes.data() + at, of.bits / 8, layers.back().words.data());
    at += of.bits / 8;
  }
  return layers;
}

std::vector<std::uint8_t> write(const params& p, const key_counts& counts) {
  const auto [all, first] = redisbloom::describe(p, counts);
  std::vector<std::uint8_t> bytes;
  append(bytes, all.keys);
  for (const std::uint64_t number : {all.layers, all.options, all.growth})
    append(bytes, static_cast<std::uint32_t>(number));
  for (const std::uint64_t number : {first.bits / 8, first.bits, first.keys}) append(bytes, number);
  append(bytes, first.target_fpr);
  append(bytes, first.bits_per_key);
  append(bytes, static_cast<std::uint32_t>(first.probes));
  append(bytes, first.capacity);
  append(bytes, static_cast<std::uint8_t>(first.log2));
  return bytes;
}

}  // namespace

constinit const format_row redisbloom_chunks_row = {.name = "redisbloom_chunks",
                                                    .system = "RedisBloom and Redis 8, the chunks of BF.SCANDUMP",
                                                    .schemes = redisbloom::scheme_name,
                                                    .order = byte_order::little_endian,
                                                    .read = read,
                                                    .write = write,
                                                    .read_layers = read_layers};

}  // namespace bloomery::formats
