// The reference set of a demo session: the exact keys that were added, their copies, and the part of the filter that
// took each of them.
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
  static constexpr std::uint64_t bytes_of_entry = 120;  ///< of memory, about, beside the key's own

  struct entry {
    std::uint64_t copies = 0;  ///< 0: it was added and removed
    std::uint64_t part = 0;    ///< of the filter that took it last: an epoch, a layer
  };

  /// @param part  empty: no part took it, or the part that had it before
  void add(std::string_view key, std::optional<std::uint64_t> part) {
    const auto [at, first_time] = entries_.try_emplace(std::string(key));
    if (first_time) {
      order_.push_back(&at->first);
      bytes_ += key.size();
    }
    if (at->second.copies++ == 0)
      ++distinct_;
    else
      leave(at->second.part);
    if (first_time || part) at->second.part = part.value_or(nowhere);
    ++of_part_[at->second.part];
  }

  /// Takes a copy out, if there is one.
  void remove(std::string_view key) {
    const auto at = entries_.find(key);
    if (at == entries_.end() || at->second.copies == 0) return;
    if (--at->second.copies == 0) gone(at->second);
  }

  /// Takes all copies out.
  void remove_all(std::string_view key) {
    const auto at = entries_.find(key);
    if (at == entries_.end() || at->second.copies == 0) return;
    at->second.copies = 0;
    gone(at->second);
  }

  /// Null: it was never added.
  const entry* find(std::string_view key) const {
    const auto at = entries_.find(key);
    return at == entries_.end() ? nullptr : &at->second;
  }

  void clear() { *this = reference_set(); }

  std::uint64_t distinct() const noexcept { return distinct_; }  ///< keys with at least one copy

  /// The keys among them that were taken last by this part or a later one.
  std::uint64_t distinct_since(std::uint64_t part) const {
    std::uint64_t keys = 0;
    for (auto at = of_part_.lower_bound(part); at != of_part_.end(); ++at) keys += at->second;
    return keys;
  }

  std::uint64_t ever() const noexcept { return order_.size(); }  ///< keys that were ever added
  const std::string& at(std::uint64_t number) const {
    return *order_[number];
  }  ///< in the order in which they were first added

  /// Of memory, about.
  std::uint64_t byte_size() const noexcept { return bytes_ + order_.size() * bytes_of_entry; }

 private:
  // Keyed, so that no client can choose keys that all fall into one bucket.
  struct hasher {
    using is_transparent = void;
    std::size_t operator()(std::string_view key) const noexcept {
      static const siphash hash(random_secret());
      return hash(key).hash64;
    }
  };

  void leave(std::uint64_t part) {
    const auto at = of_part_.find(part);
    if (--at->second == 0) of_part_.erase(at);
  }
  void gone(const entry& e) {
    --distinct_;
    leave(e.part);
  }

  std::unordered_map<std::string, entry, hasher, std::equal_to<>> entries_;
  std::map<std::uint64_t, std::uint64_t> of_part_;  // how many keys it took last
  std::vector<const std::string*> order_;           // nodes of the map stay where they are
  std::uint64_t distinct_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace bloomery::playground
