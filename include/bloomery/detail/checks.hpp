// Checks of a caller's arguments that run in every build: the sizes of output spans, and writing to a read-only filter.
//
// A batch is checked once, before its first key is processed. The functions that throw are out of line, so that the
// fast paths need not spill registers, and so that headers compile with -fno-exceptions.
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/error.hpp>

#include <cstddef>
#include <string>

namespace BLOOMERY_EXPORT bloomery {
namespace detail {

/// Words of a bitmap with one bit per key.
constexpr std::size_t bitmap_words(std::size_t keys) noexcept { return keys / 64 + (keys % 64 != 0 ? 1 : 0); }

/// Throws an error for a header, which contains no `throw` itself.
/// @throws error  always
[[noreturn, gnu::cold, gnu::noinline]] void refuse(errc code, error_text text);

/// Refuses a file whose filter has another type.
/// @param path    path of the file; empty: unknown
/// @param reason  the field that differs, and both values; empty: none differs
/// @throws error  incompatible, unless `reason` is empty
void check_same_kind(const std::string& path, const std::string& reason);

/// Refuses an output span.
/// @param call      the function, such as "filter::insert"
/// @param output    the problem, such as "the bitmap is too short"
/// @param at_least  whether more than `expected` elements are allowed, too
/// @param expected  number of elements
/// @throws error    invalid_argument, always
[[noreturn, gnu::cold, gnu::noinline]] void refuse_output_size(const char* call, const char* output, bool at_least,
                                                               std::size_t expected, std::size_t found);

/// Refuses to write to a filter that was opened for reading only.
/// @throws error  not_permitted, always
[[noreturn, gnu::cold, gnu::noinline]] void refuse_writing(const std::string& path = {});

/// Checks an output of one element per key, or an empty output for callers that need no results. A larger span is an
/// error, because it would keep old results after the new ones.
/// @throws error invalid_argument
inline void check_answers(const char* call, std::size_t keys, std::size_t found) {
  if (found != 0 && found != keys) [[unlikely]]
    refuse_output_size(call, "the output has the wrong size", false, keys, found);
}

/// Checks a mandatory output of one element per key.
/// @throws error invalid_argument
inline void check_all_answers(const char* call, std::size_t keys, std::size_t found) {
  if (found != keys) [[unlikely]]
    refuse_output_size(call, "the output has the wrong size", false, keys, found);
}

/// Checks a bitmap of at least one bit per key. Further words are allowed and unchanged.
/// @throws error invalid_argument
inline void check_bitmap(const char* call, std::size_t keys, std::size_t words) {
  if (words < bitmap_words(keys)) [[unlikely]]
    refuse_output_size(call, "the bitmap is too short", true, bitmap_words(keys), words);
}

/// Checks a buffer of at least one element per key. Further elements are allowed and unchanged.
/// @throws error invalid_argument
inline void check_buffer(const char* call, std::size_t keys, std::size_t found) {
  if (found < keys) [[unlikely]]
    refuse_output_size(call, "the output is too short", true, keys, found);
}

}  // namespace detail
}  // namespace bloomery
