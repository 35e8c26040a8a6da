// Files of other programs: whether this library has their layout, scheme and hash.
#pragma once

#include <bloomery/any_filter.hpp>

#include <string>

namespace bloomery {

/// check_known(p, path), but with `facts_only` the hash may be unknown: facts follow from the bits alone.
void check_known(const params& p, const std::string& path, bool facts_only);

/// Reports why keys cannot be hashed. @throws error incompatible, always. Requires !can_hash_keys(p)
[[noreturn]] void refuse_without_hash(const params& p, const std::string& path);

}  // namespace bloomery
