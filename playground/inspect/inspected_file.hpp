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
/// @throws error  not_found, not_permitted, not_a_filter: no such file
std::unique_ptr<watched> inspect_file(const std::string& path, const std::optional<secret_key>& secret,
                                      unsigned threads);

}  // namespace bloomery::playground
