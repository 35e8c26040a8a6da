// explain_key: a lookup that also returns the cells of the key, for all kinds of filters.
#pragma once

#include <bloomery/any_filter.hpp>
#include <bloomery/cells.hpp>
#include <bloomery/detail/function_ref.hpp>
#include <bloomery/key.hpp>

#include <cstdint>
#include <vector>

namespace bloomery {

/// Values of cells, for a filter whose bytes are elsewhere.
using cell_values = function_ref<std::uint32_t(std::uint64_t cell)>;

/// @param one_key  the first key is explained
/// @param value    replaces the bytes of a plain or counting filter
/// @throws error   incompatible: keys of the other kind, or hashes with a scheme
key_explanation explain_key(const any_filter& filter, key_span one_key, const cell_values& value = {});

/// The cells of the first key. @throws error  as explain_key()
std::vector<std::uint64_t> cells_of_key(const any_filter& filter, key_span one_key);

/// The value of a cell of a plain or counting filter. @param cell_bits  1 or 4
std::uint32_t cell_value(std::uint32_t cell_bits, const std::uint8_t* bytes, std::uint64_t cell) noexcept;

}  // namespace bloomery
