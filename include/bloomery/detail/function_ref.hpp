// function_ref: a non-owning reference to a callable, for callback parameters. It avoids <functional>, whose 20,000
// lines every user of filter.hpp would compile.
#pragma once

#include <bloomery/detail/export.hpp>

#include <type_traits>

namespace BLOOMERY_EXPORT bloomery {

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
      : target_(address_of(callable)), call_(is_empty(callable) ? nullptr : call<std::remove_reference_t<Callable>>) {}

  Result operator()(Arguments... arguments) const { return call_(target_, static_cast<Arguments&&>(arguments)...); }

  explicit operator bool() const noexcept { return call_ != nullptr; }

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

  // An empty std::function or a null function pointer gives an empty view.
  template <class Callable>
  static bool is_empty(const Callable& callable) noexcept {
    if constexpr (!std::is_function_v<Callable> && requires { callable == nullptr; })
      return callable == nullptr;
    else
      return false;
  }

  template <class Callable>
  static Result call(address target, Arguments... arguments) {
    if constexpr (std::is_function_v<Callable>)
      return reinterpret_cast<Callable*>(target.function)(static_cast<Arguments&&>(arguments)...);
    else
      return (*static_cast<Callable*>(const_cast<void*>(target.object)))(static_cast<Arguments&&>(arguments)...);
  }

  address target_{};
  Result (*call_)(address, Arguments...) = nullptr;
};

}  // namespace bloomery
