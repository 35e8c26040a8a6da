// Keys from Arrow arrays, by the Arrow PyCapsule interface: __arrow_c_array__ and __arrow_c_stream__.
#pragma once

#include "python/src/batches.hpp"

namespace bloomery::python {

/// Whether an object exports an Arrow array or a stream of arrays.
bool is_arrow(pybind11::handle keys);

/// Calls `receive` with all keys: utf8, binary (also large, and of fixed width) and integers. Only the pointers of text
/// are computed; the keys stay where they are.
///
/// The offsets are checked: no key ends before it starts or after the last offset. The interface does not give the
/// lengths of buffers, so the lengths are not checked.
///
/// Throws TypeError: another type of array, a dictionary, or text for a filter of integers; ValueError: a null, or an
/// array that contradicts itself.
void each_of_arrow(pybind11::handle keys, key_kind kind, part_of_keys receive);

}  // namespace bloomery::python
