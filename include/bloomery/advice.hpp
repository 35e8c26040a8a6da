// Selection of a filter structure from requirements: fixed size, counting, scalable, sliding-window or static.
//
// The rule: take the structure that meets the requirements with the fewest bits per key in its worst case. Within a
// structure, the rule of choice.hpp selects the layout. All sizes and rates are exact; nothing is estimated.
// docs/choosing.md explains the rule in prose.
#pragma once

#include <bloomery/choice.hpp>
#include <bloomery/detail/export.hpp>
#include <bloomery/error.hpp>
#include <bloomery/params.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace BLOOMERY_EXPORT bloomery {

/// Requirements on a filter. A field that is 0 or false requires nothing.
struct requirements {
  std::uint64_t keys = 0;       ///< n, expected distinct keys, or the minimum if most_keys is given; 0: unknown
  std::uint64_t most_keys = 0;  ///< maximum number of distinct keys; 0: the same as `keys`, or unknown
  double rate = 0.01;           ///< p, a probability in (0, 1): the highest FPR at any time

  bool grows = false;    ///< more than `keys` may be inserted, without a known limit; implied by keys = most_keys = 0
  bool deletes = false;  ///< keys are removed
  bool sealed = false;   ///< all keys are known beforehand and never change
  /// Keys expire after this window. With a window of time, `keys` is the number of keys within it; a window of keys
  /// implies that number.
  window_length window = {};

  bool log = false;                ///< a key log of 8 bytes per key may be kept on disk beside the filter's file
  std::uint64_t memory_bytes = 0;  ///< memory limit at any time; 0: no limit
  bool threat = false;             ///< keys come from parties that would profit from false positives
  preference prefer = preference::speed;
  key_kind kind = key_kind::bytes;
};

/// Filter structures. The first four are the families of params; the others combine plain filters.
enum class structure : std::uint8_t {
  plain,     ///< fixed size: filter<>, any_filter
  counting,  ///< supports removal: layout "counting"
  windowed,  ///< expires old keys: sliding_window_filter
  sealed,    ///< built once from all keys: static_filter
  growing,   ///< adds layers, in memory: scalable_filter
  logged,    ///< rebuilt at the required size from a key log: rebuilding_filter
};

/// "plain", "counting", "windowed", "sealed", "growing" or "logged".
const char* name_of(structure s) noexcept;

/// The reason for taking or rejecting a structure.
enum class ground : std::uint8_t {
  // rejected: it cannot meet the requirements
  forgets_keys,      ///< a sliding-window filter, but no key may expire
  keeps_all_keys,    ///< keys must expire, but it keeps all keys
  cannot_remove,     ///< keys must be removable
  keys_come_later,   ///< a static filter, but not all keys are known beforehand
  needs_log,         ///< no log is allowed on disk
  needs_capacity,    ///< the number of keys is unknown
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
  removes_keys,          ///< no other structure supports removal
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
};

/// The change in a few words: "without deletes".
const char* phrase_of(what_if change) noexcept;

/// What the choice does not guarantee.
enum class caution : std::uint8_t {
  remove_only_inserted,     ///< removing a key that was never inserted may cause false negatives
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
  /// `for_keys`. For scalable filters: the first layer.
  params parameters = {};

  std::uint64_t for_keys = 0;  ///< number of distinct keys that the figures assume; with a window, those in the window
  double bits_per_key = 0;     ///< at `for_keys`; rebuilding: just after a rebuild; scalable: with full layers
  double worst_bits_per_key = 0;      ///< worst case: just grown, during a rebuild, or with the fewest keys
  std::uint64_t bytes = 0;            ///< peak memory up to `for_keys`
  std::uint64_t disk_bytes = 0;       ///< size of the key log
  double rate = 0;                    ///< exact FPR at `for_keys`; scalable: upper bound of the sum over the layers
  std::uint32_t lines = 0;            ///< maximum number of cache lines per lookup
  ground why = ground::number_known;  ///< why it is taken or rejected
  layout_judgement layout_why = {};   ///< plain and sliding-window, if taken: why this layout
  std::optional<error> problem = {};  ///< for cannot_keep_rate

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
///     assert(deletes.taken.take == structure::counting);
///     const advice sealed = advise({.keys = 1'000'000, .rate = 0.01, .sealed = true});
///     assert(sealed.taken.parameters.layout == "fuse8" && sealed.taken.bits_per_key < 9.1);
///     const advice unknown = advise({.rate = 0.01});
///     assert(unknown.taken.take == structure::growing && unknown.taken.worst_bits_per_key < 34);
///     const advice unknown_with_log = advise({.rate = 0.01, .log = true});
///     assert(unknown_with_log.taken.take == structure::logged && unknown_with_log.taken.bits_per_key < 13);
advice advise(const requirements& wanted);

}  // namespace bloomery
