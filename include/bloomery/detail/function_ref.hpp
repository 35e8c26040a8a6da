// Callables: function_ref refers to one, for parameters; callback owns one, for options that are kept. Both avoid
// <functional>, whose 16,000 lines every user of filter.hpp would compile.
#pragma once

#include <bloomery/detail/export.hpp>

#include <cstddef>
#include <type_traits>
#include <utility>

namespace BLOOMERY_EXPORT bloomery {

namespace detail {

// Whether a callable is an empty std::function, function_ref or callback, or a null function pointer.
template <class Callable>
[[gnu::visibility("hidden")]] bool is_empty(const Callable& callable) noexcept {
  if constexpr (!std::is_function_v<Callable> && requires { callable == nullptr; })
    return callable == nullptr;
  else
    return false;
}

}  // namespace detail

template <class Signature>
class function_ref;

/// A view of a callable; empty by default. The callable must outlive it, so use it for parameters only. A lambda passed
/// as an argument lives until the call returns.
///
/// Example:
///     const auto twice = [](double x) { return 2 * x; };
///     const function_ref<double(double)> call = twice;
///     assert(call(21) == 42);
///     assert(!function_ref<void()>());
template <class Result, class... Arguments>
class function_ref<Result(Arguments...)> {
 public:
  constexpr function_ref() noexcept = default;

  template <class Callable>
    requires(!std::is_same_v<std::remove_cvref_t<Callable>, function_ref> &&
             std::is_invocable_r_v<Result, Callable&, Arguments...>)
  function_ref(Callable&& callable)
  noexcept
      : target_(address_of(callable)),
        call_(detail::is_empty(callable) ? nullptr : call<std::remove_reference_t<Callable>>) {}

  Result operator()(Arguments... arguments) const { return call_(target_, static_cast<Arguments&&>(arguments)...); }

  explicit operator bool() const noexcept { return call_ != nullptr; }
  friend bool operator==(const function_ref& f, std::nullptr_t) noexcept { return !f; }

 private:
  // Function pointers do not convert to void*.
  union address {
    const void* object;
    void (*function)();
  };

  template <class Callable>
  static address address_of(Callable& callable) noexcept {
    address result{};
    if constexpr (std::is_function_v<Callable>)
      result.function = reinterpret_cast<void (*)()>(&callable);
    else
      result.object = __builtin_addressof(callable);
    return result;
  }

  template <class Callable>
  static Result call(address target, Arguments... arguments) {
    if constexpr (std::is_function_v<Callable>)
      return static_cast<Result>(reinterpret_cast<Callable*>(target.function)(static_cast<Arguments&&>(arguments)...));
    else
      return static_cast<Result>(
          (*static_cast<Callable*>(const_cast<void*>(target.object)))(static_cast<Arguments&&>(arguments)...));
  }

  address target_{};
  Result (*call_)(address, Arguments...) = nullptr;
};

template <class Signature>
class callback;

/// An owned copy of a callable. Empty if default-constructed, constructed from an empty callable, or moved from. Copies
/// do not share state.
///
/// Example:
///     const callback<int(int)> twice = [](int x) { return 2 * x; };
///     const callback<int(int)> copy = twice;
///     assert(copy(21) == 42);
///     assert(!callback<void()>());
template <class Result, class... Arguments>
class callback<Result(Arguments...)> {
 public:
  callback() noexcept = default;

  template <class Callable>
    requires(!std::is_same_v<std::remove_cvref_t<Callable>, callback> &&
             std::is_invocable_r_v<Result, std::decay_t<Callable>&, Arguments...>)
  callback(Callable&& callable)
      : target_(detail::is_empty(callable) ? nullptr
                                           : new copy_of<std::decay_t<Callable>>(static_cast<Callable&&>(callable))) {}

  callback(const callback& other) : target_(other.target_ == nullptr ? nullptr : other.target_->clone()) {}
  callback(callback&& other) noexcept : target_(std::exchange(other.target_, nullptr)) {}
  callback& operator=(callback other) noexcept {
    std::swap(target_, other.target_);
    return *this;
  }
  ~callback() { delete target_; }

  /// Requires a callback that is not empty.
  Result operator()(Arguments... arguments) const { return target_->call(static_cast<Arguments&&>(arguments)...); }

  explicit operator bool() const noexcept { return target_ != nullptr; }
  friend bool operator==(const callback& c, std::nullptr_t) noexcept { return !c; }

 private:
  struct target {
    virtual ~target() = default;
    virtual target* clone() const = 0;
    virtual Result call(Arguments... arguments) = 0;
  };

  template <class Callable>
  struct copy_of final : target {
    template <class From>
    explicit copy_of(From&& from) : callable(static_cast<From&&>(from)) {}
    target* clone() const override { return new copy_of(callable); }
    Result call(Arguments... arguments) override {
      return static_cast<Result>(callable(static_cast<Arguments&&>(arguments)...));
    }

    Callable callable;
  };

  target* target_ = nullptr;  // owned
};

}  // namespace bloomery
