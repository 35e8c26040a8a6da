// The error for a merge of incompatible kinds of filters, which names the source filter.
#pragma once

#include <bloomery/error.hpp>
#include <bloomery/filter_handle.hpp>

namespace bloomery {

/// @param source  the filter to be merged into another one
/// @throws error incompatible, always
[[noreturn]] inline void refuse_to_merge_from(const filter_handle& source) {
  const params& p = source.parameters();
  if (source.capabilities().is_remote && source.capabilities().has_cells) {
    throw error(errc::incompatible, {"a filter on servers cannot be merged into a local filter", "",
                                     "a filter in memory or in a file", p.layout + " on servers", "merge its copy()"});
  }
  throw error(errc::incompatible, {"a filter of several layers cannot be merged into another filter", "",
                                   "a filter of one layer", p.layout + p.scheme, ""});
}

}  // namespace bloomery
