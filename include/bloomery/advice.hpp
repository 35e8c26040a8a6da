// Choice of a filter: advise() selects the structure (fixed size, counting, quotient, scalable, sliding-window or
// static) that suits the requirements, and layout_candidates() the layout of a filter of fixed size. Both give their
// reasons.
//
// The rule for structures: take the one that meets the requirements with the fewest bits per key in its worst case.
// docs/choosing.md explains it in prose.
//
// The rule for layouts: let `best` be the fewest bits with which any layout keeps target FPR p for n keys. Among the
// layouts that need at most 25% more (preference::speed) or 3% more (preference::memory), the fastest is taken. Sizes
// are whole blocks, so 4096 bytes more are always allowed; otherwise ten keys would get the slowest layout to save a
// few bytes. complete() follows this rule. docs/choice.md has its results.
//
// All sizes and rates are exact, except the second level of a static filter of two lists, whose expected size is used.
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/detail/geometry.hpp>
#include <bloomery/error.hpp>
#include <bloomery/params.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace BLOOMERY_EXPORT bloomery {

/// Percentage by which a layout may exceed the smallest size: 25 for speed, 3 for memory.
unsigned allowed_percent(preference prefer) noexcept;

/// Bytes by which a layout may always exceed the smallest size.
inline constexpr std::uint64_t always_allowed_bytes = 4096;

/// Maximum size of a layout in bits, if the smallest candidate needs `fewest` bits.
///
/// Example:
///     assert(most_bits(100'000'000, preference::speed) == 125'000'000);
///     assert(most_bits(100'000'000, preference::memory) == 103'000'000);
///     assert(most_bits(100, preference::memory) == 100 + 8 * 4096);
std::uint64_t most_bits(std::uint64_t fewest, preference prefer) noexcept;

/// The reason for taking or rejecting a layout.
enum class layout_ground : std::uint8_t {
  impossible,          ///< cannot keep the target FPR: see candidate::problem
  needs_more,          ///< needs more memory than the preference allows
  slower,              ///< within the allowance, but slower than the layout taken
  only_one,            ///< taken: no other layout is within the allowance
  quickest,            ///< taken: the fastest layout within the allowance
  quickest_that_fits,  ///< taken by advise(): the fastest that fits into memory, because the rule's layout does not
};

/// The result of the rule for one layout, with its figures.
struct layout_judgement {
  layout_ground ground = layout_ground::impossible;
  std::string than = {};           ///< the layout compared with: for slower the one taken, otherwise the smallest
  double than_bits_per_key = 0;    ///< bits per key of `than`
  double more = 0;                 ///< needs_more: additional bits relative to `than`: 0.37 for 37% more
  std::uint64_t within = 0;        ///< number of layouts within the allowance
  unsigned allowed_percent = 0;    ///< the allowance above the fewest bits; 0: always_allowed_bytes, which is larger
  unsigned preferred_percent = 0;  ///< allowed_percent() of the preference
};

/// A layout and its size for the target FPR.
struct candidate {
  std::string layout;
  bloomery::geometry geometry = {};  ///< the smallest that keeps the target FPR; 0 bits if there is none
  double rate = 0;                   ///< exact FPR at capacity
  double bits_per_key = 0;
  bool within = false;  ///< within the allowance of the preference
  bool chosen = false;
  layout_judgement why = {};
  std::optional<error> problem = {};  ///< why it cannot keep the target FPR

  bool possible() const noexcept { return geometry.bits != 0; }
};

/// All layouts for n keys at target FPR p, the fastest first; complete() takes the chosen one. None is chosen if no
/// layout can keep the target FPR.
///
/// @throws error  invalid_argument: n is 0, p is outside (0, 1) or NaN
///
/// Example:
///     const std::vector<candidate> all = layout_candidates(1'000'000, 0.01);
///     assert(all.front().layout == "split_block" && all.front().chosen);
///     const candidate& last = all.back();
///     assert(last.layout == "classic" && last.why.ground == layout_ground::slower && last.why.than == "split_block");
std::vector<candidate> layout_candidates(std::uint64_t capacity, double target_fpr,
                                         preference prefer = preference::speed);

/// Applies the rule to candidates with known geometry, ordered from the fastest to the slowest. Sets `within`, `chosen`
/// and `why` of the possible ones.
void judge(std::vector<candidate>& candidates, preference prefer);

