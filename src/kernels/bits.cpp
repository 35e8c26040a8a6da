#include <bloomery/bits.hpp>

#include <bloomery/error.hpp>

#include "kernels/dispatch.hpp"

#include <cassert>
#include <cstddef>

namespace bloomery {

namespace {

// A wrong BLOOMERY_KERNEL is an error where kernels are chosen; here, where nothing may be thrown, the plain ones do.
const kernels::census_kernel& counting() noexcept {
  try {
    return chosen_kernels().census;
  } catch (const error&) {
    return kernels::scalar.census;
  }
}

}  // namespace

std::uint64_t count_ones(std::span<const std::uint8_t> bytes) noexcept {
  return counting().ones(bytes.data(), bytes.size());
}

void count_ones_of_lines(std::span<const std::uint8_t> bytes, std::span<std::uint64_t> ones) noexcept {
  assert(bytes.size() == 64 * ones.size());
  counting().line_free(bytes.data(), ones.size(), ones.data());
}

void unite_bits(std::span<std::uint8_t> into, std::span<const std::uint8_t> from) noexcept {
  for (std::size_t i = 0; i < into.size(); ++i) into[i] = static_cast<std::uint8_t>(into[i] | from[i]);
}

void intersect_bits(std::span<std::uint8_t> into, std::span<const std::uint8_t> from) noexcept {
  for (std::size_t i = 0; i < into.size(); ++i) into[i] = static_cast<std::uint8_t>(into[i] & from[i]);
}

}  // namespace bloomery
