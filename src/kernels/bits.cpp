#include <bloomery/bits.hpp>

#include "kernels/dispatch.hpp"

#include <cassert>
#include <cstddef>

namespace bloomery {

std::uint64_t count_ones(std::span<const std::uint8_t> bytes) noexcept {
  return chosen_kernels().census.ones(bytes.data(), bytes.size());
}

void count_ones_of_lines(std::span<const std::uint8_t> bytes, std::span<std::uint64_t> ones) noexcept {
  assert(bytes.size() == 64 * ones.size());
  chosen_kernels().census.line_free(bytes.data(), ones.size(), ones.data());
}

void unite_bits(std::span<std::uint8_t> into, std::span<const std::uint8_t> from) noexcept {
  for (std::size_t i = 0; i < into.size(); ++i) into[i] = static_cast<std::uint8_t>(into[i] | from[i]);
}

void intersect_bits(std::span<std::uint8_t> into, std::span<const std::uint8_t> from) noexcept {
  for (std::size_t i = 0; i < into.size(); ++i) into[i] = static_cast<std::uint8_t>(into[i] & from[i]);
}

}  // namespace bloomery
