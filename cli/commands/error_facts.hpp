// What a filter's bits and its count say about its error: what info and verify share.
#pragma once

#include <bloomery/audit.hpp>
#include <bloomery/census.hpp>
#include <bloomery/estimate.hpp>
#include <bloomery/mapped_storage.hpp>

#include <cstdint>
#include <span>
#include <string>

namespace bloomery::cli {

/// Keys of a filter all of whose bits are set: as many as there may be.
inline constexpr std::uint64_t beyond_counting = std::uint64_t{1} << 62;

struct error_facts {
  census bits;
  estimate keys_from_bits;
  audit count;
  bool count_is_estimate = false;  ///< it was made from the bits, or is that of a writer who was killed
  bool alarming = false;           ///< the bits do not fit a count that is none of these
  std::uint64_t counted = 0;       ///< distinct keys, by the count
  std::uint64_t keys = 0;          ///< distinct keys, by the count if that can be trusted, else by the bits
  double predicted = 0;            ///< the rate at so many
};

/// How far the bits are from those that the count lets expect: "by 7.2 standard deviations".
std::string distance_text(const audit& count);

/// Reads all bits once. @param bytes  of the filter whose file it is
error_facts error_facts_of(const file_info& file, std::span<const std::uint8_t> bytes);

}  // namespace bloomery::cli
