// All kernel operations in plain C++. kernels/scalar.cpp uses all of them, and the other sets use them for operations
// without a vector implementation. Included, like batch.inc.hpp, within the unnamed namespace of a set.

#include "layouts/arithmetic.inc.hpp"

constexpr std::size_t group = 64;     // keys processed together
constexpr std::size_t in_flight = 2;  // groups whose blocks are being prefetched

struct staged {
  alignas(64) std::uint64_t choices[group];
  alignas(64) std::uint64_t offsets[group];
};

template <class Word>
BLOOMERY_TARGET inline Word load(const std::uint8_t* at) {
  Word word;
  __builtin_memcpy(&word, at, sizeof word);
  return word;
}

template <class Word>
BLOOMERY_TARGET inline void store(std::uint8_t* at, Word word) {
  __builtin_memcpy(at, &word, sizeof word);
}

struct plain_split_block {
  static constexpr std::uint64_t block_bytes = 32;

  BLOOMERY_TARGET static std::uint64_t offset(std::uint64_t hash64, std::uint64_t blocks) {
    return (((hash64 >> 32) * blocks) >> 32) * block_bytes;
  }

  BLOOMERY_TARGET static std::uint64_t choice(std::uint64_t hash64) { return hash64; }

  BLOOMERY_TARGET static std::uint32_t bit(std::uint64_t choice, std::size_t word) {
    return static_cast<std::uint32_t>(choice) * split_block_salt[word] >> 27;
  }

  BLOOMERY_TARGET static bool one_insert(std::uint8_t* block, std::uint64_t choice, std::uint32_t) {
    std::uint32_t missing = 0;
    for (std::size_t word = 0; word < 8; ++word) {
      const std::uint32_t old = load<std::uint32_t>(block + 4 * word);
      const std::uint32_t mask = 1u << bit(choice, word);
      missing |= mask & ~old;
      store(block + 4 * word, old | mask);
    }
    return missing != 0;
  }

  BLOOMERY_TARGET static bool one_has(const std::uint8_t* block, std::uint64_t choice, std::uint32_t) {
    std::uint32_t all = 1;
    for (std::size_t word = 0; word < 8; ++word) all &= load<std::uint32_t>(block + 4 * word) >> bit(choice, word);
    return (all & 1) != 0;
  }
};

struct plain_split_block512 {
  static constexpr std::uint64_t block_bytes = 64;

  BLOOMERY_TARGET static std::uint64_t offset(std::uint64_t hash64, std::uint64_t blocks) {
    return high_product(hash64, blocks) * block_bytes;
  }

  BLOOMERY_TARGET static std::uint64_t choice(std::uint64_t hash64) { return hash64 * golden_multiplier; }

  BLOOMERY_TARGET static std::uint64_t bit(std::uint64_t choice, std::size_t word) {
    return choice >> (16 + 6 * word) & 63;
  }

  BLOOMERY_TARGET static bool one_insert(std::uint8_t* block, std::uint64_t choice, std::uint32_t) {
    std::uint64_t missing = 0;
    for (std::size_t word = 0; word < 8; ++word) {
      const std::uint64_t old = load<std::uint64_t>(block + 8 * word);
      const std::uint64_t mask = std::uint64_t{1} << bit(choice, word);
      missing |= mask & ~old;
      store(block + 8 * word, old | mask);
    }
    return missing != 0;
  }

  BLOOMERY_TARGET static bool one_has(const std::uint8_t* block, std::uint64_t choice, std::uint32_t) {
    std::uint64_t all = 1;
    for (std::size_t word = 0; word < 8; ++word) all &= load<std::uint64_t>(block + 8 * word) >> bit(choice, word);
    return (all & 1) != 0;
  }
};

struct plain_blocked {
  static constexpr std::uint64_t block_bytes = 64;

  BLOOMERY_TARGET static std::uint64_t offset(std::uint64_t hash64, std::uint64_t blocks) {
    return high_product(hash64, blocks) * block_bytes;
  }

