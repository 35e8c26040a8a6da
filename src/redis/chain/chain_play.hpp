// How a chain of bitmaps is asked and filled (bloomery/redis_chain.hpp). What lies on the server is chain_store's.
//
// Two round trips a batch, three of many keys: bits of all its keys are read from all bitmaps, then what the newest one
// lacks is set. Between them the insertion is played through here, key by key, so that growth comes right after the
// very key that reaches half, as with the original.
//
// For that the ones of the newest bitmap must be known before. The server counts them once for each bitmap and client.
// From then on they are added up from the bits that were still clear, in a field of NAME-bloomery that all clients of
// this kind share. The original does not know it, so it may be too low, and two writers that set the same bit count it
// twice, so it may be too high. It decides nothing but when to count again: the server's BITCOUNT alone makes a chain
// grow.
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

  /// Reads their bits from all bitmaps: who is present(). For an insertion it asks the masters, and learns which bits
  /// are set in the newest bitmap and, where that is due, its ones.
  /// @throws error damaged, not_found
  void look_up(bool to_insert);
  bool present(std::size_t i) const noexcept { return present_[i] != 0; }

  /// Inserts them up to and with the one after which the chain grows. How many that are.
  /// @param is_new  takes 1 or 0 for each, or is null
  std::size_t insert_some(std::uint8_t* is_new);

  /// The number of the newest bitmap, as far as it is known here.
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

  // Of an insertion.
  struct plan {
    std::size_t keys = 0;  // up to and with the one after which the chain grows
    bool grows = false;    // if the ones are as many as is thought
  };

  // The newest bitmap, as far as it is known here.
  struct state_of_newest {
    bool seen = false;             // it was there
    bool counted = false;          // by the server, while this was open
    bool mend = false;             // the shared count was `field` then, and that is wrong
    std::uint64_t ones = 0;        // by the shared count
    std::uint64_t counted_at = 0;  // ones, when the server counted
    std::string field = {};

    void is_counted(std::uint64_t n, std::string shared) {
      counted = true;
      ones = counted_at = n;
      mend = shared != std::to_string(n);
      field = std::move(shared);
    }

    // At first, and each time an eighth of the way to half is done: the original may be writing, too.
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
  bool has_cursor_ = false;  // on the server; the original's chain has none before it grows
  state_of_newest newest_;

  // Of the batch at work.
  std::size_t keys_ = 0;
  std::vector<std::uint64_t> positions_;     // k of each key
  std::vector<std::uint8_t> present_;        // 1: in one of the bitmaps
  std::vector<std::uint8_t> set_;            // the bits at positions_ in the newest one
  std::vector<std::uint64_t> lengths_;       // of the bitmaps, bytes
  std::vector<key_in_bitmap> undecided_;     // their first bits are set
  std::vector<bit_to_set> to_set_;           // in the order of keys
  std::unordered_set<std::uint64_t> fresh_;  // the positions in to_set_
};

}  // namespace bloomery::redis