/// Requirements on a filter. A field that is 0 or false requires nothing.
struct requirements {
  std::uint64_t keys = 0;       ///< n, expected distinct keys, or the minimum if most_keys is given; 0: unknown
  std::uint64_t most_keys = 0;  ///< maximum number of distinct keys; 0: the same as `keys`, or unknown
  double rate = 0.01;           ///< p, a probability in (0, 1): the highest FPR at any time

  bool grows = false;    ///< more than `keys` may be inserted, without a known limit; implied by keys = most_keys = 0
  bool deletes = false;  ///< keys are removed
  bool sealed = false;   ///< all keys are known beforehand and never change
  /// Number of distinct absent keys that are also known beforehand; the filter reports none of them. Implies `sealed`;
  /// `rate` is then that of other absent keys.
  std::uint64_t never_for = 0;
  /// Keys expire after this window. With a window of time, `keys` is the number of keys within it; a window of keys
  /// implies that number.
  window_length window = {};

  bool log = false;                ///< a key log of 8 bytes per key may be kept on disk beside the filter's file
  std::uint64_t memory_bytes = 0;  ///< memory limit at any time; 0: no limit
  bool threat = false;             ///< keys come from parties that would profit from false positives
  preference prefer = preference::speed;
  key_kind kind = key_kind::bytes;
};

/// Filter structures. The first five are the families of params; the others combine plain filters.
enum class structure : std::uint8_t {
  plain,           ///< fixed size: filter<>, any_filter
  counting,        ///< supports removal: layout "counting"
  sliding_window,  ///< expires old keys: sliding_window_filter
  static_set,      ///< built once from all keys: static_filter
  quotient,        ///< supports removal, up to 15 copies of a key: layouts "quotient4" to "quotient24"
  scalable,        ///< adds layers, in memory: scalable_filter
  rebuilding,      ///< rebuilt at the required size from a key log: rebuilding_filter
};

/// "plain", "counting", "windowed", "sealed", "quotient", "growing" or "logged".
const char* name_of(structure s) noexcept;

/// The reason for taking or rejecting a structure.
enum class ground : std::uint8_t {
  // rejected: it cannot meet the requirements
  forgets_keys,      ///< a sliding-window filter, but no key may expire
  keeps_all_keys,    ///< keys must expire, but it keeps all keys
  cannot_remove,     ///< keys must be removable
  refuses_keys,      ///< a quotient filter, which refuses keys when it is full, but no key is removed
  keys_come_later,   ///< a static filter, but not all keys are known beforehand
  needs_log,         ///< no log is allowed on disk
  needs_capacity,    ///< the number of keys is unknown
  reports_absent,    ///< it may report known absent keys
  cannot_keep_rate,  ///< no geometry keeps the target FPR: see option::problem

  // rejected although it meets the requirements
  over_memory,  ///< needs more than the memory limit
  more_bits,    ///< takes more bits per key in its worst case
  less_simple,  ///< takes as many bits per key in its worst case as a simpler structure

  // taken
  number_known,          ///< the number of keys is known, so a fixed size is enough
  smaller_than_growing,  ///< sized for most_keys, it takes fewer bits per key at `keys` than a scalable filter may take
  no_such_fingerprint,   ///< all keys are known, but no fingerprint keeps the target FPR
  static_not_smaller,    ///< all keys are known, but a static filter would not be smaller at this rate
  static_is_smaller,     ///< all keys are known, so a static filter can be smaller
  reports_no_absent,     ///< only a static filter of two lists reports none of the known absent keys
  removes_keys,          ///< the smallest structure that supports removal
  forgets_old_keys,      ///< no other structure expires old keys
  grows,                 ///< the number of keys is unknown
  grows_with_log,        ///< the number of keys is unknown, and a log is allowed
};

/// A change of the requirements.
enum class what_if : std::uint8_t {
  without_deletes,
  nothing_forgotten,  ///< without a window
  with_log,           ///< a log on disk is allowed
  no_more_keys,       ///< no growth beyond `keys`
  number_known,       ///< the number of keys is known
  sealed_in_the_end,  ///< a static filter, built when all keys are known
  keys_come_later,    ///< not a static filter
  no_keys_later,      ///< a static filter
  prefer_memory,      ///< preference::memory
  prefer_speed,       ///< preference::speed
  no_memory_limit,
  tenth_of_the_rate,  ///< a tenth of the target FPR
  one_cache_line,     ///< a lookup may touch one cache line only
  absent_reported,    ///< known absent keys may be reported
};

/// The change in a few words: "without deletes".
const char* phrase_of(what_if change) noexcept;

