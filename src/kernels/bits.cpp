// Operations on bit arrays: counting, union and intersection.
#include <bloomery/detail/bits.hpp>

#include <bloomery/detail/checks.hpp>

#include "kernels/dispatch.hpp"

#include <cstddef>

namespace bloomery {

namespace {

void check_same_size(const char* call, const char* reason, std::size_t expected, std::size_t found) {
  if (expected != found) [[unlikely]]
    detail::refuse_output_size(call, reason, false, expected, found);
}

}  // namespace

std::uint64_t count_ones(std::span<const std::uint8_t> bytes) noexcept {
  return chosen_kernels().fill_statistics.ones(bytes.data(), bytes.size());
}

void count_ones_of_lines(std::span<const std::uint8_t> bytes, std::span<std::uint64_t> ones) {
  check_same_size("count_ones_of_lines", "the input does not have 64 bytes per element of the output", 64 * ones.size(),
                  bytes.size());
  chosen_kernels().fill_statistics.blocked(bytes.data(), ones.size(), ones.data());
}

void unite_bits(std::span<std::uint8_t> into, std::span<const std::uint8_t> from) {
  check_same_size("unite_bits", "the filters differ in size", into.size(), from.size());
  for (std::size_t i = 0; i < into.size(); ++i) into[i] = static_cast<std::uint8_t>(into[i] | from[i]);
}

void intersect_bits(std::span<std::uint8_t> into, std::span<const std::uint8_t> from) {
  check_same_size("intersect_bits", "the filters differ in size", into.size(), from.size());
  for (std::size_t i = 0; i < into.size(); ++i) into[i] = static_cast<std::uint8_t>(into[i] & from[i]);
}

}  // namespace bloomery
