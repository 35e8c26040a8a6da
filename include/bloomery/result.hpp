// Functions that report errors without exceptions, for programs that are compiled with -fno-exceptions.
//
// All headers compile with -fno-exceptions. In such a program, an error of any other function of the library ends the
// program; the runtime library prints its message. In memory, insert and may_contain cannot fail.
#pragma once

#include <bloomery/any_filter.hpp>
#include <bloomery/detail/checks.hpp>
#include <bloomery/detail/export.hpp>
#include <bloomery/error.hpp>
#include <bloomery/mapped_storage.hpp>
#include <bloomery/params.hpp>

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace BLOOMERY_EXPORT bloomery {

/// A value, or the error for which there is none.
///
/// Example:
///     const result<any_filter> seen = try_make({.capacity = 0, .target_fpr = 0.01});
///     assert(!seen && seen.error().code() == errc::invalid_argument);
///     assert(try_make({.capacity = 1000, .target_fpr = 0.01}).value().capacity() == 1000);
template <class T>
class result {
 public:
  result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  result(bloomery::error reason) : state_(std::in_place_index<1>, std::move(reason)) {}

  bool has_value() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  /// The value. @throws error  error(), if there is no value
  T& value() & {
    check();
    return *std::get_if<0>(&state_);
  }
  const T& value() const& {
    check();
    return *std::get_if<0>(&state_);
  }
  T&& value() && {
    check();
    return std::move(*std::get_if<0>(&state_));
  }

  /// The error. Requires !has_value().
  const bloomery::error& error() const noexcept { return *std::get_if<1>(&state_); }

 private:
  void check() const {
    if (!has_value()) detail::refuse(error().code(), error().text());
  }

  std::variant<T, bloomery::error> state_;
};

/// An empty filter in memory: any_filter(complete(p)). Errors: as these functions throw.
result<any_filter> try_make(const params& p) noexcept;

/// any_filter::open(). Errors: as it throws.
///
/// Example:
///     const result<any_filter> missing = try_open("missing.bloom");
///     assert(!missing && missing.error().code() == errc::not_found);
result<any_filter> try_open(const std::string& path, const open_options& options = {}) noexcept;

/// any_filter::create() with complete(p). Errors: as these functions throw.
///
/// Example:
///     result<any_filter> made = try_create("made.bloom", {.capacity = 1000, .target_fpr = 0.01});
///     assert(made && made.value().insert("Madrid"));
///     assert(!try_close(made.value()).has_value());
///     assert(try_open("made.bloom").value().may_contain("Madrid"));
result<any_filter> try_create(const std::string& path, const params& p, const create_options& options = {}) noexcept;

/// any_filter::save(). Returns the error that it throws; empty: the file is saved.
///
/// Example:
///     const any_filter cities(complete({.capacity = 1000, .target_fpr = 0.01}));
///     const std::optional<error> refused = try_save(cities, "missing/cities.bloom");
///     assert(refused && refused->code() == errc::not_found);
std::optional<error> try_save(const any_filter& filter, const std::string& path,
                              const create_options& options = {}) noexcept;

/// any_filter::close(), which makes the changes of a mapped file durable. Returns the error that it throws; empty: the
/// changes are durable.
std::optional<error> try_close(any_filter& filter) noexcept;

}  // namespace bloomery
