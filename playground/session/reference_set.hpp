// The reference set of a demo session: the exact keys that were added, the number of copies, and the epoch or layer of
// each key.
#pragma once

#include <bloomery/hash.hpp>
#include <bloomery/secret.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace bloomery::playground {

class reference_set {
 public:
  static constexpr std::uint64_t nowhere = ~std::uint64_t{0};

  struct entry {
    std::uint64_t copies = 0;   ///< 0: removed again
    std::uint64_t section = 0;  ///< epoch or layer of the last insertion
  };

  /// @param section  epoch or layer; empty: unchanged
  void add(std::string_view key, std::optional<std::uint64_t> section) {
    const auto [at, first_time] = entries_.try_emplace(std::string(key));
    if (first_time) order_.push_back(&at->first);
    if (at->second.copies++ == 0)
      ++distinct_;
    else
      leave(at->second.section);
    if (first_time || section) at->second.section = section.value_or(nowhere);
    ++of_section_[at->second.section];
  }

  /// Removes a copy, if there is one.
  void remove(std::string_view key) {
    const auto at = entries_.find(key);
    if (at == entries_.end() || at->second.copies == 0) return;
    if (--at->second.copies == 0) gone(at->second);
  }

  /// Removes all copies.
  void remove_all(std::string_view key) {
    const auto at = entries_.find(key);
    if (at == entries_.end() || at->second.copies == 0) return;
    at->second.copies = 0;
    gone(at->second);
  }

  /// Null if the key was never added.
  const entry* find(std::string_view key) const {
    const auto at = entries_.find(key);
    return at == entries_.end() ? nullptr : &at->second;
  }

  void clear() { *this = reference_set(); }

  std::uint64_t distinct() const noexcept { return distinct_; }  ///< keys with at least one copy

  /// The distinct keys whose section is this or a later one.
  std::uint64_t distinct_since(std::uint64_t section) const {
    std::uint64_t keys = 0;
    for (auto at = of_section_.lower_bound(section); at != of_section_.end(); ++at) keys += at->second;
    return keys;
  }

  std::uint64_t ever() const noexcept { return order_.size(); }  ///< keys that were ever added
  const std::string& at(std::uint64_t number) const {
    return *order_[number];
  }  ///< in the order of their first insertion

 private:
  // Keyed, so that clients cannot choose keys that collide in one bucket.
  struct hasher {
    using is_transparent = void;
    std::size_t operator()(std::string_view key) const noexcept {
      static const siphash hash(random_secret());
      return hash(key).hash64;
    }
  };

  void leave(std::uint64_t section) {
    const auto at = of_section_.find(section);
    if (--at->second == 0) of_section_.erase(at);
  }
  void gone(const entry& e) {
    --distinct_;
    leave(e.section);
  }

  std::unordered_map<std::string, entry, hasher, std::equal_to<>> entries_;
  std::map<std::uint64_t, std::uint64_t> of_section_;  // distinct keys per section
  std::vector<const std::string*> order_;              // nodes of the map have stable addresses
  std::uint64_t distinct_ = 0;
};

}  // namespace bloomery::playground
