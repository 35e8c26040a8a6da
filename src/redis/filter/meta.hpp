// meta: the data of a shared filter on its servers: the description in {NAME}:m, the header of a shard in
// {NAME~EPOCH:s}:h, and the names of all keys. docs/redis.md describes them.
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

/// The version of a shard: 16 bytes after the lines of its newest layer, and in its header. Every change of a header
/// draws a new version.
using stamp = std::array<char, 16>;

inline std::string_view text_of(const stamp& s) noexcept { return {s.data(), s.size()}; }
stamp new_stamp();
bool is_stamp(std::string_view text) noexcept;

/// A token for the end of the newest layer of a shard under repair, in place of the shard version. Never equal to a
/// version.
stamp new_repair_token();

/// The version of a shard whose header was never changed: clients need not read that header.
stamp first_stamp(std::uint64_t epoch, std::uint64_t shard) noexcept;

constexpr std::uint64_t most_layers = 16;  // of a shard in a scalable filter

/// The description of a filter.
struct meta {
  redis_params parameters;            // complete
  std::uint64_t epoch = 0;            // random
  std::string instance;               // the prefix of its shards' names
  redis_layer first;                  // of every shard at creation
  bool ready = false;                 // false: its shards are still being created
  std::int64_t expires_at = 0;        // milliseconds since 1970; 0: never
  std::int64_t first_generation = 0;  // sliding-window filters: the first generation; otherwise 0

  bool has_window() const noexcept { return parameters.filter.has_window(); }
  bool counts() const noexcept { return family_of(parameters.filter) == family::counting; }
  bool grows() const noexcept { return parameters.growth != redis_growth::none; }

  /// Growth renames the closed layer. Bits of a client that does not know this yet are then in no layer, so a closed
  /// layer never changes. Generations keep their names, because no answer to an insert depends on bits written to an
  /// old generation.
  bool renames_closed_layers() const noexcept { return grows(); }
  std::uint64_t shards() const noexcept { return parameters.shards; }

  /// Length of a generation in milliseconds: a seventh of the window.
  std::uint64_t slice() const noexcept { return parameters.filter.window().slice_length(); }

  /// When a generation expires: eight generations after its start, plus a tolerance for differing clocks.
  std::int64_t end_of_generation(std::int64_t generation) const noexcept;

  /// The same without the tolerance: a layer that is missing before was evicted.
  std::int64_t earliest_end_of_generation(std::int64_t generation) const noexcept;

  /// Whether the times of a generation fit into 64 bits.
  bool may_have(std::int64_t generation) const noexcept;

  std::string text() const;

  /// Parses the description of the filter at an address. Its shards must have the filter's own name, otherwise the
  /// description belongs to another filter.
  /// @throws error damaged, wrong_version, not_a_filter
  static meta parse(std::string_view text, const redis_address& address);
};

class router;

/// The present description on the servers, read from the master, because a replica may lag behind, and from either of
/// its two keys. Empty: there is none. @throws error as router::run and meta::parse
std::optional<meta> read_meta(router& servers);

/// Whether keys have the same hashes in both filters.
bool hash_alike(const params& a, const params& b) noexcept;

/// NAME as it occurs in keys, with '{', '}', '%', '~' and line ends percent-encoded: braces have a meaning in keys, and
/// line ends in descriptions.
std::string key_name(std::string_view name);

/// NAME~EPOCH, with the epoch in 16 hexadecimal digits: shards of different filters never have the same name, even if
/// both filters have had the name NAME.
std::string instance_of(std::string_view name, std::uint64_t epoch);

std::string meta_key(std::string_view name);         // {NAME}:m
std::string second_key(std::string_view name);       // {NAME}:m2, a second copy: one of the two may be evicted
std::string replacement_key(std::string_view name);  // {NAME}:n, the description of the coming filter

/// {NAME}:gone~EPOCH, the drop mark: the filter of this instance was dropped or replaced, and its description must not
/// be restored.
std::string mark_key(std::string_view instance);

/// {NAME}:repair, which exists while a client refills lost shards.
std::string repair_key(std::string_view name);

std::string header_key(const meta& m, std::uint64_t shard);
std::string header_key(std::string_view instance, std::uint64_t shard);
std::string layer_key(const meta& m, std::uint64_t shard, std::int64_t layer);         // newest layer
std::string closed_layer_key(const meta& m, std::uint64_t shard, std::int64_t layer);  // all other layers

/// A client's cached state of a shard.
struct shard_view {
  bool known = false;  // false: the initial state is assumed
  redis::stamp stamp = {};
  std::vector<redis_layer> layers;    // the oldest first
  std::vector<std::int64_t> numbers;  // of the layers: 0, 1, ..., or numbers of generations
  std::string next;                   // the instance of the coming filter; empty: none
  std::string repairing;              // repair token at the end of the newest layer; empty: no repair
  std::string repaired;               // the token of the last repair: layers from before it are gone
  std::uint64_t reserved = 0;         // keys included in the shard's count that are still to be inserted

  std::int64_t newest() const noexcept { return numbers.back(); }
  std::uint64_t capacity() const noexcept;
};

/// The name of layer l of a shard, counted from 0.
std::string layer_key(const meta& m, std::uint64_t shard, const shard_view& v, std::size_t l);

/// The value of a header's field in the reply to HGETALL; empty if it has none.
std::string_view field_of(const reply& header, std::string_view name) noexcept;

/// The initial state of a shard.
shard_view first_view(const meta& m, std::uint64_t shard);

/// "LINES PROBES CAPACITY", the format of a layer in a header.
std::string text_of(const redis_layer& layer);

/// "5,6,8", the format of the layers' numbers in a header.
std::string text_of(std::span<const std::int64_t> numbers);

/// Parses the reply to HGETALL. Empty: there is no header, or it has another epoch.
/// @param before  the state known so far, or null: layers do not change after their creation
/// @throws error damaged
std::optional<shard_view> view_of(const meta& m, const reply& header, const std::string& where,
                                  const shard_view* before = nullptr);

}  // namespace bloomery::redis