/// What the choice does not guarantee.
enum class caution : std::uint8_t {
  remove_only_inserted,  ///< removing a key that was never inserted may cause false negatives
  room_for_copies,       ///< a quotient filter refuses keys when it is full; each copy of a key takes room, up to 15,
                         ///< and keys with more than two copies fill it earlier
  removal_helps_attackers,  ///< a client that can remove absent keys can cause false negatives, even with a secret
  false_positives_last,     ///< a false positive stays one until the filter is rebuilt with another secret
  memory_bounds_keys,       ///< at most advice::most_keys_in_memory keys fit
};

/// The number of keys that figures of scalable and rebuilding filters assume if the number of keys is unknown.
inline constexpr std::uint64_t assumed_keys = 100'000'000;

/// A structure and its cost under the given requirements.
struct option {
  structure take = structure::plain;

  /// Complete except for the secret of a keyed filter. For rebuilding filters: the filter after a rebuild at
  /// `for_keys`. For scalable filters: the first layer. For quotient filters that grow: the first size.
  params parameters = {};

  std::uint64_t for_keys = 0;  ///< number of distinct keys that the figures assume; with a window, those in the window
  double bits_per_key = 0;     ///< at `for_keys`; rebuilding: just after a rebuild; scalable: with full layers
  double worst_bits_per_key = 0;      ///< worst case: just grown, during a rebuild, or with the fewest keys
  bool doubles = false;               ///< quotient filters: starts small and grows up to `for_keys`
  std::uint64_t bytes = 0;            ///< peak memory up to `for_keys`
  std::uint64_t disk_bytes = 0;       ///< size of the key log
  double rate = 0;                    ///< exact FPR at `for_keys`; scalable: upper bound of the sum over the layers
  std::uint32_t lines = 0;            ///< maximum number of cache lines per lookup
  ground why = ground::number_known;  ///< why it is taken or rejected
  layout_judgement layout_why = {};   ///< plain and sliding-window, if taken: why this layout
  std::optional<error> problem = {};  ///< for cannot_keep_rate

  /// Bits per key that any filter with this rate takes at least; with requirements::never_for, the larger one of this
  /// bound and that of any filter of both lists.
  double lower_bound_bits_per_key = 0;

  /// The layout to create it with: that of `parameters`, or "quotient_growing".
  std::string layout() const { return doubles ? "quotient_growing" : parameters.layout; }

  /// False: it cannot meet the requirements. `why` has the reason, and the figures are 0.
  bool possible() const noexcept { return bytes != 0; }
};

/// The result of a change of the requirements.
struct change {
  what_if what;
  option then;  ///< the structure that would be taken; its `why` has no meaning here
};

/// The recommended structure and the reasons for it.
struct advice {
  option taken;
  std::vector<option> passed_over;        ///< the other structures, each with its reason
  std::vector<change> changes;            ///< changes of the requirements that lead to another structure
  std::vector<caution> cautions;          ///< what the choice does not guarantee
  bool needs_secret = false;              ///< set parameters.secret before creating the filter: random_secret()
  std::uint64_t most_keys_in_memory = 0;  ///< for filters that grow, with a memory limit: the keys that fit
};

/// Chooses among all structures.
///
/// @throws error  invalid_argument: a rate outside (0, 1), most_keys below keys, or two requirements that contradict
///                each other (the error names both); too_large: no structure fits into the memory limit, or no geometry
///                keeps the rate (the error names the smallest possible). The hint says which requirements to change.
///
/// Example:
///     const advice fixed = advise({.keys = 1'000'000, .rate = 0.01});
///     assert(fixed.taken.take == structure::plain && fixed.taken.parameters.layout == "split_block");
///     const advice deletes = advise({.keys = 1'000'000, .rate = 0.01, .deletes = true});
///     assert(deletes.taken.take == structure::quotient && deletes.taken.bits_per_key < 10.5);
///     const advice sealed = advise({.keys = 1'000'000, .rate = 0.01, .sealed = true});
///     assert(sealed.taken.parameters.layout == "fuse7" && sealed.taken.bits_per_key < 8);
///     const advice unknown = advise({.rate = 0.01});
///     assert(unknown.taken.take == structure::scalable && unknown.taken.worst_bits_per_key < 34);
///     const advice unknown_with_log = advise({.rate = 0.01, .log = true});
///     assert(unknown_with_log.taken.take == structure::rebuilding && unknown_with_log.taken.bits_per_key < 13);
advice advise(const requirements& wanted);

}  // namespace bloomery
