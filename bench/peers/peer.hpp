// What the benchmark asks of a contestant: a table of functions, so that one compiled for another processor can live in
// a library of its own (peers/load.hpp) and no code of one replaces another's when linking.
//
// contestant_of<Subject, Key>() makes the table from a class. Loops over single keys are instantiated here, beside the
// class, and so are inlined as they are for its users.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace bench {

template <class Key>
struct contestant {
  const char* name;
  unsigned only_bits;         ///< bits a key it is written for; 0: any
  std::uint64_t most_keys;    ///< above it, it is left out; 0: no limit
  std::uint64_t least_bytes;  ///< filters below this size are left out: huge pages change nothing there

  void* (*make)(std::uint64_t keys, unsigned bits_per_key);
  void (*unmake)(void* subject);
  void (*clear)(void* subject);
  std::uint64_t (*bytes)(const void* subject);  ///< of memory, all in all

  // Null where the contestant has no such call.
  void (*prepare)(void* subject, const Key* keys, std::size_t count);  ///< not timed: keys in the form its calls want
  void (*insert)(void* subject, const Key* keys, std::size_t count);   ///< one call a key
  void (*insert_bulk)(void* subject, const Key* keys, std::size_t count);
  void (*build)(void* subject, const Key* keys, std::size_t count, unsigned threads);

  // How many of the keys are there, perhaps.
  std::uint64_t (*count)(const void* subject, const Key* keys, std::size_t count);  ///< one call a key
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

/// What a library of peers shows: one function, BLOOMERY_PEERS, that returns this.
struct peers {
  std::span<const contestant<std::uint64_t>> integers;
  std::span<const contestant<std::string_view>> strings;
};

#define BLOOMERY_PEERS extern "C" [[gnu::visibility("default")]] void bloomery_bench_peers(bench::peers* list)

}  // namespace bench
