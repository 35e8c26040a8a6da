// What is written about a shared filter on its servers: the description under {NAME}:m, a shard's header under
// {NAME~EPOCH:s}:h, and the names of all keys. docs/redis.md draws it.
#pragma once

#include <bloomery/redis.hpp>
#include <bloomery/redis/plan.hpp>

#include "redis/net/batch.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery::redis {

/// 16 bytes behind the lines of a shard's newest layer, and in its header. Every change of a header replaces it by a
/// new one.
using stamp = std::array<char, 16>;

inline std::string_view text_of(const stamp& s) noexcept { return {s.data(), s.size()}; }
stamp new_stamp();
bool is_stamp(std::string_view text) noexcept;

/// What a shard under repair has instead of a stamp behind the lines of its newest layer. Never a stamp.
stamp new_repair_token();

/// The version of a shard whose header was never changed: clients need not read it.
stamp first_stamp(std::uint64_t epoch, std::uint64_t shard) noexcept;

constexpr std::uint64_t most_layers = 16;  // of a shard that grows

/// The description of a filter.
struct meta {
  redis_params parameters;            // complete
  std::uint64_t epoch = 0;            // random
  std::string instance;               // what the names of its shards begin with
  redis_layer first;                  // of every shard, when it was made
  bool ready = false;                 // false: its shards are still being made
  std::int64_t expires_at = 0;        // milliseconds since 1970; 0: never
  std::int64_t first_generation = 0;  // sliding-window filters: the first generation; else 0

  bool has_window() const noexcept { return parameters.filter.has_window(); }
  bool counts() const noexcept { return family_of(parameters.filter) == family::counting; }
  bool grows() const noexcept { return parameters.growth != redis_growth::none; }

  /// A layer that is closed by growth is renamed. Bits written by a client that does not know of this yet are then in
  /// no layer, so a closed layer never changes. Bits written to an old generation are no reason for an answer to an
  /// insert, so generations keep their names.
  bool renames_closed_layers() const noexcept { return grows(); }
  std::uint64_t shards() const noexcept { return parameters.shards; }

  /// Milliseconds of a generation: a seventh of the window.
  std::uint64_t slice() const noexcept { return parameters.filter.window().slice_length(); }

  /// When a generation goes: an eighth generation after it began, and a little later, for clocks that differ.
  std::int64_t end_of_generation(std::int64_t generation) const noexcept;

  /// That without the little: what is gone before was evicted.
  std::int64_t earliest_end_of_generation(std::int64_t generation) const noexcept;

  /// A generation whose times can be told in 64 bits.
  bool may_have(std::int64_t generation) const noexcept;

  std::string text() const;

  /// That of the filter at an address: its shards are called by its own name, or it belongs to another filter.
  /// @throws error damaged, wrong_version, not_a_filter
  static meta parse(std::string_view text, const redis_address& address);
};

class router;

/// The description of the filter as it is on the servers now: of the master, since a replica may be behind, and under
/// whichever of its two keys it stands. Nothing: there is none. @throws error as router::run and meta::parse
std::optional<meta> read_meta(router& servers);

/// Keys of one have the same hashes in the other.
bool hash_alike(const params& a, const params& b) noexcept;

/// NAME as keys have it: '{', '}', '%', '~' and line ends percent-encoded, since braces mean something in keys and
/// lines in descriptions.
std::string key_name(std::string_view name);

/// NAME~EPOCH, the epoch in 16 hexadecimal digits: no two filters have a shard of one name, also when one had the name
/// of the other.
std::string instance_of(std::string_view name, std::uint64_t epoch);

std::string meta_key(std::string_view name);         // {NAME}:m
std::string second_key(std::string_view name);       // {NAME}:m2, the same once more: one of the two may be evicted
std::string replacement_key(std::string_view name);  // {NAME}:n, the description of what is to replace it

/// {NAME}:gone~EPOCH, the mark that the filter of this instance was dropped or replaced: its description must not be
/// restored.
std::string mark_key(std::string_view instance);

/// {NAME}:repair, which exists while a client refills lost shards.
std::string repair_key(std::string_view name);

std::string header_key(const meta& m, std::uint64_t shard);
std::string header_key(std::string_view instance, std::uint64_t shard);
std::string layer_key(const meta& m, std::uint64_t shard, std::int64_t layer);         // the newest
std::string closed_layer_key(const meta& m, std::uint64_t shard, std::int64_t layer);  // any other

/// What a client knows of a shard.
struct shard_view {
  bool known = false;  // false: as it was made
  redis::stamp stamp = {};
  std::vector<redis_layer> layers;    // the oldest first
  std::vector<std::int64_t> numbers;  // of the layers: 0, 1, ..., or those of generations
  std::string next;                   // the instance that is to replace this one; empty: none
  std::string repairing;              // what the newest layer has as its stamp while the shard is refilled; else empty
  std::string repaired;               // what that was in the last repair: layers from before it are gone
  std::uint64_t reserved = 0;         // keys that the count of the shard has already and that are still to come

  std::int64_t newest() const noexcept { return numbers.back(); }
  std::uint64_t capacity() const noexcept;
};

/// The name of its layer l, from 0.
std::string layer_key(const meta& m, std::uint64_t shard, const shard_view& v, std::size_t l);

/// The value of a header's field in the reply to HGETALL; empty if it has none.
std::string_view field_of(const reply& header, std::string_view name) noexcept;

/// As it was made.
shard_view first_view(const meta& m, std::uint64_t shard);

/// "LINES PROBES CAPACITY", as a header has a layer.
std::string text_of(const redis_layer& layer);

/// "5,6,8", as a header has the numbers of its layers.
std::string text_of(std::span<const std::int64_t> numbers);

/// From the reply to HGETALL. Nothing: there is no header, or that of another epoch.
/// @param before  what was known so far, or null: layers stay as they are once they are made
/// @throws error damaged
std::optional<shard_view> view_of(const meta& m, const reply& header, const std::string& where,
                                  const shard_view* before = nullptr);

}  // namespace bloomery::redis
