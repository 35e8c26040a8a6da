// Keys as C programs pass them: checked, and as the views of the library.
#pragma once

#include <bloomery.h>
#include <bloomery/key.hpp>

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace bloomery::c {

/// Keys of the form integers. @throws error  invalid_argument: a null pointer
key_span integers_of(const bloomery_keys& keys);

/// Writes views of the keys `first` to `first + views.size() - 1`, which are bytes.
/// @throws error  invalid_argument: a null pointer, offsets that decrease, are negative or exceed the data, or an
///                unknown form; names the key
void views_of(const bloomery_keys& keys, std::size_t first, std::span<std::string_view> views);

/// Views of all keys; none for integers. @throws error  as above
std::vector<std::string_view> views_of(const bloomery_keys& keys);

}  // namespace bloomery::c
