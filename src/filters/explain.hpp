// explain_key: a lookup that also returns the cells of the key, for all kinds of filters.
#pragma once

#include <bloomery/any_filter.hpp>
#include <bloomery/cells.hpp>
#include <bloomery/key.hpp>

namespace bloomery {

/// @param one_key  the first key is explained
/// @throws error   incompatible: keys of the other kind, or hashes with a scheme
key_explanation explain_key(const any_filter& filter, key_span one_key);

}  // namespace bloomery
