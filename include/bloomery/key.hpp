// Key types: the types that filters accept, and the form in which keys are hashed.
//
// There are two kinds of keys, as in a filter file: text, which is any bytes, and 64-bit integers.
#pragma once

#include <bloomery/detail/export.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

namespace BLOOMERY_EXPORT bloomery {

/// Integer key types: signed and unsigned integers of up to 64 bits. Not bool, which has only two values, and not the
/// character types, because the values of plain char depend on the processor.
///
/// An integer key is the 64-bit number that the conversion to std::uint64_t gives: negative numbers are sign-extended,
/// modulo 2^64. So -1 is the key 2^64 - 1 in every signed type, and a non-negative number is the same key in every
/// type.
///
/// Example:
///     static_assert(integer_key<int> && integer_key<std::uint16_t> && !integer_key<bool> && !integer_key<char>);
template <class T>
concept integer_key = std::integral<T> && sizeof(T) <= sizeof(std::uint64_t) && !std::same_as<T, bool> &&
                      !std::same_as<T, char> && !std::same_as<T, wchar_t> && !std::same_as<T, char8_t> &&
                      !std::same_as<T, char16_t> && !std::same_as<T, char32_t>;

/// Types whose values are text: std::string, std::string_view, zero-terminated strings.
///
/// Example:
///     static_assert(text_key<std::string> && text_key<const char*> && !text_key<int>);
template <class T>
concept text_key = std::convertible_to<const T&, std::string_view>;

namespace detail {

// Other types need their own hash and are passed to it unchanged.
template <class Key>
struct key_forms {
  using plain = Key;
  using view = Key;
};
template <integer_key Key>
struct key_forms<Key> {
  using plain = std::uint64_t;
  using view = Key;
};
template <text_key Key>
struct key_forms<Key> {
  using plain = std::string_view;
  using view = std::string_view;
};

/// The type as which a key is hashed: std::uint64_t, std::string_view, or the type itself.
template <class Key>
using plain_key = typename key_forms<Key>::plain;

/// The parameter type of functions for single keys: std::string_view for all text, so that no std::string is made.
template <class Key>
using key_view = typename key_forms<Key>::view;

template <class Range>
using element_of = decltype(*std::begin(std::declval<std::remove_reference_t<Range>&>()));

/// A range of keys that a filter of Key accepts: a forward range whose elements are valid single keys.
template <class Range, class Key>
concept key_range = !std::convertible_to<Range, key_view<Key>> && requires(std::remove_reference_t<Range> & range) {
  requires std::forward_iterator<decltype(std::begin(range))>;
  requires std::sentinel_for<decltype(std::end(range)), decltype(std::begin(range))>;
  requires(integer_key<Key> ? integer_key<std::remove_cvref_t<element_of<Range>>>
                            : std::convertible_to<element_of<Range>, key_view<Key>>);
};

/// Number of elements of a forward range.
template <class Range>
std::size_t count_of(Range& range) {
  if constexpr (requires { std::size(range); }) {
    return static_cast<std::size_t>(std::size(range));
  } else {
    std::size_t count = 0;
    for (auto next = std::begin(range); next != std::end(range); ++next) ++count;
    return count;
  }
}

}  // namespace detail

}  // namespace bloomery
