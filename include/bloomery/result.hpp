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
///     assert(!seen && seen.why().code() == errc::invalid_argument);
///     assert(try_make({.capacity = 1000, .target_fpr = 0.01}).value().capacity() == 1000);
template <class T>
class result {
 public:
  result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  result(error why) : state_(std::in_place_index<1>, std::move(why)) {}

  bool has_value() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  /// The value. @throws error  why(), if there is no value
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
  const error& why() const noexcept { return *std::get_if<1>(&state_); }

 private:
  void check() const {
    if (!has_value()) detail::refuse(why().code(), why().text());
  }

  std::variant<T, error> state_;
};

/// An empty filter in memory: any_filter(complete(p)).
result<any_filter> try_make(const params& p) noexcept;

/// any_filter::open().
result<any_filter> try_open(const std::string& path, const open_options& options = {}) noexcept;

/// any_filter::create() with complete(p).
result<any_filter> try_create(const std::string& path, const params& p, const create_options& options = {}) noexcept;

/// any_filter::save(); empty: the file is saved.
std::optional<error> try_save(const any_filter& filter, const std::string& path,
                              const create_options& options = {}) noexcept;

/// any_filter::close(), which makes the changes of a mapped file durable; empty: they are.
std::optional<error> try_close(any_filter& filter) noexcept;

}  // namespace bloomery
