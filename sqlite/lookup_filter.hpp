// lookup_filter: an open filter of any kind, from a file or from a BLOB, that answers single lookups.
#pragma once

#include "sqlite/values.hpp"

#include <bloomery/any_filter.hpp>
#include <bloomery/error.hpp>
#include <bloomery/filter_handle.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace bloomery::sqlite {

class lookup_filter {
 public:
  explicit lookup_filter(std::unique_ptr<filter_handle> handle)
      : handle_(std::move(handle)), local_(handle_->local()), keys_(handle_->parameters().keys) {}

  /// @throws error  as filter_handle::contains; invalid_argument: the key is a REAL
  bool may_contain(sqlite3_value* key) {
    return with_key(key, keys_, [this](auto plain) {
      // The direct call avoids the batch of one key that contains() would make.
      return local_ != nullptr ? local_->may_contain(plain) : handle_->contains(plain);
    });
  }

  filter_handle& handle() noexcept { return *handle_; }

 private:
  std::unique_ptr<filter_handle> handle_;
  const any_filter* local_;  // null: a filter of several layers
  key_kind keys_;
};

/// Calls `open`, which opens a filter. SQL functions accept no secrets, so the error for a keyed filter says so.
template <class Open>
auto open_without_secret(Open open) {
  try {
    return open();
  } catch (const error& e) {
    if (e.text().hint.code != hint::give_the_secret) throw;
    error_text text = e.text();
    text.hint = "use keyed filters with the command bloomery: the functions of SQLite accept no secrets";
    throw error(e.code(), std::move(text));
  }
}

/// The filter of a BLOB. A window of time is looked up as of its newest generation, so that the same BLOB and key give
/// the same answer at any time, as SQLITE_DETERMINISTIC requires. @throws error  as any_filter::from_bytes
inline any_filter filter_of_blob(sqlite3_value* blob, const char* where) {
  const std::span<const std::uint8_t> bytes = blob_of(blob, where);
  return open_without_secret([&] { return any_filter::from_bytes(bytes, {.clock = [] { return std::uint64_t{0}; }}); });
}

}  // namespace bloomery::sqlite