  BLOOMERY_TARGET static std::uint64_t choice(std::uint64_t hash64) { return (2 * hash64 + 1) * golden_multiplier; }

  BLOOMERY_TARGET static bool one_insert(std::uint8_t* block, std::uint64_t x, std::uint32_t probes) {
    std::uint64_t missing = 0;
    for (std::uint32_t probe = 0; probe < probes; ++probe, x *= blocked_step) {
      std::uint8_t* const word = block + (x >> 61) * 8;
      const std::uint64_t old = load<std::uint64_t>(word);
      const std::uint64_t mask = std::uint64_t{1} << (x >> 55 & 63);
      missing |= mask & ~old;
      store(word, old | mask);
    }
    return missing != 0;
  }

  BLOOMERY_TARGET static bool one_has(const std::uint8_t* block, std::uint64_t x, std::uint32_t probes) {
    std::uint64_t all = 1;
    for (std::uint32_t probe = 0; probe < probes; ++probe, x *= blocked_step) {
      all &= load<std::uint64_t>(block + (x >> 61) * 8) >> (x >> 55 & 63);
    }
    return (all & 1) != 0;
  }
};

// For uses that need only block addresses: choice is hash64, and there are no bits.
template <class Layout>
struct addresses : Layout {
  BLOOMERY_TARGET static std::uint64_t choice(std::uint64_t hash64) { return hash64; }
};

template <class Layout, form Form>
BLOOMERY_TARGET inline void plain_stage(const std::uint64_t* words, std::size_t count, std::uint64_t whitening,
                                        std::uint64_t blocks, std::uint64_t* choices, std::uint64_t* offsets) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t word = words[Form == form::hashes ? 2 * i : i];
    const std::uint64_t hash64 = Form == form::mixed ? mix64(word ^ whitening) : word;
    choices[i] = Layout::choice(hash64);
    offsets[i] = Layout::offset(hash64, blocks);
  }
}

// Always inline: GCC considers a function that only prefetches to have no effect, and drops calls to it.
template <fetch Fetch>
BLOOMERY_TARGET [[gnu::always_inline]] inline void ask_for(const std::uint8_t* block) {
  if constexpr (Fetch == fetch::first_level) __builtin_prefetch(block, 0, 3);
  if constexpr (Fetch == fetch::second_level) __builtin_prefetch(block, 0, 2);
}

template <class Layout, fetch Fetch>
BLOOMERY_TARGET inline std::uint64_t plain_group_has(const std::uint8_t* bytes, const staged& g, const staged& ahead,
                                                     std::size_t count, std::uint32_t probes) {
  std::uint64_t answers = 0;
  for (std::size_t i = 0; i < count; ++i) {
    ask_for<Fetch>(bytes + ahead.offsets[i]);
    answers |= std::uint64_t{Layout::one_has(bytes + g.offsets[i], g.choices[i], probes)} << i;
  }
  return answers;
}

template <class Layout, fetch Fetch>
BLOOMERY_TARGET inline std::uint64_t plain_group_insert(std::uint8_t* bytes, const staged& g, const staged& ahead,
                                                        std::size_t count, std::uint32_t probes) {
  std::uint64_t fresh = 0;
  for (std::size_t i = 0; i < count; ++i) {
    ask_for<Fetch>(bytes + ahead.offsets[i]);
    fresh |= std::uint64_t{Layout::one_insert(bytes + g.offsets[i], g.choices[i], probes)} << i;
  }
  return fresh;
}

// Default operations; the `ops` of a set derives from this and names its layouts.
struct plain_ops {
  template <class Layout, form Form>
  BLOOMERY_TARGET static void stage(const std::uint64_t* words, std::size_t count, std::uint64_t whitening,
                                    std::uint64_t blocks, std::uint64_t* choices, std::uint64_t* offsets) {
    plain_stage<Layout, Form>(words, count, whitening, blocks, choices, offsets);
  }

