// Whether a filter supports removal, and the error if it does not, common to all kinds of filters.
#pragma once

#include <bloomery/error.hpp>
#include <bloomery/params.hpp>

#include "registry/tables.hpp"

#include <string>

namespace bloomery {

/// The functions of filters with removal; null for others.
inline const removal_calls* removals_of(const params& p) noexcept {
  const layout_row* const layout = find_layout(p.layout);
  return layout == nullptr ? nullptr : layout->removals;
}

/// @param where  the filter's path or address; may be empty
/// @throws error incompatible, always
[[noreturn]] inline void refuse_removal(const params& p, const std::string& where) {
  throw error(errc::incompatible, {"keys cannot be removed from this filter: other keys share its bits", where,
                                   "a counting or quotient filter", p.layout + p.scheme, hint::make_counting_filter});
}

}  // namespace bloomery
