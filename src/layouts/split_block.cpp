#include <bloomery/layouts/split_block.hpp>

#include <bloomery/error.hpp>

#include "rates.hpp"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <string>

namespace bloomery {
namespace {

// (1 - (31/32)^i)^8: all eight words of a block that took i keys have the asked bit.
long double block_hit(long double i) {
  const long double lane_hit = -std::expm1(i * std::log1p(-1.0L / split_block::lane_bits));
  return std::pow(lane_hit, static_cast<long double>(split_block::lanes));
}

double rate(std::uint64_t blocks, std::uint64_t keys) {
  const long double twins = static_cast<long double>(blocks) * 0x1p32L;
  return static_cast<double>(rates::either(rates::blocked(keys, blocks, block_hit), rates::collision(twins, keys)));
}

// Keys whose blocks are on their way from memory while one is worked on.
constexpr std::size_t in_flight = 32;

std::uint8_t* block_at(std::uint8_t* bytes, std::uint64_t blocks, std::uint64_t lo) {
  return bytes + split_block::block_of(lo, blocks) * (split_block::block_bits / 8);
}

const std::uint8_t* block_at(const std::uint8_t* bytes, std::uint64_t blocks, std::uint64_t lo) {
  return bytes + split_block::block_of(lo, blocks) * (split_block::block_bits / 8);
}

// Word j of a block is four little-endian bytes.
std::uint32_t load_word(const std::uint8_t* at) {
  std::uint32_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

void store_word(std::uint8_t* at, std::uint32_t word) { std::memcpy(at, &word, sizeof word); }

static_assert(std::endian::native == std::endian::little, "the kernels load little-endian words as they are");

std::uint32_t mask_of(std::uint64_t lo, std::uint32_t lane) {
  return 1u << ((static_cast<std::uint32_t>(lo) * split_block::salt[lane]) >> 27);
}

bool insert_one(std::uint8_t* block, std::uint64_t lo) {
  std::uint32_t missing = 0;
  for (std::uint32_t lane = 0; lane < split_block::lanes; ++lane) {
    const std::uint32_t mask = mask_of(lo, lane);
    const std::uint32_t word = load_word(block + 4 * lane);
    missing |= mask & ~word;
    store_word(block + 4 * lane, word | mask);
  }
  return missing != 0;
}

bool has_one(const std::uint8_t* block, std::uint64_t lo) {
  std::uint32_t missing = 0;
  for (std::uint32_t lane = 0; lane < split_block::lanes; ++lane) {
    missing |= mask_of(lo, lane) & ~load_word(block + 4 * lane);
  }
  return missing == 0;
}

}  // namespace

geometry split_block::geometry_for(std::uint64_t capacity, double false_positive_rate) {
  rates::check_promise(capacity, false_positive_rate);
  const double p = false_positive_rate;
  const double parquet_bits = -8 * static_cast<double>(capacity) / std::log1p(-std::pow(p, 1.0 / 8));
  const double guess = std::fmin(parquet_bits / block_bits + 1, static_cast<double>(max_blocks));
  const std::uint64_t blocks = rates::smallest(static_cast<std::uint64_t>(guess), max_blocks,
                                               [&](std::uint64_t b) { return rate(b, capacity) <= p; });
  if (blocks > max_blocks) {
    throw error(errc::too_large, {"a split_block filter cannot keep this promise", "layout",
                                  "at most 2^32 blocks of 256 bits", std::to_string(capacity) + " keys at " +
                                  std::to_string(p), "use the classic layout"});
  }
  return {blocks * block_bits, lanes};
}

void split_block::check(const geometry& g) {
  if (g.bits == 0 || g.bits % block_bits != 0) {
    throw error(errc::invalid_argument, {"bits of a split_block filter", "geometry", "a multiple of 256, not 0",
                                         std::to_string(g.bits), ""});
  }
  if (g.bits / block_bits > max_blocks) {
    throw error(errc::too_large, {"bits of a split_block filter", "geometry", "at most 2^40", std::to_string(g.bits),
                                  "use the classic layout"});
  }
  if (g.probes != lanes) {
    throw error(errc::invalid_argument, {"probes of a split_block filter", "geometry", "8", std::to_string(g.probes),
                                         ""});
  }
}

double split_block::false_positive_rate(const geometry& g, std::uint64_t keys) {
  return rate(g.bits / block_bits, keys);
}

double split_block::keys_from_zeros(const geometry& g, std::uint64_t zeros) {
  if (zeros == 0) return std::numeric_limits<double>::infinity();
  const auto m = static_cast<long double>(g.bits);
  return static_cast<double>(std::log(static_cast<long double>(zeros) / m) / std::log1p(-static_cast<long double>(lanes) / m));
}

void split_block::insert_batch(std::uint8_t* bytes, const geometry& g, std::span<const key_hash> hashes,
                               std::uint8_t* is_new) noexcept {
  const std::uint64_t blocks = g.bits / block_bits;
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    if (i + in_flight < hashes.size()) __builtin_prefetch(block_at(bytes, blocks, hashes[i + in_flight].lo), 1, 2);
    const bool fresh = insert_one(block_at(bytes, blocks, hashes[i].lo), hashes[i].lo);
    if (is_new != nullptr) is_new[i] = fresh ? 1 : 0;
  }
}

void split_block::has_batch(const std::uint8_t* bytes, const geometry& g, std::span<const key_hash> hashes,
                            std::uint64_t* bitmap) noexcept {
  const std::uint64_t blocks = g.bits / block_bits;
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    if (i + in_flight < hashes.size()) __builtin_prefetch(block_at(bytes, blocks, hashes[i + in_flight].lo), 0, 2);
    if (i % 64 == 0) bitmap[i / 64] = 0;
    bitmap[i / 64] |= std::uint64_t{has_one(block_at(bytes, blocks, hashes[i].lo), hashes[i].lo)} << (i % 64);
  }
}

}  // namespace bloomery