  template <class Layout, fetch Fetch>
  BLOOMERY_TARGET static std::uint64_t group_has(const std::uint8_t* bytes, const staged& g, const staged& ahead,
                                                 std::size_t count, std::uint32_t probes) {
    return plain_group_has<Layout, Fetch>(bytes, g, ahead, count, probes);
  }

  template <class Layout, fetch Fetch>
  BLOOMERY_TARGET static std::uint64_t group_insert(std::uint8_t* bytes, const staged& g, const staged& ahead,
                                                    std::size_t count, std::uint32_t probes) {
    return plain_group_insert<Layout, Fetch>(bytes, g, ahead, count, probes);
  }

  // Without a branch on the hash, which would be mispredicted for every other key.
  BLOOMERY_TARGET static std::size_t split(const std::uint64_t* hash64s, std::size_t count, std::uint64_t last_lower,
                                           std::uint64_t* lower, std::uint64_t* upper) {
    std::size_t in_lower = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t hash64 = hash64s[i];
      lower[in_lower] = hash64;
      upper[i - in_lower] = hash64;
      in_lower += static_cast<std::size_t>(hash64 <= last_lower);
    }
    return in_lower;
  }

  BLOOMERY_TARGET static void stream(std::uint64_t* to, const std::uint64_t* buffer) {
    __builtin_memcpy(to, buffer, scatter_buffer * sizeof *to);
  }
  static void fence() {}
};

// Bit counting in plain C++; the `fill_ops` of the sets replace parts of it.
struct plain_fill {
  BLOOMERY_TARGET static std::uint64_t ones_of(std::uint64_t word) {
    return static_cast<std::uint64_t>(__builtin_popcountll(word));
  }

  BLOOMERY_TARGET static std::uint64_t ones(const std::uint8_t* bytes, std::size_t count) {
    std::uint64_t sum = 0;
    std::size_t i = 0;
    for (; i + 8 <= count; i += 8) sum += ones_of(load<std::uint64_t>(bytes + i));
    for (; i < count; ++i) sum += ones_of(bytes[i]);
    return sum;
  }

  BLOOMERY_TARGET static std::uint64_t common_ones(const std::uint8_t* a, const std::uint8_t* b, std::size_t count) {
    std::uint64_t sum = 0;
    std::size_t i = 0;
    for (; i + 8 <= count; i += 8) sum += ones_of(load<std::uint64_t>(a + i) & load<std::uint64_t>(b + i));
    for (; i < count; ++i) sum += ones_of(static_cast<std::uint64_t>(a[i] & b[i]));
    return sum;
  }

  // For layouts with one bit of each key in each of eight words.
  template <class Word>
  BLOOMERY_TARGET static std::uint64_t products(const std::uint8_t* bytes, std::size_t count, std::uint64_t* out) {
    std::uint64_t sum = 0;
    for (std::size_t block = 0; block < count; ++block) {
      std::uint64_t product = 1;
      for (std::size_t word = 0; word < 8; ++word) {
        const std::uint64_t here = ones_of(load<Word>(bytes + (8 * block + word) * sizeof(Word)));
        sum += here;
        product *= here;
      }
      out[block] = product;
    }
    return sum;
  }

  BLOOMERY_TARGET static std::uint64_t split_block(const std::uint8_t* bytes, std::size_t count, std::uint64_t* out) {
    return products<std::uint32_t>(bytes, count, out);
  }

  BLOOMERY_TARGET static std::uint64_t split_block512(const std::uint8_t* bytes, std::size_t count,
                                                      std::uint64_t* out) {
    return products<std::uint64_t>(bytes, count, out);
  }

  BLOOMERY_TARGET static std::uint64_t blocked(const std::uint8_t* bytes, std::size_t count, std::uint64_t* out) {
    std::uint64_t sum = 0;
    for (std::size_t block = 0; block < count; ++block) {
      out[block] = plain_fill::ones(bytes + 64 * block, 64);
      sum += out[block];
    }
    return sum;
  }
};
