// Split-block kernels in plain C++: the definition that the others are tested against, and what runs where they do not.
#include "kernels/split_block.hpp"

#include <cstring>

namespace bloomery::kernels {
namespace {

bool always() { return true; }

std::uint32_t load(const std::uint8_t* at) {
  std::uint32_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

void store(std::uint8_t* at, std::uint32_t word) { std::memcpy(at, &word, sizeof word); }

std::uint32_t mask_of(std::uint64_t lo, std::size_t lane) {
  return 1u << ((static_cast<std::uint32_t>(lo) * split_block_salt[lane]) >> 27);
}

bool insert_one(std::uint8_t* block, std::uint64_t lo) {
  std::uint32_t missing = 0;
  for (std::size_t lane = 0; lane < 8; ++lane) {
    const std::uint32_t mask = mask_of(lo, lane);
    const std::uint32_t word = load(block + 4 * lane);
    missing |= mask & ~word;
    store(block + 4 * lane, word | mask);
  }
  return missing != 0;
}

bool has_one(const std::uint8_t* block, std::uint64_t lo) {
  std::uint32_t missing = 0;
  for (std::size_t lane = 0; lane < 8; ++lane) missing |= mask_of(lo, lane) & ~load(block + 4 * lane);
  return missing == 0;
}

void insert(std::uint8_t* bytes, std::uint64_t blocks, const std::uint64_t* hashes, std::size_t count,
            std::uint8_t* is_new) {
  const auto fetch = [&](std::size_t i) {
    __builtin_prefetch(bytes + split_block_offset(hashes[2 * i], blocks), 1, 2);
  };
  for (std::size_t i = 0; i < split_block_in_flight && i < count; ++i) fetch(i);
  for (std::size_t i = 0; i < count; ++i) {
    if (i + split_block_in_flight < count) fetch(i + split_block_in_flight);
    const bool fresh = insert_one(bytes + split_block_offset(hashes[2 * i], blocks), hashes[2 * i]);
    if (is_new != nullptr) is_new[i] = fresh ? 1 : 0;
  }
}

void has(const std::uint8_t* bytes, std::uint64_t blocks, const std::uint64_t* hashes, std::size_t count,
         std::uint64_t* bitmap) {
  const auto fetch = [&](std::size_t i) {
    __builtin_prefetch(bytes + split_block_offset(hashes[2 * i], blocks), 0, 2);
  };
  for (std::size_t i = 0; i < split_block_in_flight && i < count; ++i) fetch(i);
  std::uint64_t answers = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (i + split_block_in_flight < count) fetch(i + split_block_in_flight);
    const bool hit = has_one(bytes + split_block_offset(hashes[2 * i], blocks), hashes[2 * i]);
    answers |= std::uint64_t{hit} << (i % 64);
    if (i % 64 == 63 || i + 1 == count) {
      bitmap[i / 64] = answers;
      answers = 0;
    }
  }
}

}  // namespace

const split_block_kernel split_block_scalar = {"scalar", always, insert, has};

}  // namespace bloomery::kernels
