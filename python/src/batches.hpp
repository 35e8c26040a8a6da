// Many keys in one Python object: an iterable, an array of NumPy, or an Arrow array.
#pragma once

#include <bloomery/detail/function_ref.hpp>
#include <bloomery/key.hpp>
#include <bloomery/params.hpp>

#include <pybind11/pybind11.h>

#include <cstddef>

namespace bloomery::python {

/// Maximum number of keys of a part that is converted from Python objects: its views take 256 KiB.
inline constexpr std::size_t keys_of_a_part = 16'384;

/// Maximum number of keys of a part that is used in place. Signals are handled between parts, after some milliseconds.
inline constexpr std::size_t keys_in_place = std::size_t{1} << 20;

/// Receives some keys, with the GIL held. They are valid until it returns, also if it releases the GIL meanwhile.
using part_of_keys = function_ref<void(key_span keys)>;

/// Calls `receive` with all keys of an object, in order.
///
///   an object with __arrow_c_array__ or __arrow_c_stream__     arrow.hpp
///   an array of integers or of fixed-width bytes (NumPy)        its buffer, in place where the form of the keys allows
///   any other iterable                                          one object after another, as with_key()
///
/// Throws TypeError: not an iterable of keys, or one key (str, bytes); ValueError: an Arrow array that is refused.
void for_each_part(pybind11::handle keys, key_kind kind, part_of_keys receive);

/// Whether answers for these keys are an array of NumPy, as the keys are, and not a list.
bool is_array(pybind11::handle keys);

}  // namespace bloomery::python
