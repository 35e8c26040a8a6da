// Keys: the types that filters accept, and key_span, a view of many keys in any of these forms.
//
// There are two kinds of keys, also in filter files: text, which is any bytes, and 64-bit integers. filter<> accepts
// the types of the concepts text_key and integer_key. Filters whose kind of keys is known at run time accept a
// key_span: one parameter type for text, integers and hashes.
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/detail/key_hash.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
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

/// The parameter type of functions for single keys: std::string_view for all text, which avoids a std::string.
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

/// The key types that a key_span refers to without a copy.
template <class Key>
concept viewable_key = std::same_as<Key, std::string_view> || std::same_as<Key, std::string> ||
    std::same_as<Key, std::uint64_t> || std::same_as<Key, key_hash>;

/// The element type of a contiguous range. Does not use std::ranges, because <ranges> has 11,000 lines.
template <class Range>
using viewed_key = std::remove_cvref_t<decltype(*std::data(std::declval<const Range&>()))>;

/// A contiguous range of such keys: a vector, an array, a span.
template <class Range>
concept viewable_keys = requires(const Range& keys) {
  { std::size(keys) } -> std::convertible_to<std::size_t>;
  requires viewable_key<viewed_key<Range>>;
};

}  // namespace detail

/// A view of keys, in order. It owns nothing: the keys must outlive it. It converts implicitly from every contiguous
/// range of std::string_view, std::string, unsigned 64-bit integers or key_hash.
///
/// Text and integers are hashed by the filter. Hashes are keys that were hashed before by the filter's own hash:
/// any_filter::hash() or filter_handle::prepare(). of_hash64s() takes the hash64 of each key.
///
/// Example:
///     const std::vector<std::string> names = {"Madrid", "Berlin"};
///     const key_span keys = names;
///     assert(keys.size() == 2 && keys.form() == key_span::form_of_keys::strings);
///     assert(keys.text(1) == "Berlin");
///     assert(keys.part(1, 1).text(0) == "Berlin");
class key_span {
 public:
  enum class form_of_keys : std::uint8_t {
    views,     ///< std::string_view
    strings,   ///< std::string
    integers,  ///< std::uint64_t
    hashes,    ///< key_hash
    hash64s,   ///< key_hash::hash64 alone
  };

  /// No keys.
  constexpr key_span() noexcept = default;

  constexpr key_span(std::span<const std::string_view> keys) noexcept
      : key_span(keys.data(), keys.size(), form_of_keys::views) {}
  constexpr key_span(std::span<const std::string> keys) noexcept
      : key_span(keys.data(), keys.size(), form_of_keys::strings) {}
  constexpr key_span(std::span<const std::uint64_t> keys) noexcept
      : key_span(keys.data(), keys.size(), form_of_keys::integers) {}
  constexpr key_span(std::span<const key_hash> keys) noexcept
      : key_span(keys.data(), keys.size(), form_of_keys::hashes) {}

  /// Any other contiguous range of one of these types: a vector, an array.
  template <detail::viewable_keys Range>
  constexpr key_span(const Range& keys) noexcept
      : key_span(std::span<const detail::viewed_key<Range>>(std::data(keys), std::size(keys))) {}

  /// The hash64 of each key, as stored in a key log. For filters with any_filter::uses_hash64().
  ///
  /// Example:
  ///     any_filter seen(complete({.layout = "blocked", .capacity = 1000, .target_fpr = 0.01}));
  ///     const std::vector<std::uint64_t> words = {17, 4711};
  ///     assert(seen.insert(key_span::of_hash64s(words)) == 2);
  static constexpr key_span of_hash64s(std::span<const std::uint64_t> hash64s) noexcept {
    return {hash64s.data(), hash64s.size(), form_of_keys::hash64s};
  }

  constexpr form_of_keys form() const noexcept { return static_cast<form_of_keys>(size_and_form_ & 7); }
  constexpr std::size_t size() const noexcept { return size_and_form_ >> 3; }
  constexpr bool empty() const noexcept { return size() == 0; }

  /// Whether the keys are text: views or strings.
  constexpr bool is_text() const noexcept { return form() == form_of_keys::views || form() == form_of_keys::strings; }

  /// Key i as text. Requires is_text().
  std::string_view text(std::size_t i) const noexcept {
    return form() == form_of_keys::views ? static_cast<const std::string_view*>(keys_)[i]
                                         : static_cast<const std::string*>(keys_)[i];
  }

  /// All keys. Each function requires the form() of the same name.
  std::span<const std::string_view> views() const noexcept { return all<std::string_view>(); }
  std::span<const std::uint64_t> integers() const noexcept { return all<std::uint64_t>(); }
  std::span<const key_hash> hashes() const noexcept { return all<key_hash>(); }
  std::span<const std::uint64_t> hash64s() const noexcept { return all<std::uint64_t>(); }

  /// `count` keys from `first` on. Requires first + count <= size().
  key_span part(std::size_t first, std::size_t count) const noexcept {
    return {static_cast<const char*>(keys_) + first * bytes_of_a_key(), count, form()};
  }

 private:
  constexpr key_span(const void* keys, std::size_t size, form_of_keys form) noexcept
      : keys_(keys), size_and_form_(size << 3 | static_cast<std::size_t>(form)) {}

  template <class Key>
  std::span<const Key> all() const noexcept {
    return {static_cast<const Key*>(keys_), size()};
  }

  std::size_t bytes_of_a_key() const noexcept {
    switch (form()) {
      case form_of_keys::views: return sizeof(std::string_view);
      case form_of_keys::strings: return sizeof(std::string);
      case form_of_keys::hashes: return sizeof(key_hash);
      case form_of_keys::integers:
      case form_of_keys::hash64s: break;
    }
    return sizeof(std::uint64_t);
  }

  // Two words, so that a key_span is passed in registers, like a std::span. This matters for small batches.
  const void* keys_ = nullptr;
  std::size_t size_and_form_ = 0;  // 61 bits for the size, 3 bits for the form; 0: no views
};

}  // namespace bloomery
