// Reading ribbon filters: batch lookups and the check of untrusted bytes. ribbon_build.cpp builds them.
#include <bloomery/detail/ribbon.hpp>

#include <bloomery/error.hpp>

#include "layouts/static_check.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace bloomery {
namespace ribbon {
namespace {

constexpr std::size_t batch = 1024;  // keys hashed together
constexpr std::size_t group = 32;    // keys whose words are prefetched while those of the previous group are combined
constexpr std::uint64_t line_bytes = 64;

// Lookups in the first layer, which has almost all keys.
class group_of_keys {
 public:
  void ask(const std::uint8_t* payload, std::uint64_t partitions, unsigned width,
           std::span<const std::uint64_t> some) noexcept {
    for (std::size_t i = 0; i < some.size(); ++i) {
      one& key = keys_[i];
      key.hash64 = some[i];
      const ribbon_partition p = partition_in(payload, multiply_high(key.hash64, partitions));
      key.is_anywhere = p.keys != 0;
      if (!key.is_anywhere) continue;
      const equation e(mix64(key.hash64 ^ p.seed), p.blocks[0], width);
      key.at = {p.first + e.start / slots_of_block * width, static_cast<unsigned>(e.start % slots_of_block),
                e.coefficients, e.fingerprint};
      key.has_thresholds = p.blocks[1] != 0;
      key.bucket = e.start / starts_of_bucket;
      key.start = static_cast<std::uint32_t>(e.start % starts_of_bucket);
      key.threshold_word = p.first + std::uint64_t{p.blocks[0]} * width + key.bucket / 32;
      const std::uint8_t* const begin = payload + 8 * key.at.word;
      for (std::uint64_t byte = 0; byte < 16 * width; byte += line_bytes) __builtin_prefetch(begin + byte);
      __builtin_prefetch(begin + 16 * width - 8);
      if (key.has_thresholds) __builtin_prefetch(payload + 8 * key.threshold_word);
    }
  }

  std::uint64_t answers(const std::uint8_t* payload, unsigned width, std::size_t count) const noexcept {
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < count; ++i) bits |= std::uint64_t{answer(payload, width, keys_[i])} << i;
    return bits;
  }

 private:
  struct one {
    std::uint64_t hash64, bucket, threshold_word;
    place at;
    std::uint32_t start;
    bool is_anywhere, has_thresholds;
  };

  static bool answer(const std::uint8_t* payload, unsigned width, const one& key) noexcept {
    if (!key.is_anywhere) return false;
    if (key.has_thresholds && key.start < threshold(word_of(payload, key.threshold_word), key.bucket)) [[unlikely]]
      return has(payload, key.hash64);
    return combined(payload, key.at, width) == key.at.fingerprint;
  }

  std::array<one, group> keys_;
};

}  // namespace

bool has(const std::uint8_t* payload, std::uint64_t hash64) noexcept {
  const ribbon_partition p = partition_in(payload, multiply_high(hash64, sealed::partitions_in(payload)));
  if (p.keys == 0) return false;
  const unsigned width = sealed::width_in(payload);
  const place at = place_of(p, payload, hash64, width, [](std::uint64_t) {});
  for (unsigned i = 0; i < width; ++i) {
    const auto bit = static_cast<std::uint32_t>(__builtin_parityll(column(payload, at, i, width) & at.coefficients));
    if (bit != (at.fingerprint >> i & 1)) return false;
  }
  return true;
}

void has_batch(const std::uint8_t* payload, const hash_span& keys, std::uint64_t* bitmap) noexcept {
  const std::uint64_t partitions = sealed::partitions_in(payload);
  const unsigned width = sealed::width_in(payload);
  alignas(64) std::array<std::uint64_t, batch> hash64s;
  std::array<group_of_keys, 2> two;
  for (std::size_t begin = 0; begin < keys.size(); begin += batch) {
    const std::size_t count = std::min(batch, keys.size() - begin);
    hash64s_of(keys.part(begin, count), hash64s.data());
    const auto part = [&](std::size_t at) {
      return std::span<const std::uint64_t>(hash64s).subspan(at, std::min(group, count - at));
    };
    std::fill_n(bitmap + begin / 64, (count + 63) / 64, std::uint64_t{0});
    two[0].ask(payload, partitions, width, part(0));
    for (std::size_t at = 0; at < count; at += group) {
      if (at + group < count) two[(at / group + 1) % 2].ask(payload, partitions, width, part(at + group));
      const std::uint64_t bits = two[at / group % 2].answers(payload, width, part(at).size());
      bitmap[(begin + at) / 64] |= bits << at % 64;
    }
  }
}

}  // namespace ribbon

std::string_view ribbon_layout_name(std::uint64_t width) {
  static constexpr auto names = static_names<6>("ribbon");
  check_width(width);
  return names[width - 1].data();
}

void check_ribbon(unsigned width, std::span<const std::uint8_t> payload, const std::string& where) {
  const auto refuse = [&](const std::string& what, const std::string& expected, std::uint64_t found) {
    refuse_static(where, what, expected, found);
  };
  const std::uint64_t partitions = check_head(width, payload, ribbon::partition_bytes, where);
  std::uint64_t next = ribbon::first_word(partitions);
  std::uint64_t keys = 0;
  for (std::uint64_t number = 0; number < partitions; ++number) {
    const ribbon_partition p = ribbon::partition_in(payload.data(), number);
    const std::string here = " of partition " + std::to_string(number);
    if (p.first != next) refuse("first word" + here, std::to_string(next), p.first);
    if (p.reserved != 0) refuse("reserved bytes" + here, "zeros", p.reserved);
    const std::size_t layers = ribbon::layers_of(p);
    for (std::size_t i = layers; i < p.blocks.size(); ++i) {
      if (p.blocks[i] != 0) refuse("blocks" + here, "none after a layer without blocks", p.blocks[i]);
    }
    if ((p.keys == 0) != (layers == 0)) refuse("layers" + here, p.keys == 0 ? "none without keys" : "1 to 8", layers);
    std::uint64_t slots = 0;
    for (std::size_t i = 0; i < layers; ++i) {
      if (p.blocks[i] < 2) refuse("blocks" + here, "2 or more", p.blocks[i]);
      slots += std::uint64_t{ribbon::slots_of_block} * p.blocks[i];
    }
    if (p.keys > slots) refuse("keys" + here, "at most " + std::to_string(slots), p.keys);
    const std::uint64_t words = ribbon::words_of(p, width);
    if (words > payload.size() / 8 - next) {
      refuse("words" + here, "at most " + std::to_string(payload.size() / 8 - next), words);
    }
    next += words;
    keys += p.keys;
  }
  if (ribbon::payload_bytes(next) != payload.size()) {
    refuse("its size", std::to_string(ribbon::payload_bytes(next)) + " bytes", payload.size());
  }
  check_keys(payload, keys, where);
}

}  // namespace bloomery
