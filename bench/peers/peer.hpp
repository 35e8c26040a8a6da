// The interface of a contestant: a table of functions. A contestant compiled for another processor is in its own shared
// library (peers/load.hpp), so the linker cannot merge its code with that of another.
//
// contestant_of<Subject, Key>() makes the table from a class. The loops over single keys are instantiated with the
// class and inline its calls, as application code does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace bench {

template <class Key>
struct contestant {
  const char* name;
  unsigned only_bits;         ///< the only supported bits per key; 0: any
  std::uint64_t most_keys;    ///< skipped above this number of keys; 0: no limit
  std::uint64_t least_bytes;  ///< skipped below this filter size, where huge pages change nothing

  void* (*make)(std::uint64_t keys, unsigned bits_per_key);
  void (*unmake)(void* subject);
  void (*clear)(void* subject);
  std::uint64_t (*bytes)(const void* subject);  ///< total memory

  // Null if the contestant does not support the operation.
  void (*prepare)(void* subject, const Key* keys,
                  std::size_t count);  ///< untimed: converts the keys to the contestant's type
  void (*insert)(void* subject, const Key* keys, std::size_t count);  ///< one call per key
  void (*insert_bulk)(void* subject, const Key* keys, std::size_t count);
  void (*build)(void* subject, const Key* keys, std::size_t count, unsigned threads);

  // The number of keys that may be present.
  std::uint64_t (*count)(const void* subject, const Key* keys, std::size_t count);  ///< one call per key
  std::uint64_t (*count_bulk)(const void* subject, const Key* keys, std::size_t count);
};

/// A class with a constructor (keys, bits_per_key), clear(), bytes(), has(key), and any of insert(key),
/// insert_bulk(keys), build(keys, threads), count_bulk(keys), prepare(keys).
template <class Subject, class Key>
contestant<Key> contestant_of(const char* name) {
  using keys = std::span<const Key>;
  contestant<Key> c{};
  c.name = name;
  c.make = [](std::uint64_t n, unsigned bits) -> void* { return new Subject(n, bits); };
  c.unmake = [](void* s) { delete static_cast<Subject*>(s); };
  c.clear = [](void* s) { static_cast<Subject*>(s)->clear(); };
  c.bytes = [](const void* s) -> std::uint64_t { return static_cast<const Subject*>(s)->bytes(); };
  c.count = [](const void* s, const Key* first, std::size_t count) {
    const auto& subject = *static_cast<const Subject*>(s);
    std::uint64_t hits = 0;
    for (std::size_t i = 0; i < count; ++i) hits += subject.has(first[i]) ? 1 : 0;
    return hits;
  };
  if constexpr (requires(Subject s, keys k) { s.prepare(k); }) {
    c.prepare = [](void* s, const Key* first, std::size_t count) {
      static_cast<Subject*>(s)->prepare(keys(first, count));
    };
  }
  if constexpr (requires(Subject s, Key k) { s.insert(k); }) {
    c.insert = [](void* s, const Key* first, std::size_t count) {
      auto& subject = *static_cast<Subject*>(s);
      for (std::size_t i = 0; i < count; ++i) subject.insert(first[i]);
    };
  }
  if constexpr (requires(Subject s, keys k) { s.insert_bulk(k); }) {
    c.insert_bulk = [](void* s, const Key* first, std::size_t count) {
      static_cast<Subject*>(s)->insert_bulk(keys(first, count));
    };
  }
  if constexpr (requires(Subject s, keys k) { s.build(k, 1u); }) {
    c.build = [](void* s, const Key* first, std::size_t count, unsigned threads) {
      static_cast<Subject*>(s)->build(keys(first, count), threads);
    };
  }
  if constexpr (requires(const Subject s, keys k) { s.count_bulk(k); }) {
    c.count_bulk = [](const void* s, const Key* first, std::size_t count) {
      return static_cast<const Subject*>(s)->count_bulk(keys(first, count));
    };
  }
  return c;
}

inline constexpr unsigned bits_of_fuse = 12;                    ///< the settings in which fuse filters take part
inline constexpr std::uint64_t most_keys_of_fuse = 10'000'000;  ///< builds of more take long

/// The contestants of a peer library, filled in by its only exported function, BLOOMERY_PEERS.
struct peers {
  std::span<const contestant<std::uint64_t>> integers;
  std::span<const contestant<std::string_view>> strings;
};

#define BLOOMERY_PEERS extern "C" [[gnu::visibility("default")]] void bloomery_bench_peers(bench::peers* list)

}  // namespace bench
