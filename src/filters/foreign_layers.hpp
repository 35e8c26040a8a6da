// Filters of other systems that have grown and have several layers.
#pragma once

#include <bloomery/filter_handle.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace bloomery {

/// Opens such a filter for lookups. Null: the filter has one layer, which import_filter() reads.
/// @throws error  as import_filter()
std::unique_ptr<filter_handle> open_foreign_layers(const std::string& path, std::string_view format);

}  // namespace bloomery
