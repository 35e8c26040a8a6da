// Sizes that a scheme accepts.
#pragma once

#include <bloomery/error.hpp>
#include <bloomery/scheme.hpp>

namespace bloomery_tests {

/// Whether the filters of a scheme consist of whole bytes or words, so that 65 bits are refused.
inline bool has_whole_words(const bloomery::scheme& row) {
  try {
    row.check({65, 1});
    return false;
  } catch (const bloomery::error&) {
    return true;
  }
}

}  // namespace bloomery_tests
