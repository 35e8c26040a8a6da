// SipHash, implemented from the paper: four words of state, an add-rotate-xor round, the length in the last word.
#include "hash/siphash.hpp"

#include <bloomery/hash.hpp>

#include <bit>
#include <cstring>

namespace bloomery {
namespace hashes {
namespace {

struct state {
  std::uint64_t v0, v1, v2, v3;

  template <int count>
  void rounds() noexcept {
    for (int i = 0; i < count; ++i) {
      v0 += v1;
      v2 += v3;
      v1 = std::rotl(v1, 13) ^ v0;
      v3 = std::rotl(v3, 16) ^ v2;
      v0 = std::rotl(v0, 32);
      v2 += v1;
      v0 += v3;
      v1 = std::rotl(v1, 17) ^ v2;
      v3 = std::rotl(v3, 21) ^ v0;
      v2 = std::rotl(v2, 32);
    }
  }

  template <int c>
  void take(std::uint64_t word) noexcept {
    v3 ^= word;
    rounds<c>();
    v0 ^= word;
  }

  std::uint64_t folded() const noexcept { return v0 ^ v1 ^ v2 ^ v3; }
};

// The constants spell "somepseudorandomlygeneratedbytes". The longer output uses other bits at the start and end.
template <std::size_t output_bytes>
state keyed(const secret_key& key) noexcept {
  state s{key.k0 ^ 0x736F6D6570736575u, key.k1 ^ 0x646F72616E646F6Du, key.k0 ^ 0x6C7967656E657261u,
          key.k1 ^ 0x7465646279746573u};
  if (output_bytes == 16) s.v1 ^= 0xEE;
  return s;
}

template <int d, std::size_t output_bytes>
siphash_result<output_bytes> finished(state s) noexcept {
  s.v2 ^= output_bytes == 16 ? 0xEE : 0xFF;
  s.rounds<d>();
  const std::uint64_t first = s.folded();
  if constexpr (output_bytes == 8) {
    return first;
  } else {
    s.v1 ^= 0xDD;
    s.rounds<d>();
    return {first, s.folded()};
  }
}

// Up to seven bytes as a little-endian word, padded with zeros.
std::uint64_t short_word(const char* bytes, std::size_t count) noexcept {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < count; ++i) word |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  return word;
}

// The bytes to the end of the input, and its length. `before` is the length of what was taken before: whole words.
template <int c>
[[gnu::always_inline]] inline void take_rest(state& s, std::string_view bytes, std::size_t before = 0) noexcept {
  const std::size_t whole = bytes.size() / 8 * 8;
  for (std::size_t at = 0; at < whole; at += 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    s.take<c>(word);
  }
  const std::uint64_t length = before + bytes.size();
  s.take<c>(short_word(bytes.data() + whole, bytes.size() - whole) | length << 56);
}

template <int c, int d, std::size_t output_bytes>
[[gnu::always_inline]] inline siphash_result<output_bytes> hash_of(std::string_view bytes,
                                                                   const secret_key& key) noexcept {
  state s = keyed<output_bytes>(key);
  take_rest<c>(s, bytes);
  return finished<d, output_bytes>(s);
}

// The hash of a number's eight bytes, with the filters' round counts.
[[gnu::always_inline]] inline key_hash hash_of(std::uint64_t number, const secret_key& key) noexcept {
  state s = keyed<16>(key);
  s.take<1>(number);
  s.take<1>(std::uint64_t{8} << 56);
  return finished<3, 16>(s);
}

}  // namespace

template <int c, int d, std::size_t output_bytes>
siphash_result<output_bytes> siphash(std::string_view bytes, const secret_key& key) noexcept {
  return hash_of<c, d, output_bytes>(bytes, key);
}

template siphash_result<16> siphash<1, 3, 16>(std::string_view, const secret_key&) noexcept;
template siphash_result<16> siphash<2, 4, 16>(std::string_view, const secret_key&) noexcept;
template siphash_result<8> siphash<2, 4, 8>(std::string_view, const secret_key&) noexcept;

std::uint64_t siphash_of_rust_slice(std::string_view bytes, const secret_key& key) noexcept {
  state s = keyed<8>(key);
  const std::uint64_t length = bytes.size();
  s.take<1>(length);
  take_rest<1>(s, bytes, sizeof length);
  return finished<3, 8>(s);
}

}  // namespace hashes

key_hash siphash::operator()(std::string_view bytes) const noexcept { return hashes::hash_of<1, 3, 16>(bytes, key); }
key_hash siphash::operator()(std::uint64_t number) const noexcept { return hashes::hash_of(number, key); }

void siphash::each(std::span<const std::string_view> keys, key_hash* out) const noexcept {
  for (const std::string_view bytes : keys) *out++ = hashes::hash_of<1, 3, 16>(bytes, key);
}

void siphash::each(std::span<const std::uint64_t> keys, key_hash* out) const noexcept {
  for (const std::uint64_t number : keys) *out++ = hashes::hash_of(number, key);
}

}  // namespace bloomery
