// Inspection of a filter in a file.
#pragma once

#include "playground/inspect/watched.hpp"

#include <bloomery/secret.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace bloomery::playground {

/// Inspects a file that is mapped. If it is missing or damaged, the inspection has the error until it can be read.
/// @param secret   of a keyed filter, to look keys up; empty: none
/// @param threads  for reading all bits
std::unique_ptr<watched> inspect_mapped(const std::string& path, const std::optional<secret_key>& secret,
                                        unsigned threads);

/// Inspects a file that is read in slices, for systems without mapped files. Sliding-window and static filters are read
/// into memory, up to 256 MiB. update() starts no threads. ask() needs an update().
/// @param slice_bytes  a multiple of fill_scan::slice_unit
/// @throws error  as check_file(); too_large
std::unique_ptr<watched> inspect_in_slices(const std::string& path, std::uint64_t slice_bytes);

/// Reads the header of a file.
/// @throws error  not_found, not_permitted, not_a_filter, damaged; incompatible: a filter with several layers
void check_file(const std::string& path);

}  // namespace bloomery::playground
