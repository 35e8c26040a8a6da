// params: all parameters of a filter, as stored in a file's header and as required to create a filter. The secret of a
// keyed filter is not stored in files.
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/detail/geometry.hpp>
#include <bloomery/layout.hpp>
#include <bloomery/secret.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace BLOOMERY_EXPORT bloomery {

/// The kind of keys of a filter. A filter of integers refuses text, and a filter of bytes refuses integers.
enum class key_kind : std::uint32_t {
  bytes = 0,  ///< any byte string, including the empty one
  u64le = 1,  ///< a 64-bit integer; as bytes, little-endian
};

/// "bytes" or "u64".
const char* name_of(key_kind kind) noexcept;

/// The unit of the length of a window.
enum class window_unit : std::uint8_t {
  keys,          ///< insertions
  milliseconds,  ///< time
};

/// The length of a sliding window: a number of insertions or a time.
///
/// Example:
///     const window_length day = window_of_milliseconds(86'400'000);
///     assert(day.by_time() && day.milliseconds() == 86'400'000 && day.keys() == 0);
struct window_length {
  static constexpr std::uint64_t most = std::uint64_t{1} << 62;  ///< beyond, products with epochs could overflow

  std::uint64_t count = 0;  ///< from 1 to `most`; 0: no window
  window_unit unit = window_unit::keys;

  bool by_time() const noexcept { return unit == window_unit::milliseconds; }
  std::uint64_t keys() const noexcept { return by_time() ? 0 : count; }          ///< 0 for a window of time
  std::uint64_t milliseconds() const noexcept { return by_time() ? count : 0; }  ///< 0 for a window of keys

  /// L, the length of a slice: a seventh of the window, rounded up.
  std::uint64_t slice_length() const noexcept;

  /// "700 keys" or "1000 ms"; empty without a length.
  std::string text() const;

  friend bool operator==(const window_length&, const window_length&) = default;
};

/// The last `keys` insertions.
constexpr window_length window_of_keys(std::uint64_t keys) noexcept { return {keys, window_unit::keys}; }

/// A window of time; window_of_time() in sliding_window_filter.hpp takes a duration.
constexpr window_length window_of_milliseconds(std::uint64_t milliseconds) noexcept {
  return {milliseconds, window_unit::milliseconds};
}

/// The number of the key log that contains all keys of a filter (rebuilding_filter.hpp).
struct key_log_id {
  std::uint64_t value = 0;  ///< random, not 0

  friend bool operator==(const key_log_id&, const key_log_id&) = default;
};

/// Salts, as drawn by a system whose hashes have random ones: a salt per probe (scheme perl), or one of 32 bytes
/// (scheme valkey_bloom). They replace the salts that the seed selects, so the seed is 0.
///
/// Example:
///     const std::vector<std::string> drawn = {"0.482176318740254", "0.0913", "0.77"};
///     any_filter f(complete({.scheme = "perl", .geometry = {1000, 3}, .extra = salt_list{drawn}}));
///     f.insert("Madrid");
///     assert(f.may_contain("Madrid") && f.parameters().salts().size() == 3);
struct salt_list {
  static constexpr std::size_t longest = 255;      ///< bytes of a salt
  static constexpr std::size_t most_bytes = 3008;  ///< of all salts, each with one byte more

  std::vector<std::string> values = {};  ///< any bytes

  friend bool operator==(const salt_list&, const salt_list&) = default;
};

/// Parameters of some kinds of filters only: a window for sliding-window filters, a key log for rebuilding filters, and
/// salts for filters whose system has drawn them.
using extra_params = std::variant<std::monostate, window_length, key_log_id, salt_list>;

/// The parameters of a filter. Two filters with equal layout or scheme, hash, keys, seed, secret and geometry set the
/// same bits for the same key, in memory, in a file and in every process.
struct params {
  std::string layout = {};  ///< a name in layout_names(), or a layout of another family; empty if a scheme is named.
                            ///< complete() replaces "quotient" by the quotient layout with the fewest bits, and
                            ///< "quotient_growing" by the first size of a filter that grows (any_filter.hpp)
  std::string scheme = {};  ///< a name in scheme_names(), such as "guava"; empty if a layout is named
  std::string hash =
      {};  ///< "xxh3_64", "xxh3", "mix", "identity", "murmur3", "siphash", "xxh64" or a user-defined name; empty with a scheme
  key_kind keys = key_kind::bytes;
  std::uint64_t seed = 0;            ///< of the hash; not a secret
  bloomery::geometry geometry = {};  ///< bits and probes
  std::uint64_t capacity = 0;        ///< n, keys
  double target_fpr = 0;             ///< p, target FPR at capacity

  std::optional<secret_key> secret = {};  ///< of hash siphash; not stored in files, so empty after reading a header
  std::uint64_t key_check = 0;            ///< bloomery::key_check of the secret; 0: the filter has none

  extra_params extra = {};  ///< parameters of some kinds of filters

  /// Whether keys expire.
  bool has_window() const noexcept { return std::holds_alternative<window_length>(extra); }

  /// The length of the window; without a window its count is 0.
  window_length window() const noexcept {
    const auto* length = std::get_if<window_length>(&extra);
    return length == nullptr ? window_length{} : *length;
  }

