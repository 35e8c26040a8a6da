// Everything about a filter but its bits: what a file's header says, and all that any_filter needs to make one. The
// secret of a keyed filter is in no file.
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/detail/geometry.hpp>
#include <bloomery/layout.hpp>
#include <bloomery/secret.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

namespace BLOOMERY_EXPORT bloomery {

/// What a key is. A filter of integers refuses strings and the other way round.
enum class key_kind : std::uint32_t {
  bytes = 0,  ///< any bytes, also none
  u64le = 1,  ///< a 64-bit integer; as bytes, little-endian
};

/// "bytes" or "u64".
const char* name_of(key_kind kind) noexcept;

/// What the length of a window counts.
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
  static constexpr std::uint64_t most = std::uint64_t{1} << 62;  ///< so that products with epochs do not overflow

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

/// The number of the key log that has all keys of a filter (rebuilding_filter.hpp).
struct key_log_id {
  std::uint64_t value = 0;  ///< random, not 0

  friend bool operator==(const key_log_id&, const key_log_id&) = default;
};

/// Parameters that only some filters have: sliding-window filters a window, rebuilding filters a key log.
using extra_params = std::variant<std::monostate, window_length, key_log_id>;

/// The parameters of a filter. Two filters with equal layout or scheme, hash, keys, seed, secret and geometry set the
/// same bits for the same key, in memory, in a file and in every process.
struct params {
  std::string layout = {};  ///< a name of layout_names(), or of a layout of another family; empty if a scheme is named
  std::string scheme = {};  ///< "guava", "pharo", "python" or "perl"; empty if a layout is named
  std::string hash =
      {};  ///< "xxh3_64", "xxh3", "mix", "murmur3", "siphash" or the name of your own; empty with a scheme
  key_kind keys = key_kind::bytes;
  std::uint64_t seed = 0;            ///< of the hash; not a secret
  bloomery::geometry geometry = {};  ///< bits and probes
  std::uint64_t capacity = 0;        ///< n, the keys it was made for
  double target_fpr = 0;             ///< p, the FPR at capacity

  std::optional<secret_key> secret = {};  ///< of hash siphash; never written, so absent in what a file says
  std::uint64_t key_check = 0;            ///< bloomery::key_check of the secret; 0: the filter has none

  extra_params extra = {};  ///< what only filters of this kind have

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

  /// These parameters for a copy of the filter, which has no key log.
  params without_log() const {
    params copy = *this;
    if (std::holds_alternative<key_log_id>(extra)) copy.extra = {};
    return copy;
  }

  friend bool operator==(const params&, const params&) = default;
};

/// What matters more in the choice of a layout; the rule is in advice.hpp.
enum class preference {
  speed,   ///< the quickest layout that needs at most 25 % more memory than the best
  memory,  ///< the quickest layout that needs at most 3 % more
};

/// "speed" or "memory".
const char* name_of(preference prefer) noexcept;

/// Fills in what was left empty: the layout (by the rule of advice.hpp; with a geometry classic, which takes any), the
/// hash (siphash with a secret, otherwise default_hash of the keys and the layout), the check value of the secret, and
/// the geometry (the smallest that keeps target_fpr at capacity, exactly). With a geometry but no rate, target_fpr
/// becomes the exact rate at capacity. The default capacity of a window counted in keys is that number. A choice takes
/// some milliseconds, some tens of them for rates below 1e-5.
///
/// @throws error  invalid_argument: a name that no table knows, a rate or capacity out of range, integer keys for a
///                scheme, a layout and a scheme at once, hash siphash without a secret, or a secret with anything else,
///                a window with a layout that has none, or a sliding layout without a window;
///                incompatible: a check value that is not the secret's; too_large: no geometry keeps the promise
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

/// Why filters of a and b cannot be merged or compared bit for bit: "hash: xxh3 and murmur3"; empty if they can.
/// Secrets are compared, and named, by their check values. Sealed filters never can.
///
/// Example:
///     const params a = complete({.capacity = 1000, .target_fpr = 0.01});
///     const params b = complete({.capacity = 2000, .target_fpr = 0.01});
///     assert(difference(a, a).empty());
///     assert(difference(a, b).starts_with("bits: "));
std::string difference(const params& a, const params& b);

/// Exact rate of a filter of these params once `keys` distinct keys are in, without making one.
/// @throws error invalid_argument: a layout or scheme that no table knows
///
/// Example:
///     const params p = complete({.capacity = 1000, .target_fpr = 0.01});
///     assert(expected_fpr(p, 0) == 0);
///     assert(expected_fpr(p, 1000) <= 0.01);
double expected_fpr(const params& p, std::uint64_t keys);

/// Bits of the block in which all bits of a key lie; 0 if there is none: classic, and all schemes.
/// @throws error invalid_argument: a layout that no table knows
///
/// Example:
///     assert(block_bits_of({.layout = "split_block512"}) == 512);
std::uint64_t block_bits_of(const params& p);

/// What a filter of these params can do; plain for a layout that no table knows.
///
/// Example:
///     assert(family_of({.layout = "split_block512"}) == family::plain);
family family_of(const params& p) noexcept;

/// Bits of a cell: 1, but 4 for counting and 8 for window, and the width of a fingerprint for static filters.
///
/// Example:
///     assert(cell_bits_of({.layout = "split_block512"}) == 1);
std::uint32_t cell_bits_of(const params& p) noexcept;

/// The names that params may have, for messages: "split_block, split_block512, blocked, blocked_page, classic".
std::string layout_names();
std::string hash_names();
std::string scheme_names();

}  // namespace bloomery
