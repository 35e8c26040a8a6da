// filter_facts of filters in memory and in files, for the adapters of filter_handle.
#pragma once

#include <bloomery/any_filter.hpp>
#include <bloomery/detail/key_log.hpp>
#include <bloomery/detail/scalable_layers.hpp>
#include <bloomery/filter_facts.hpp>
#include <bloomery/mapped_storage.hpp>
#include <bloomery/measure.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace bloomery {

/// What was counted in the cells of a plain or counting filter.
struct counted_cells {
  fill_statistics fill;
  std::uint64_t full = 0;  ///< saturated counters
};

/// The facts of a plain or counting filter.
/// @param file   its header; null: in memory
/// @param cells  empty: info_depth::counts
filter_facts facts_of(const params& p, const key_counts& counts, const file_info* file,
                      const std::optional<counted_cells>& cells);

/// @throws error  damaged: the bytes of a static filter are inconsistent
filter_facts facts_of(const any_filter& filter, info_depth depth);

/// @param p  common to all layers; its capacity and geometry are ignored
filter_facts facts_of(const scalable_layers& layers, const params& p, info_depth depth);

/// The key log of a filter that was opened for reading.
/// @param path    of the filter
/// @param filter  the contents of its header
log_facts facts_of_log(const std::string& path, const file_info& filter, info_depth depth);

/// The key log of a filter that is open for writing. @param path  of the filter
log_facts facts_of_log(const std::string& path, const params& filter, const key_log& log, info_depth depth);

}  // namespace bloomery
