// Checks of a caller's arguments that run in every build: the sizes of output spans, and writing to a read-only filter.
//
// A batch is checked once, before its first key changes anything. What throws is out of line, so that the fast paths
// need not spill registers for it.
#pragma once

#include <bloomery/export.hpp>

#include <cstddef>
#include <string>

namespace BLOOMERY_EXPORT bloomery {
namespace detail {

/// Words of a bitmap with one bit per key.
constexpr std::size_t bitmap_words(std::size_t keys) noexcept { return keys / 64 + (keys % 64 != 0 ? 1 : 0); }

/// Refuses an output span.
/// @param call      the function, as "filter::insert"
/// @param output    the parameter and what is wrong with it, as "bitmap is too short"
/// @param expected  elements; with `at_least` that many or more
/// @throws error    invalid_argument, always
[[noreturn, gnu::cold, gnu::noinline]] void refuse_output_size(const char* call, const char* output, bool at_least,
                                                               std::size_t expected, std::size_t found);

/// Refuses to write to a filter that was opened for reading only.
/// @throws error  not_permitted, always
[[noreturn, gnu::cold, gnu::noinline]] void refuse_writing(const std::string& path = {});

/// An output of one element per key, or an empty one, for callers that want no answers. A larger span is a mistake,
/// too: it would keep old answers behind the new ones.
/// @throws error invalid_argument
inline void check_answers(const char* call, std::size_t keys, std::size_t found) {
  if (found != 0 && found != keys) [[unlikely]]
    refuse_output_size(call, "the output has the wrong size", false, keys, found);
}

/// An output of one element per key that every caller wants.
/// @throws error invalid_argument
inline void check_all_answers(const char* call, std::size_t keys, std::size_t found) {
  if (found != keys) [[unlikely]]
    refuse_output_size(call, "the output has the wrong size", false, keys, found);
}

/// A bitmap of at least one bit per key; words behind them are allowed, and left as they are.
/// @throws error invalid_argument
inline void check_bitmap(const char* call, std::size_t keys, std::size_t words) {
  if (words < bitmap_words(keys)) [[unlikely]]
    refuse_output_size(call, "the bitmap is too short", true, bitmap_words(keys), words);
}

/// A buffer of at least one element per key; elements behind them are allowed, and left as they are.
/// @throws error invalid_argument
inline void check_buffer(const char* call, std::size_t keys, std::size_t found) {
  if (found < keys) [[unlikely]]
    refuse_output_size(call, "the output is too short", true, keys, found);
}

}  // namespace detail
}  // namespace bloomery
