// The exact set that a filter is compared with: the keys that must be found, the keys that must be absent, and the keys
// for which both answers are correct.
#pragma once

#include "model/operation.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace bloomery_model {

/// What a kind of filter remembers of its keys.
enum class memory : std::uint8_t {
  set,                ///< every key
  copies,             ///< every copy of every key, until it is removed
  window_of_keys,     ///< the last keys, by generations
  window_of_time,     ///< the keys of the last time, by generations of an exact clock
  window_of_servers,  ///< the same by a clock that is known to within a call
};

/// What is true of a key.
enum class fact : std::uint8_t { absent, present, either };

class reference {
 public:
  /// @param length  of the window: keys or milliseconds; else 0
  reference(memory kind, std::uint64_t length) : kind_(kind), length_(length), slice_((length + 6) / 7) {
    entries_.resize(universe);
  }

  /// The moment of what follows, in milliseconds: not before `from`, not after `to`.
  void set_moment(std::uint64_t from, std::uint64_t to) {
    from_ = from;
    to_ = to;
  }

  fact of(key_id key) const {
    const entry& e = entries_[key];
    switch (kind_) {
      case memory::set: return e.copies > 0 ? fact::present : e.perhaps > 0 ? fact::either : fact::absent;
      case memory::copies: return e.copies > 0 ? fact::present : fact::absent;
      case memory::window_of_keys:
      case memory::window_of_time:
        if (e.copies > 0 && e.surely_until >= epoch()) return fact::present;
        return e.perhaps > 0 && e.perhaps_until >= epoch() ? fact::either : fact::absent;
      case memory::window_of_servers: break;
    }
    if (e.copies > 0 && e.surely_until >= to_) return fact::present;
    return e.perhaps > 0 && e.perhaps_until >= from_ ? fact::either : fact::absent;
  }

  /// The next key is inserted now: it begins the generation that is due.
  void begin_insertion() {
    if (kind_ == memory::window_of_keys) newest_ = std::max(newest_, insertions_ / slice_);
    if (kind_ == memory::window_of_time) newest_ = std::max(newest_, to_ / slice_);
  }

  /// The key is in, as inserted now.
  void insert(key_id key) {
    begin_insertion();
    ++insertions_;
    entry& e = entries_[key];
    ++e.copies;
    ++e.perhaps;
    if (kind_ == memory::window_of_servers) {
      e.surely_until = std::max(e.surely_until, from_ + length_);
      e.perhaps_until = std::max(e.perhaps_until, to_ + 8 * slice_);
    } else {
      e.surely_until = e.perhaps_until = newest_ + 7;
    }
  }

  /// The key may be in, as inserted now: its writer was killed.
  void attempt(key_id key) {
    entry& e = entries_[key];
    ++e.perhaps;
    e.perhaps_until = kind_ == memory::window_of_servers ? to_ + 8 * slice_ : epoch() + 8;
  }

  /// One copy is taken out. Requires of(key) == present.
  void remove(key_id key) {
    --entries_[key].copies;
    --entries_[key].perhaps;
  }

  void clear() {
    entries_.assign(universe, {});
    newest_ = insertions_ = 0;
  }

  /// Takes in the keys of another one, inserted in that one's newest generation.
  void merge(const reference& other) {
    for (key_id key = 0; key < universe; ++key) {
      entry& e = entries_[key];
      const entry& o = other.entries_[key];
      e.copies += o.copies;
      e.perhaps += o.perhaps;
      e.surely_until = std::max(e.surely_until, o.surely_until);
      e.perhaps_until = std::max(e.perhaps_until, o.perhaps_until);
    }
    newest_ = std::max(newest_, other.newest_);
    insertions_ += other.insertions_;
  }

  std::uint32_t copies_of(key_id key) const { return entries_[key].copies; }
  /// The key that has most copies.
  key_id most_copied() const {
    const auto fewer = [](const entry& a, const entry& b) { return a.copies < b.copies; };
    return static_cast<key_id>(std::max_element(entries_.begin(), entries_.end(), fewer) - entries_.begin());
  }

  /// Keys of which that is true.
  std::uint64_t count(fact wanted) const {
    std::uint64_t n = 0;
    for (key_id key = 0; key < universe; ++key) n += of(key) == wanted ? 1 : 0;
    return n;
  }
  std::uint64_t copies() const {
    std::uint64_t n = 0;
    for (const entry& e : entries_) n += e.copies;
    return n;
  }

  std::uint64_t insertions() const { return insertions_; }
  /// As a killed writer left them.
  void set_window(std::uint64_t insertions, std::uint64_t epoch) {
    insertions_ = insertions;
    newest_ = epoch;
  }

  /// The generation that lookups see.
  std::uint64_t epoch() const { return kind_ == memory::window_of_time ? std::max(newest_, to_ / slice_) : newest_; }
  std::uint64_t slice() const { return slice_; }
  memory kind() const { return kind_; }

 private:
  struct entry {
    std::uint32_t copies = 0;   // certainly in
    std::uint32_t perhaps = 0;  // with those that a killed writer may have inserted
    std::uint64_t surely_until = 0;
    std::uint64_t perhaps_until = 0;
  };

  memory kind_;
  std::uint64_t length_;
  std::uint64_t slice_;
  std::uint64_t from_ = 0, to_ = 0;
  std::uint64_t newest_ = 0, insertions_ = 0;
  std::vector<entry> entries_;
};

}  // namespace bloomery_model
