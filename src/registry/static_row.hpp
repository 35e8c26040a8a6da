// Rows of static filters for tables.cpp, and functions of any_filter for static filters only.
#pragma once

#include <bloomery/detail/cascade.hpp>
#include <bloomery/detail/fuse.hpp>
#include <bloomery/detail/ribbon.hpp>

#include "registry/tables.hpp"

#include <string>

namespace bloomery {

extern const static_calls fuse_calls;
extern const static_calls ribbon_calls;
extern const static_calls cascade_calls;

/// The row of static filters with fingerprints of `width` bits.
/// @param single  functions for each hash, in the order of hash_rows()
layout_row row_of_static(static_structure structure, unsigned width, const single_key_calls* single);

/// The row of cascades.
layout_row row_of_cascade(unsigned width, const single_key_calls* single);

/// @throws error not_permitted: p is of a static filter
void refuse_keys_if_static(const params& p, const std::string& where);

/// @throws error invalid_argument: p is of a static filter, which cannot be created empty
void refuse_empty_if_static(const params& p);

}  // namespace bloomery
