// MurmurHash3, implemented from the published algorithm.
//
// The original processes the last, incomplete block byte by byte. Here it is padded with zeros: a zero word mixes to
// zero and leaves the state unchanged, so the result is the same.
#include "hash/murmur3.hpp"

#include <bloomery/hash.hpp>

#include <bit>
#include <cstddef>
#include <cstring>

namespace bloomery {
namespace hashes {
namespace {

template <class Word>
Word load(const char* bytes) noexcept {
  Word word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

std::uint64_t finish(std::uint64_t h) noexcept {
  h ^= h >> 33;
  h *= 0xFF51AFD7ED558CCDu;
  h ^= h >> 33;
  h *= 0xC4CEB9FE1A85EC53u;
  return h ^ (h >> 33);
}

std::uint32_t finish(std::uint32_t h) noexcept {
  h ^= h >> 16;
  h *= 0x85EBCA6Bu;
  h ^= h >> 13;
  h *= 0xC2B2AE35u;
  return h ^ (h >> 16);
}

constexpr std::uint64_t c1 = 0x87C37B91114253D5u;
constexpr std::uint64_t c2 = 0x4CF5AD432745937Fu;

std::uint64_t scrambled_first(const char* word) noexcept { return std::rotl(load<std::uint64_t>(word) * c1, 31) * c2; }
std::uint64_t scrambled_second(const char* word) noexcept { return std::rotl(load<std::uint64_t>(word) * c2, 33) * c1; }
std::uint32_t scrambled(std::uint32_t word) noexcept { return std::rotl(word * 0xCC9E2D51u, 15) * 0x1B873593u; }
std::uint32_t scrambled(const char* word) noexcept { return scrambled(load<std::uint32_t>(word)); }
std::uint32_t mixed(std::uint32_t h, std::uint32_t word) noexcept {
  return std::rotl(h ^ scrambled(word), 13) * 5 + 0xE6546B64u;
}

// The state after the whole words.
std::uint32_t mixed_words(std::string_view words, std::uint32_t seed) noexcept {
  std::uint32_t h = seed;
  for (const char* word = words.data(); word != words.data() + words.size(); word += 4)
    h = mixed(h, load<std::uint32_t>(word));
  return h;
}

}  // namespace

key_hash murmur3_x64_128(std::string_view bytes, std::uint32_t seed) noexcept {
  std::uint64_t h1 = seed;
  std::uint64_t h2 = seed;
  const std::size_t whole = bytes.size() / 16 * 16;
  for (const char* block = bytes.data(); block != bytes.data() + whole; block += 16) {
    h1 = (std::rotl(h1 ^ scrambled_first(block), 27) + h2) * 5 + 0x52DCE729;
    h2 = (std::rotl(h2 ^ scrambled_second(block + 8), 31) + h1) * 5 + 0x38495AB5;
  }
  if (const std::string_view tail = bytes.substr(whole); !tail.empty()) {
    char block[16] = {};
    tail.copy(block, tail.size());
    h1 ^= scrambled_first(block);
    h2 ^= scrambled_second(block + 8);
  }
  h1 ^= bytes.size();
  h2 ^= bytes.size();
  h1 += h2;
  h2 += h1;
  h1 = finish(h1);
  h2 = finish(h2);
  h1 += h2;
  h2 += h1;
  return {h1, h2};
}

std::uint32_t murmur3_x86_32(std::string_view bytes, std::uint32_t seed) noexcept {
  const std::size_t whole = bytes.size() / 4 * 4;
  std::uint32_t h = mixed_words(bytes.substr(0, whole), seed);
  if (const std::string_view tail = bytes.substr(whole); !tail.empty()) {
    char block[4] = {};
    tail.copy(block, tail.size());
    h ^= scrambled(block);
  }
  return finish(h ^ static_cast<std::uint32_t>(bytes.size()));
}

std::uint32_t murmur3_of_spark(std::string_view bytes, std::uint32_t seed) noexcept {
  const std::size_t whole = bytes.size() / 4 * 4;
  std::uint32_t h = mixed_words(bytes.substr(0, whole), seed);
  for (const char byte : bytes.substr(whole)) h = mixed(h, static_cast<std::uint32_t>(static_cast<signed char>(byte)));
  return finish(h ^ static_cast<std::uint32_t>(bytes.size()));
}

}  // namespace hashes

key_hash murmur3::operator()(std::string_view key) const noexcept {
  return hashes::murmur3_x64_128(key, static_cast<std::uint32_t>(seed));
}

key_hash murmur3::operator()(std::uint64_t key) const noexcept {
  return (*this)(std::string_view(reinterpret_cast<const char*>(&key), sizeof key));
}

}  // namespace bloomery
