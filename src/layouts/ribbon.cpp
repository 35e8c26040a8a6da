// Reading ribbon filters: batch lookups and the check of untrusted bytes. ribbon_build.cpp builds them.
#include <bloomery/detail/ribbon.hpp>

#include <bloomery/error.hpp>

#include "layouts/ribbon_lookup.hpp"
#include "layouts/static_check.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace bloomery {
namespace ribbon {
namespace {

constexpr std::size_t batch = 1024;  // keys hashed together
constexpr std::size_t group =
    kernels::ribbon_group;  // keys whose words are prefetched while those of the previous group are combined
constexpr std::uint64_t line_bytes = 64;

void combine_all(const std::uint8_t* payload, unsigned width, const kernels::ribbon_slots& slots, std::size_t count,
                 std::uint32_t* values) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    const place at{slots.word[i], static_cast<unsigned>(slots.shift[i]), slots.coefficients[i], 0};
    values[i] = combined(payload, at, width);
  }
}

// Lookups in the first layer, which has almost all keys. Keys of partitions without keys are left out.
class group_of_keys {
 public:
  void ask(const std::uint8_t* payload, std::uint64_t partitions, unsigned width,
           std::span<const std::uint64_t> some) noexcept {
    count_ = 0;
    for (std::size_t i = 0; i < some.size(); ++i) {
      const ribbon_partition p = partition_in(payload, multiply_high(some[i], partitions));
      if (p.keys == 0) continue;
      const equation e(mix64(some[i] ^ p.seed), p.blocks[0], width);
      const std::uint64_t word = p.first + e.start / slots_of_block * width;
      const std::uint64_t bucket = e.start / starts_of_bucket;
      slots_.word[count_] = word;
      slots_.shift[count_] = e.start % slots_of_block;
      slots_.coefficients[count_] = e.coefficients;
      keys_[count_] = {.hash64 = some[i],
                       .bucket = bucket,
                       .threshold_word = p.first + std::uint64_t{p.blocks[0]} * width + bucket / 32,
                       .fingerprint = e.fingerprint,
                       .start = static_cast<std::uint32_t>(e.start % starts_of_bucket),
                       .number = static_cast<std::uint32_t>(i),
                       .has_thresholds = p.blocks[1] != 0};
      const std::uint8_t* const begin = payload + 8 * word;
      for (std::uint64_t byte = 0; byte < 16 * width; byte += line_bytes) __builtin_prefetch(begin + byte);
      __builtin_prefetch(begin + 16 * width - 8);
      if (keys_[count_].has_thresholds) __builtin_prefetch(payload + 8 * keys_[count_].threshold_word);
      ++count_;
    }
  }

  // Bit i: the answer for key i.
  std::uint64_t answers(const std::uint8_t* payload, unsigned width, kernels::ribbon_combine combine) const noexcept {
    std::array<std::uint32_t, group> values;
    combine(payload, width, slots_, count_, values.data());
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      const one& key = keys_[i];
      bool answer = values[i] == key.fingerprint;
      if (key.has_thresholds && key.start < threshold(word_of(payload, key.threshold_word), key.bucket)) [[unlikely]]
        answer = has(payload, key.hash64);
      bits |= std::uint64_t{answer} << key.number;
    }
    return bits;
  }

 private:
  struct one {
    std::uint64_t hash64, bucket, threshold_word;
    std::uint32_t fingerprint, start, number;
    bool has_thresholds;
  };

  std::size_t count_ = 0;
  kernels::ribbon_slots slots_;
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
  static const kernels::ribbon_combine combine = kernels::chosen_ribbon_combine();
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
      const std::uint64_t bits = two[at / group % 2].answers(payload, width, combine);
      bitmap[(begin + at) / 64] |= bits << at % 64;
    }
  }
}

}  // namespace ribbon

constexpr kernels::ribbon_combine kernels::ribbon_combine_plain = ribbon::combine_all;

std::string_view ribbon_layout_name(std::uint64_t width) {
  static constexpr auto names = static_names<6>("ribbon");
  check_width(width);
  return names[width - 1].data();
}

void check_ribbon(unsigned width, std::span<const std::uint8_t> payload, const std::string& where) {
  check_ribbon(width, payload, where, 16);
}

void check_ribbon(unsigned width, std::span<const std::uint8_t> payload, const std::string& where,
                  std::uint64_t unchecked) {
  const auto refuse = [&](const std::string& what, const std::string& expected, std::uint64_t found) {
    refuse_static(where, what, expected, found);
  };
  const std::uint64_t partitions = check_head(width, payload, ribbon::partition_bytes, where, unchecked);
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
