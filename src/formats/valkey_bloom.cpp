// valkey_bloom: the value of a key of valkey-bloom, as DUMP returns it and RESTORE takes it.
//
//   type bloomfltr, version 1, see module_value.hpp
//   integer number of layers;  integer growth;  f64 target FPR;  f64 ratio;  integer 1: the seed is random, or 0
//   per layer:  bytes:  u8 1;  u64 number of bytes of bits;  u32 k;  32 bytes seed;  bits
//               integer capacity;  in the last layer, integer keys
//
// Numbers inside of bytes are little-endian. A filter with a growth of 0 cannot grow. The target FPR of layer
// i = 0, 1, ... is that of the filter times ratio^i. All layers but the last are full.
#include "formats/module_value.hpp"

#include <bloomery/scheme.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

namespace bloomery::formats {
namespace {

constexpr module_type type{"bloomfltr", 1};
constexpr std::string_view scheme_name = "valkey_bloom";

constexpr std::uint64_t most_bits = std::uint64_t{1} << 48;  // of the scheme
constexpr std::uint64_t most_keys = std::uint64_t{1} << 62;
constexpr std::uint64_t most_layers = 1100;  // at the default ratio of 1/2, no filter has 1024
constexpr std::uint64_t most_growth = 0xFFFF'FFFF;

// What precedes the bits.
constexpr std::uint8_t version_of_bits = 1;
constexpr std::size_t seed_bytes = 32;
constexpr std::size_t at_length = 1, at_probes = 9, at_seed = 13, at_bits = at_seed + seed_bytes;

struct chain {
  std::uint64_t layers = 1;
  double target_fpr = 0;
  double ratio = 0;
  bool has_random_seed = false;
};

chain read_chain(module_value_reader& in, const head& file) {
  in.begin(type);
  chain all;
  all.layers = in.integer();
  file.check_range("number of layers", all.layers, 1, most_layers);
  file.check_range("growth", in.integer(), 0, most_growth);
  all.target_fpr = in.floating();
  if (!(all.target_fpr > 0 && all.target_fpr < 1))
    file.refuse("target FPR", "between 0 and 1", text_of(all.target_fpr));
  all.ratio = in.floating();
  if (!(all.ratio > 0 && all.ratio <= 1))
    file.refuse("ratio of the target FPRs of the layers", "above 0 and at most 1", text_of(all.ratio));
  const std::uint64_t random = in.integer();
  file.check_range("mark of a random seed", random, 0, 1);
  all.has_random_seed = random == 1;
  return all;
}

// The parts of a file have not been read: the first layer may be compressed.
contents read(const head& file) {
  module_value_reader in(file, file.bytes());
  const chain all = read_chain(in, file);
  contents found;
  found.parameters.scheme = scheme_name;
  found.parameters.target_fpr = all.target_fpr;
  found.layers = all.layers;
  return found;
}

// The bits of a layer, and its parameters except the capacity. The length is compared before memory is allocated.
stored_layer read_bits(module_value_reader& in, const chain& all, const head& file) {
  const module_value_reader::stored_bytes lengths = in.lengths();
  file.check_range("length of a layer", lengths.expanded, at_bits + 1, at_bits + most_bits / 8);
  std::span<const std::uint8_t> bytes = in.stored(lengths);
  std::vector<std::uint8_t> expanded;
  if (lengths.is_compressed) {
    expanded.resize(static_cast<std::size_t>(lengths.expanded));
    in.expand(lengths, bytes, expanded);
    bytes = expanded;
  }
  file.check_range("version of a layer", bytes[0], version_of_bits, version_of_bits);
  std::uint64_t length;
  std::uint32_t probes;
  std::memcpy(&length, bytes.data() + at_length, sizeof length);
  std::memcpy(&probes, bytes.data() + at_probes, sizeof probes);
  file.check_range("length of the bits", length, bytes.size() - at_bits, bytes.size() - at_bits);
  if (probes == 0) file.refuse("number of probes", "1 or more", "0");
  if (probes > max_probes) {
    throw error(errc::incompatible, {"the filter has more probes than bloomery supports", file.path(),
                                     std::to_string(max_probes), std::to_string(probes), hint::none});
  }
  params p;
  p.scheme = scheme_name;
  p.geometry = {8 * length, probes};
  set_salts(p, {std::string(reinterpret_cast<const char*>(bytes.data()) + at_seed, seed_bytes)});
  if (!all.has_random_seed && !p.salts().empty())
    file.refuse("seed of a layer", "the fixed one of valkey-bloom, as the file says", "another one");
  stored_layer layer{std::move(p), heap_storage(length)};
  std::copy_n(bytes.data() + at_bits, length, layer.words.data());
  return layer;
}

std::vector<stored_layer> read_layers(const head& file, std::span<const std::uint8_t> bytes) {
  module_value_reader in(file, bytes);
  const chain all = read_chain(in, file);
  std::vector<stored_layer> layers;
  for (std::uint64_t i = 0; i < all.layers; ++i) {
    layers.push_back(read_bits(in, all, file));
    stored_layer& layer = layers.back();
    layer.keys = layer.parameters.capacity = in.integer();
    file.check_range("capacity", layer.keys, 1, most_keys);
    layer.parameters.target_fpr = all.target_fpr * std::pow(all.ratio, static_cast<double>(i));
  }
  layers.back().keys = in.integer();
  file.check_range("number of keys", layers.back().keys, 0, layers.back().parameters.capacity);
  in.end();
  return layers;
}

std::vector<std::uint8_t> write(const params& p, const key_counts& /*counts*/) {
  require_capacity(p);
  require_target_fpr(p);
  constexpr std::uint64_t default_growth = 2;
  constexpr double default_ratio = 0.5;
  const bool is_fixed = p.salts().empty() && p.seed == 0;
  const std::string seed = p.salts().empty() ? find_scheme(scheme_name)->salt_for(p.seed, 0) : p.salts().front();
  const std::uint64_t length = p.geometry.bits / 8;
  module_value_writer out;
  out.begin(type);
  out.integer(1);
  out.integer(default_growth);
  out.floating(p.target_fpr);
  out.floating(default_ratio);
  out.integer(is_fixed ? 0 : 1);
  out.begin_bytes(at_bits + length);
  append(out.bytes, version_of_bits);
  append(out.bytes, length);
  append(out.bytes, p.geometry.probes);
  out.bytes.insert(out.bytes.end(), seed.begin(), seed.end());
  return out.bytes;
}

std::vector<std::uint8_t> write_end(const params& p, const key_counts& counts, std::uint64_t crc) {
  module_value_writer out;
  out.integer(p.capacity);
  out.integer(std::min(counts.inserted, p.capacity));  // a full filter adds a layer
  out.end(crc);
  return out.bytes;
}

bool has_signature(const head& file) { return type.has_signature(file); }

}  // namespace

constinit const format_row valkey_bloom_row = {.name = "valkey_bloom",
                                               .system = "valkey-bloom (BF.*), the value that DUMP returns",
                                               .schemes = scheme_name,
                                               .order = byte_order::little_endian,
                                               .read = read,
                                               .write = write,
                                               .read_layers = read_layers,
                                               .write_end = write_end,
                                               .has_signature = has_signature};

}  // namespace bloomery::formats
