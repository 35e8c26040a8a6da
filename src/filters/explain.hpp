// Looks a key up in a filter of bits, counters, generations or fingerprints, and tells what its cells hold.
#pragma once

#include <bloomery/any_filter.hpp>
#include <bloomery/key_explanation.hpp>
#include <bloomery/key_span.hpp>

namespace bloomery {

/// @param one_key  the first key is explained
/// @throws error   incompatible: keys of the other kind, or hashes with a scheme
key_explanation explain_key(const any_filter& filter, key_span one_key);

}  // namespace bloomery
