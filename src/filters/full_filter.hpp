// The error of filters whose slots are full.
#pragma once

#include <bloomery/error.hpp>
#include <bloomery/params.hpp>

#include <cstdint>
#include <string>

namespace bloomery {

/// @param copies  number of keys with their copies, of which not all have a slot
inline error full_filter(const params& p, std::uint64_t copies) {
  const auto keys_text = [](std::uint64_t n) { return std::to_string(n) + (n == 1 ? " key" : " keys"); };
  const std::string what = "the filter is full: both blocks of a key have no free slot";
  if (copies <= p.capacity)
    return error(errc::full, {what + ", because keys with many copies fill some blocks", "", "",
                              keys_text(copies) + " with copies", hint::make_larger_filter});
  return error(errc::full, {what, "", p.capacity == 0 ? std::string() : "at most " + keys_text(p.capacity),
                            keys_text(copies) + " with copies", hint::make_larger_filter});
}

}  // namespace bloomery
