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

namespace BLOOMERY_EXPORT bloomery {

/// What a key is. A filter of integers refuses strings and the other way round.
enum class key_kind : std::uint32_t {
  bytes = 0,  ///< any bytes, also none
  u64le = 1,  ///< a 64-bit integer; as bytes, little-endian
};

/// "bytes" or "u64".
const char* name_of(key_kind kind) noexcept;

/// The parameters of a filter. Two filters with equal layout or scheme, hash, keys, seed, secret and geometry set the
/// same bits for the same key, in memory, in a file and in every process.
struct params {
  std::string layout = {};  ///< a name of layout_names(), or of a layout of another family; empty if a scheme is named
  std::string scheme = {};  ///< "guava", "pharo", "python" or "perl"; empty if a layout is named
  std::string hash = {};    ///< "xxh3", "mix", "murmur3", "siphash" or the name of your own; empty with a scheme
  key_kind keys = key_kind::bytes;
  std::uint64_t seed = 0;            ///< of the hash; not a secret
  bloomery::geometry geometry = {};  ///< bits and probes
  std::uint64_t capacity = 0;        ///< n, the keys it was made for
  double target_fpr = 0;             ///< p, promised at capacity

  std::uint64_t window_keys = 0;          ///< windowed: insertions that are remembered; 0: it goes by time
  std::uint64_t window_milliseconds = 0;  ///< windowed: the time that is remembered; 0: it goes by insertions
  std::uint64_t log_id = 0;               ///< the log that all its keys are in (rebuilding_filter.hpp); 0: it has none

  std::optional<secret_key> secret = {};  ///< of hash siphash; never written, so absent in what a file says
  std::uint64_t key_check = 0;            ///< bloomery::key_check of the secret; 0: the filter has none

  /// Whether keys expire.
  bool has_window() const noexcept { return window_keys != 0 || window_milliseconds != 0; }

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
/// hash (siphash with a secret, xxh3 for bytes, mix for integers), the key's check value, the geometry (the smallest
/// that keeps target_fpr at capacity, exactly). With a geometry but no rate, target_fpr becomes the exact rate at
/// capacity. The default capacity of a window counted in keys is that number. A choice takes some
/// milliseconds, some tens of them for rates below 1e-5.
///
/// @throws error  invalid_argument: a name that no table knows, a rate or capacity out of range, integer keys for a
///                scheme, a layout and a scheme at once, hash siphash without a secret, or a secret with anything else,
///                a window's length with a layout that has no window, or the other way round;
///                incompatible: a check value that is not the secret's; too_large: no geometry keeps the promise
///
/// Example:
///     const params quick = complete({.capacity = 1'000'000, .target_fpr = 0.01});
///     assert(quick.layout == "split_block" && quick.hash == "xxh3" && quick.geometry.probes == 8);
///     const params small = complete({.capacity = 1'000'000, .target_fpr = 0.01}, preference::memory);
///     assert(small.layout == "blocked_page" && small.geometry.bits < quick.geometry.bits);
///     const params keyed = complete({.capacity = 1000, .target_fpr = 0.01, .secret = random_secret()});
///     assert(keyed.hash == "siphash" && keyed.key_check == key_check(*keyed.secret));
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

/// Bits of a cell: 1, but 4 for counting and 8 for window, and the width of a fingerprint for sealed filters.
///
/// Example:
///     assert(cell_bits_of({.layout = "split_block512"}) == 1);
std::uint32_t cell_bits_of(const params& p) noexcept;

/// The names that params may have, for messages: "split_block, split_block512, blocked, blocked_page, classic".
std::string layout_names();
std::string hash_names();
std::string scheme_names();

}  // namespace bloomery
