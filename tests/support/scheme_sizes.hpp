// Sizes that a scheme accepts.
#pragma once

#include <bloomery/error.hpp>
#include <bloomery/scheme.hpp>

namespace bloomery_tests {

inline bool accepts(const bloomery::scheme& row, const bloomery::geometry& size) {
  try {
    row.check(size);
    return true;
  } catch (const bloomery::error&) {
    return false;
  }
}

/// Whether the filters of a scheme consist of whole bytes, words or lines, so that 65 bits are refused. All schemes
/// accept an odd multiple of 512.
inline bool has_whole_words(const bloomery::scheme& row) { return !accepts(row, {65, 1}); }

}  // namespace bloomery_tests
