// Looks a key up in a filter of bits, counters, generations or fingerprints, and tells what its cells hold.
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
