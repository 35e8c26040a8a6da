// explain_key: a lookup that also returns the cells of the key, for all kinds of filters.
#pragma once

#include <bloomery/any_filter.hpp>
#include <bloomery/key_explanation.hpp>

#include <cstdint>
#include <string_view>

namespace bloomery {

key_explanation explain_key(const any_filter& filter, std::string_view key);
key_explanation explain_key(const any_filter& filter, std::uint64_t key);
key_explanation explain_key(const any_filter& filter, key_hash hash);  // requires uses_hashes()

}  // namespace bloomery