  /// The number of the key log; 0: the filter has no log.
  std::uint64_t log_id() const noexcept {
    const auto* log = std::get_if<key_log_id>(&extra);
    return log == nullptr ? 0 : log->value;
  }

  /// The salts of the probes; empty: the seed selects them, or the filter has none.
  std::span<const std::string> salts() const noexcept {
    const auto* list = std::get_if<salt_list>(&extra);
    return list == nullptr ? std::span<const std::string>() : list->values;
  }

  /// These parameters without the key log, for a copy of the filter.
  params without_log() const {
    params copy = *this;
    if (std::holds_alternative<key_log_id>(extra)) copy.extra = {};
    return copy;
  }

  friend bool operator==(const params&, const params&) = default;
};

/// The criterion for the choice of a layout; advice.hpp has the rule.
enum class preference {
  speed,   ///< the fastest layout that needs at most 25% more memory than the smallest
  memory,  ///< the fastest layout that needs at most 3% more memory than the smallest
};

/// "speed" or "memory".
const char* name_of(preference prefer) noexcept;

/// Completes empty fields: the layout (by the rule of advice.hpp; with a given geometry classic, which accepts any),
/// the hash (siphash with a secret, otherwise default_hash of the keys and the layout), the check value of the secret,
/// and the geometry (the smallest whose exact FPR at capacity is at most target_fpr). With a geometry but no target
/// FPR, target_fpr becomes the exact FPR at capacity. The default capacity of a window of keys is its length. Choosing
/// a layout takes a few milliseconds, below a target FPR of 1e-5 some tens of them.
///
/// @throws error  invalid_argument: an unknown name, an FPR or capacity out of range, integer keys with a scheme, both
///                a layout and a scheme, hash siphash without a secret, a secret with any other hash or with a scheme,
///                a window with a layout that has none, or a sliding layout without a window, salts that are too long,
///                or not one per probe, or with a seed, a layout or a scheme that has none; incompatible: the check
///                value does not match the secret; too_large: no geometry keeps the target FPR
///
/// Example:
///     const params quick = complete({.capacity = 1'000'000, .target_fpr = 0.01});
///     assert(quick.layout == "split_block" && quick.hash == "xxh3_64" && quick.geometry.probes == 8);
///     const params small = complete({.capacity = 1'000'000, .target_fpr = 0.01}, preference::memory);
///     assert(small.layout == "blocked_page" && small.geometry.bits < quick.geometry.bits);
///     const params keyed = complete({.capacity = 1000, .target_fpr = 0.01, .secret = random_secret()});
///     assert(keyed.hash == "siphash" && keyed.key_check == key_check(*keyed.secret));
///     const params recent = complete({.layout = "sliding", .target_fpr = 0.01, .extra = window_of_keys(50'000)});
///     assert(recent.capacity == 50'000 && recent.window().keys() == 50'000);
params complete(params wanted, preference prefer = preference::speed);

/// How often a quotient filter with these params doubles until it has room for its capacity, or the narrowest slots.
///
/// Example:
///     const params small = complete({.layout = "quotient_growing", .capacity = 1'000'000, .target_fpr = 0.01});
///     assert(small.layout == "quotient15" && doublings_left(small) == 8);
///     assert(doublings_left(complete({.layout = "quotient", .capacity = 1'000'000, .target_fpr = 0.01})) == 0);
unsigned doublings_left(const params& p) noexcept;

/// Why filters of a and b cannot be merged or compared bit by bit: "hash: xxh3 and murmur3"; empty if they can. Secrets
/// are compared and named by their check values. Static filters can never be merged.
///
/// Example:
///     const params a = complete({.capacity = 1000, .target_fpr = 0.01});
///     const params b = complete({.capacity = 2000, .target_fpr = 0.01});
///     assert(difference(a, a).empty());
///     assert(difference(a, b).starts_with("bits: "));
std::string difference(const params& a, const params& b);

/// Expected FPR of a filter with these params and `keys` distinct keys, without creating the filter.
/// @throws error invalid_argument: unknown layout or scheme
///
/// Example:
///     const params p = complete({.capacity = 1000, .target_fpr = 0.01});
///     assert(expected_fpr(p, 0) == 0);
///     assert(expected_fpr(p, 1000) <= 0.01);
double expected_fpr(const params& p, std::uint64_t keys);

/// Bits of the block that contains all bits of a key; 0 if there are no blocks: classic, and all schemes.
/// @throws error invalid_argument: unknown layout
///
/// Example:
///     assert(block_bits_of({.layout = "split_block512"}) == 512);
std::uint64_t block_bits_of(const params& p);

/// The family of a filter with these params; plain for an unknown layout. Knows "quotient", too.
///
/// Example:
///     assert(family_of({.layout = "split_block512"}) == family::plain);
family family_of(const params& p) noexcept;

/// Bits of a cell: 4 for counting, 512 (a block) for quotient filters, 8 for sliding and sliding64, the width of a
/// fingerprint for static filters, otherwise 1.
///
/// Example:
///     assert(cell_bits_of({.layout = "split_block512"}) == 1);
std::uint32_t cell_bits_of(const params& p) noexcept;

/// The names that params accept, for messages: "split_block, split_block512, blocked, blocked_page, classic".
std::string layout_names();
std::string hash_names();
std::string scheme_names();

}  // namespace bloomery
