// partial_error: the error of a call on many keys that failed after some of them.
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/error.hpp>

#include <cstdint>

namespace BLOOMERY_EXPORT bloomery {

/// The result of insert() or remove().
struct change_result {
  std::uint64_t keys = 0;     ///< keys processed
  std::uint64_t changed = 0;  ///< of these, keys that were certainly new, or were removed
};

/// insert() or remove() failed before all keys were processed. Contains the error and the number of keys processed
/// before.
///
/// Example:
///     const auto insert_some = [](filter_handle& filter, key_span keys) {
///       try {
///         return filter.insert(keys).keys;
///       } catch (const partial_error& e) {
///         return e.done().keys;  // keys[0] to keys[e.done().keys - 1] are in
///       }
///     };
///     static_cast<void>(insert_some);
class partial_error : public error {
 public:
  partial_error(const error& why, change_result done, std::uint64_t undecided)
      : error(why), done_(done), undecided_(undecided) {}

  /// The keys before the failed exchange: they are processed.
  const change_result& done() const noexcept { return done_; }

  /// The number of keys in the failed exchange, which follow the processed ones. Whether they are processed is unknown.
  /// 0: no further key is processed.
  std::uint64_t undecided() const noexcept { return undecided_; }

 private:
  change_result done_;
  std::uint64_t undecided_;
};

}  // namespace bloomery
