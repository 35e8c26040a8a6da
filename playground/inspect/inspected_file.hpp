// Inspection of a filter in a file.
#pragma once

#include "playground/inspect/watched.hpp"

#include <bloomery/secret.hpp>

#include <memory>
#include <optional>
#include <string>

namespace bloomery::playground {

/// @param secret   of a keyed filter, to look keys up; empty: none
/// @param threads  for reading all bits; 1: update() starts none
/// @throws error  as check_file()
std::unique_ptr<watched> inspect_file(const std::string& path, const std::optional<secret_key>& secret,
                                      unsigned threads);

/// The same, also for a file that is missing or damaged: the inspection has the error until the file can be read.
std::unique_ptr<watched> inspect_file_once_readable(const std::string& path, const std::optional<secret_key>& secret,
                                                    unsigned threads);

/// Reads the header of a file.
/// @throws error  not_found, not_permitted, not_a_filter, damaged; incompatible: a filter with several layers
void check_file(const std::string& path);

}  // namespace bloomery::playground
