// The error for a removal from a filter that does not support it, common to all kinds of filters.
#pragma once

#include <bloomery/error.hpp>
#include <bloomery/params.hpp>

#include <string>

namespace bloomery {

/// @param where  the filter's path or address; may be empty
/// @throws error incompatible, always
[[noreturn]] inline void refuse_removal(const params& p, const std::string& where) {
  throw error(errc::incompatible, {"keys cannot be removed from this filter: other keys share its bits", where,
                                   "a counting filter", p.layout + p.scheme, hint::make_counting_filter});
}

}  // namespace bloomery
