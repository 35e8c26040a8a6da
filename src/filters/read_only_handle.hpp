// A handle of a filter in memory that was copied from a file of another system.
#pragma once

#include <bloomery/any_filter.hpp>
#include <bloomery/filter_facts.hpp>
#include <bloomery/filter_handle.hpp>

#include <memory>

namespace bloomery {

/// @param file  what info() reports about the file
std::unique_ptr<filter_handle> make_read_only_handle(any_filter filter, file_facts file);

}  // namespace bloomery
