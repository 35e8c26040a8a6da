// Filter policies: bytes of filters, and lookups in them.
#include "filter_policies.hpp"

#include <bloomery/detail/bits.hpp>
#include <bloomery/hash.hpp>
#include <bloomery/layout.hpp>
#include <bloomery/layouts/split_block512.hpp>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace leveldb_policy {
namespace {

namespace layouts = bloomery::layouts;
constexpr std::size_t line_bytes = layouts::split_block512::block_bits / 8;

bloomery::geometry lines_in(std::size_t bytes) { return {std::uint64_t{bytes} * 8, layouts::split_block512::lanes}; }

bloomery::key_hash hash_of(const leveldb::Slice& key) {
  return bloomery::xxh3{}(std::string_view(key.data(), key.size()));
}

// Conversions between LevelDB's char and bloomery's bytes.
const std::uint8_t* bytes_of(const leveldb::Slice& slice) {
  return reinterpret_cast<const std::uint8_t*>(slice.data());
}

// Appends a zeroed filter to *dst.
std::uint8_t* append_zeros(std::string* dst, std::size_t bytes) {
  const std::size_t before = dst->size();
  dst->resize(before + bytes);
  return reinterpret_cast<std::uint8_t*>(dst->data() + before);
}

}  // namespace

// ---- split_block512_policy ------------------------------------------------------------------------------------------

split_block512_policy::split_block512_policy(int bits_per_key) : bits_per_key_(bits_per_key) {
  assert(bits_per_key >= 1);
}

// Part of the format: another hash or size rule requires another name.
const char* split_block512_policy::Name() const { return "bloomery.line.xxh3"; }

void split_block512_policy::CreateFilter(const leveldb::Slice* keys, int n, std::string* dst) const {
  const std::size_t bits = static_cast<std::size_t>(n) * static_cast<std::size_t>(bits_per_key_);
  const std::size_t lines =
      std::max<std::size_t>(1, (bits + layouts::split_block512::block_bits - 1) / layouts::split_block512::block_bits);
  std::uint8_t* const filter = append_zeros(dst, lines * line_bytes);
  const bloomery::geometry g = lines_in(lines * line_bytes);
  for (int i = 0; i < n; ++i) bloomery::insert_one<layouts::split_block512>(filter, g, hash_of(keys[i]));
}

bool split_block512_policy::KeyMayMatch(const leveldb::Slice& key, const leveldb::Slice& filter) const {
  if (filter.empty() || filter.size() % line_bytes != 0) return true;
  return bloomery::has_one<layouts::split_block512>(bytes_of(filter), lines_in(filter.size()), hash_of(key));
}

// ---- builtin_policy -------------------------------------------------------------------------------------------------

namespace {

constexpr int most_probes = 30;  // larger k are reserved for other encodings

// [leveldb 1.23, util/hash.cc, seed of util/bloom.cc]
std::uint32_t leveldb_hash(const leveldb::Slice& key) {
  constexpr std::uint32_t m = 0xC6A4A793;
  const std::uint8_t* at = bytes_of(key);
  std::size_t left = key.size();
  std::uint32_t h = 0xBC9F1D34 ^ (static_cast<std::uint32_t>(left) * m);
  for (; left >= 4; at += 4, left -= 4) {
    h += at[0] | std::uint32_t{at[1]} << 8 | std::uint32_t{at[2]} << 16 | std::uint32_t{at[3]} << 24;
    h *= m;
    h ^= h >> 16;
  }
  if (left == 0) return h;
  for (std::size_t i = 0; i < left; ++i) h += std::uint32_t{at[i]} << (8 * i);
  h *= m;
  return h ^ (h >> 24);
}

// The bit positions of a key, one per call of next().
class probes {
 public:
  probes(const leveldb::Slice& key, std::uint64_t bits)
      : bits_(bits), h_(leveldb_hash(key)), step_(std::rotr(h_, 17)) {}
  std::uint64_t next() {
    const std::uint64_t bit = h_ % bits_;
    h_ += step_;
    return bit;
  }

 private:
  std::uint64_t bits_;
  std::uint32_t h_;
  std::uint32_t step_;
};

}  // namespace

builtin_policy::builtin_policy(int bits_per_key) : bits_per_key_(bits_per_key) { assert(bits_per_key >= 1); }

const char* builtin_policy::Name() const { return "leveldb.BuiltinBloomFilter2"; }

void builtin_policy::CreateFilter(const leveldb::Slice* keys, int n, std::string* dst) const {
  const int k = std::clamp(static_cast<int>(bits_per_key_ * 0.69), 1, most_probes);
  const std::size_t wanted = static_cast<std::size_t>(n) * static_cast<std::size_t>(bits_per_key_);
  const std::size_t bytes = (std::max<std::size_t>(64, wanted) + 7) / 8;
  std::uint8_t* const filter = append_zeros(dst, bytes + 1);
  filter[bytes] = static_cast<std::uint8_t>(k);
  for (int i = 0; i < n; ++i) {
    probes of_key(keys[i], std::uint64_t{bytes} * 8);
    for (int probe = 0; probe < k; ++probe) bloomery::set_bit(filter, of_key.next());
  }
}

bool builtin_policy::KeyMayMatch(const leveldb::Slice& key, const leveldb::Slice& filter) const {
  if (filter.size() < 2) return false;
  const std::size_t bytes = filter.size() - 1;
  const int k = bytes_of(filter)[bytes];
  if (k > most_probes) return true;
  probes of_key(key, std::uint64_t{bytes} * 8);
  for (int probe = 0; probe < k; ++probe) {
    if (!bloomery::test_bit(bytes_of(filter), of_key.next())) return false;
  }
  return true;
}

}  // namespace leveldb_policy
