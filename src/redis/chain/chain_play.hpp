// Lookup and insert in a Guava chain (bloomery/redis/chain.hpp). chain_store has the data on the server.
//
// A batch takes two round trips, or three if it has many keys: the bits of all its keys are read from all bitmaps, then
// the missing bits are set in the newest one. In between, the insertion is simulated on the client, key by key, so that
// the chain grows right after the key that fills the bitmap to half, as in the Java implementation.
//
// This requires the number of ones of the newest bitmap. The server counts them once per bitmap and client. Afterwards
// newly set bits are added to a count in a field of NAME-bloomery that all bloomery clients share. The count may be too
// low, because the Java implementation does not update it, and too high, because two writers that set the same bit both
// count it. So it only decides when to count again: a chain grows only by the server's BITCOUNT.
#pragma once

#include "redis/chain/chain_store.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace bloomery::redis {

class chain_play {
 public:
  static constexpr std::size_t most_keys_at_once = 1024;

  explicit chain_play(chain_store& store) noexcept : store_(store) {}

  /// The keys of the calls below: text, at most most_keys_at_once.
  void take(key_span keys);

  /// Reads the bits of the keys from all bitmaps, for present(). For an insertion it reads from masters, including the
  /// bits in the newest bitmap and, if due, its number of ones.
  /// @throws error damaged, not_found
  void look_up(bool to_insert);
  bool present(std::size_t i) const noexcept { return present_[i] != 0; }

  /// Inserts keys up to and including the one after which the chain grows. Returns the number of inserted keys.
  /// @param is_new  receives 1, 0 or maybe_new per key, or is null
  std::size_t insert_some(std::uint8_t* is_new);

  /// The last known number of the newest bitmap.
  std::uint64_t cursor() const noexcept { return cursor_; }
  void begin_at(std::uint64_t cursor);

 private:
  struct key_in_bitmap {
    std::uint64_t bitmap;
    std::size_t key;  // its number in the batch
  };

  struct bit_to_set {
    std::size_t key;  // its number in the batch
    std::uint64_t position;
  };

  // The simulated insertion.
  struct plan {
    std::size_t keys = 0;  // keys up to and including the one after which the chain grows
    bool grows = false;    // provided that the number of ones is correct
  };

  // The last known state of the newest bitmap.
  struct state_of_newest {
    bool seen = false;             // it existed
    bool counted = false;          // counted by the server for this client
    bool fix = false;              // the shared count was `field` then, which is wrong
    std::uint64_t ones = 0;        // according to the shared count
    std::uint64_t counted_at = 0;  // number of ones when the server counted
    std::string field = {};

    void is_counted(std::uint64_t n, std::string shared) {
      counted = true;
      ones = counted_at = n;
      fix = shared != std::to_string(n);
      field = std::move(shared);
    }

    // Initially, and after each eighth of the way to half, because the Java implementation may also be writing.
    bool count_is_due(const bloomery::geometry& g) const {
      const std::uint64_t half = g.bits / 2;
      const std::uint64_t to_half = half > counted_at ? half - counted_at : 0;
      return !counted || ones >= counted_at + std::max<std::uint64_t>(to_half / 8, 8 * g.probes);
    }
  };

  std::optional<error> try_to_look_up(bool to_insert);
  void move_to(std::uint64_t now);
  std::optional<std::uint64_t> read_bitmaps(std::uint64_t from, bool to_insert);
  std::optional<std::uint64_t> read_bitmaps(std::uint64_t from, std::uint64_t to, bool to_insert);
  template <class KeyAt>
  void ask_for_bits(const std::string& bitmap, std::size_t n, KeyAt key_at, std::size_t first, std::size_t last);
  void check_bits(const reply& r, std::size_t count) const;
  void take_bits(const reply& r, std::uint64_t i, std::size_t at, std::size_t n, std::size_t probes, bool keep);
  void read_rest(std::size_t first, redis::mode mode);

  bool over_half(std::uint64_t ones) const { return 2 * ones > store_.geometry.bits; }
  plan play_through();
  bool send(std::uint8_t* is_new);
  void settle(bool count_is_due);
  void add_to_count(std::uint64_t ones);
  void count();

  chain_store& store_;
  std::uint64_t cursor_ = 0;
  bool has_cursor_ = false;  // on the server; chains of the Java implementation have none before they grow
  state_of_newest newest_;

  // The present batch.
  std::size_t keys_ = 0;
  std::vector<std::uint64_t> positions_;     // k per key
  std::vector<std::uint8_t> present_;        // 1: in one of the bitmaps
  std::vector<std::uint8_t> set_;            // the bits at positions_ in the newest one
  std::vector<std::uint64_t> lengths_;       // lengths of the bitmaps in bytes
  std::vector<key_in_bitmap> undecided_;     // keys whose first bits are set
  std::vector<bit_to_set> to_set_;           // in the order of keys
  std::unordered_set<std::uint64_t> fresh_;  // the positions in to_set_
};

}  // namespace bloomery::redis
