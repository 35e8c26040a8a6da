// RocksDB's default Bloom filter (format_version 5 and later) as a contestant. Its class is FastLocalBloomImpl, with k
// probes within one cache line. It is internal to RocksDB, but needs headers only. Compiled twice: with default flags
// (BLOOMERY_PEER_BUILD "portable") and for the processor of this machine ("native"), where its lookups use AVX2.
//
// As in RocksDB, a key is hashed by a preview version of XXH3, one half of the hash selects the cache line and the
// other half the bits, and a batch prefetches its cache lines before it reads them. RocksDB's hash is a call; here it
// is inlined. An integer is hashed as its 8 bytes.
#define ROCKSDB_PLATFORM_POSIX

#include "peer.hpp"

#include <util/bloom_impl.h>
#include <util/xxph3.h>

#include <algorithm>
#include <array>
#include <memory>
#include <new>

namespace {

using bloom = ROCKSDB_NAMESPACE::FastLocalBloomImpl;

constexpr std::size_t line = 64;                  // bytes of a block
constexpr std::size_t keys_per_batch = 32;        // as RocksDB's MultiGet
constexpr std::uint64_t most_bytes = 0xFFFFFFC0;  // its sizes have 32 bits

std::uint64_t hash_of(const std::uint64_t& key) { return XXPH3_64bits(&key, sizeof key); }
std::uint64_t hash_of(const std::string_view& key) { return XXPH3_64bits(key.data(), key.size()); }

struct free_lines {
  void operator()(char* memory) const { ::operator delete[](memory, std::align_val_t{line}); }
};

template <class Key>
class subject {
 public:
  subject(std::uint64_t n, unsigned bits_per_key)
      : bytes_(static_cast<std::uint32_t>(std::min((n * bits_per_key / 8 + line - 1) / line * line, most_bytes))),
        probes_(bloom::ChooseNumProbes(static_cast<int>(bits_per_key * 1000))),
        memory_(static_cast<char*>(::operator new[](bytes_, std::align_val_t{line}))) {
    clear();
  }

  void clear() { std::fill_n(memory_.get(), bytes_, char{0}); }
  std::uint64_t bytes() const { return bytes_; }

  void insert(const Key& key) {
    const std::uint64_t hash = hash_of(key);
    bloom::AddHash(low(hash), high(hash), bytes_, probes_, memory_.get());
  }
  void insert_bulk(std::span<const Key> keys) {
    each_batch(keys, [this](std::uint32_t rest, std::uint32_t offset) {
      bloom::AddHashPrepared(rest, probes_, memory_.get() + offset);
    });
  }

  bool has(const Key& key) const {
    const std::uint64_t hash = hash_of(key);
    return bloom::HashMayMatch(low(hash), high(hash), bytes_, probes_, memory_.get());
  }
  std::uint64_t count_bulk(std::span<const Key> keys) const {
    std::uint64_t hits = 0;
    each_batch(keys, [&, this](std::uint32_t rest, std::uint32_t offset) {
      hits += bloom::HashMayMatchPrepared(rest, probes_, memory_.get() + offset) ? 1 : 0;
    });
    return hits;
  }

 private:
  static std::uint32_t low(std::uint64_t hash) { return static_cast<std::uint32_t>(hash); }
  static std::uint32_t high(std::uint64_t hash) { return static_cast<std::uint32_t>(hash >> 32); }

  /// Calls work(hash, offset) for each key: the half of the hash that selects bits, and the byte offset of the key's
  /// block.
  template <class Work>
  void each_batch(std::span<const Key> keys, Work work) const {
    std::array<std::uint32_t, keys_per_batch> rests;
    std::array<std::uint32_t, keys_per_batch> offsets;
    while (!keys.empty()) {
      const std::size_t count = std::min(keys.size(), keys_per_batch);
      for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t hash = hash_of(keys[i]);
        bloom::PrepareHash(low(hash), bytes_, memory_.get(), &offsets[i]);
        rests[i] = high(hash);
      }
      for (std::size_t i = 0; i < count; ++i) work(rests[i], offsets[i]);
      keys = keys.subspan(count);
    }
  }

  std::uint32_t bytes_;
  int probes_;
  std::unique_ptr<char[], free_lines> memory_;
};

}  // namespace

BLOOMERY_PEERS {
  using namespace bench;
  static auto integers = contestant_of<subject<std::uint64_t>, std::uint64_t>("rocksdb " BLOOMERY_PEER_BUILD);
  static auto strings = contestant_of<subject<std::string_view>, std::string_view>("rocksdb " BLOOMERY_PEER_BUILD);
  *list = {{&integers, 1}, {&strings, 1}};
}
