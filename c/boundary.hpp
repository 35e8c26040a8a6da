// The border between C and C++: the handle that C programs hold, and the translation of exceptions to codes.
#pragma once

#include <bloomery.h>
#include <bloomery/any_filter.hpp>
#include <bloomery/error.hpp>
#include <bloomery/filter_handle.hpp>
#include <bloomery/key.hpp>
#include <bloomery/params.hpp>

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>

/// A filter as C programs know it.
struct bloomery_filter {
  std::unique_ptr<bloomery::filter_handle> handle;
};

namespace bloomery::c {

/// Keeps the exception that is being handled as the last error of this thread, and returns its code.
bloomery_code keep_current_exception() noexcept;

/// Calls work() and translates what it throws. No exception leaves a C function, because it calls all its C++ in here.
template <class Work>
bloomery_code guarded(Work work) noexcept {
  try {
    work();
    return BLOOMERY_OK;
  } catch (...) {
    return keep_current_exception();
  }
}

/// @throws error  invalid_argument: a null pointer
template <class T>
T& wanted(T* pointer, const char* name) {
  if (pointer == nullptr) throw error(errc::invalid_argument, {"null pointer", name, "", "", hint::none});
  return *pointer;
}

/// The handle of a filter. Lookups do not change a filter, but the handle of one on a server uses its connection.
inline filter_handle& handle_of(const bloomery_filter* filter) { return *wanted(filter, "filter").handle; }

/// Gives a new filter to the caller.
inline void give(bloomery_filter** filter, std::unique_ptr<filter_handle> handle) {
  *filter = std::make_unique<bloomery_filter>(bloomery_filter{std::move(handle)}).release();
}

/// The parameters that a program filled in; fields that its version of the header lacks have their defaults.
/// @throws error  invalid_argument: an unknown size, kind of keys or null pointer
params params_of(const bloomery_params* given);

/// The same with its empty fields completed. @throws error  as complete()
params complete_params_of(const bloomery_params* given);

/// 16 bytes as a secret; empty for a null pointer.
std::optional<secret_key> secret_of(const std::uint8_t* secret);

}  // namespace bloomery::c
