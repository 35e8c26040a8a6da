// Which filter? All that bloomery has, from what is asked of them: a fixed size, counters, growth, a window, a seal.
//
// The rule: of the structures that can do what is asked, the one that takes the fewest bits a key at its worst. Within
// a structure the layout follows from the rule of choice.hpp. All sizes and rates are exact; nothing is estimated. The
// same in a page of words is docs/choosing.md.
#pragma once

#include <bloomery/choice.hpp>
#include <bloomery/error.hpp>
#include <bloomery/export.hpp>
#include <bloomery/params.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace BLOOMERY_EXPORT bloomery {

/// What is asked of a filter. What is left at 0 or false is not asked for.
struct requirements {
  std::uint64_t keys = 0;       ///< n, distinct keys to expect, or the fewest if there is a most; 0: nobody knows
  std::uint64_t most_keys = 0;  ///< the most distinct keys that may come; 0: as many as `keys`, or nobody knows
  double rate = 0.01;           ///< p, a probability in (0, 1): the most errors, over the whole life of the filter

  bool grows = false;    ///< more than `keys` may come, nobody knows how many; keys = most_keys = 0 says so too
  bool deletes = false;  ///< keys are taken out again
  bool sealed = false;   ///< all keys are known beforehand, and none comes or goes later
  std::uint64_t window_milliseconds = 0;  ///< what came longer ago is forgotten; `keys` is how many come in that time
  std::uint64_t window_keys = 0;          ///< what came before the last so many insertions is forgotten

  bool log = false;                ///< a log of 8 bytes a key may lie on disk beside the filter's file
  std::uint64_t memory_bytes = 0;  ///< the most memory it may take, ever; 0: no limit
  bool threat = false;             ///< others choose keys, and would gain by errors
  preference prefer = preference::speed;
  key_kind kind = key_kind::bytes;
};

/// The ways to remember keys. The first four are the families of params; the others are made of plain filters.
enum class structure : std::uint8_t {
  plain,     ///< of a fixed size: filter<>, any_filter
  counting,  ///< keys can be removed: layout "counting"
  windowed,  ///< forgets what is long ago: sliding_window_filter
  sealed,    ///< made at once of all its keys: static_filter
  growing,   ///< layer upon layer, in memory: scalable_filter
  logged,    ///< rebuilt at the size it needs, from a log: rebuilding_filter
};

/// "plain", "counting", "windowed", "sealed", "growing" or "logged".
const char* name_of(structure s) noexcept;

/// Why a structure is taken or passed over.
enum class ground : std::uint8_t {
  // passed over, because it cannot do what is required
  forgets_keys,      ///< a sliding-window filter, and no key is to be forgotten
  keeps_all_keys,    ///< keys are to be forgotten, and it forgets none
  cannot_remove,     ///< keys are to be removed
  keys_come_later,   ///< a static filter, and not all keys are known beforehand
  needs_log,         ///< no log is allowed on disk
  needs_capacity,    ///< the number of keys is unknown
  cannot_keep_rate,  ///< no geometry keeps the target FPR: see option::problem

  // passed over, although it could
  over_memory,  ///< needs more than the memory limit
  more_bits,    ///< takes more bits per key at its worst
  less_simple,  ///< takes as many bits per key at its worst as a simpler one

  // taken
  number_known,          ///< the number of keys is known, so a fixed size is enough
  smaller_than_growing,  ///< made for the most keys, it takes less with the fewest than a filter that grows may take
  no_such_fingerprint,   ///< all keys are known, but no fingerprint keeps the target FPR
  static_not_smaller,    ///< all keys are known, but a static filter would not be smaller at this rate
  static_is_smaller,     ///< all keys are known, so that it can be smaller
  removes_keys,          ///< no other structure removes keys
  forgets_old_keys,      ///< no other structure forgets old keys
  grows,                 ///< the number of keys is unknown
  grows_with_log,        ///< the number of keys is unknown, and a log is allowed
};

/// A change of the requirements.
enum class what_if : std::uint8_t {
  without_deletes,
  nothing_forgotten,  ///< without a window
  with_log,           ///< a log on disk is allowed
  no_more_keys,       ///< it does not grow beyond `keys`
  number_known,       ///< the number of keys is known
  sealed_in_the_end,  ///< a static filter, once all keys are there
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
  remove_only_inserted,     ///< removing a key that was never inserted may remove parts of others
  removal_helps_attackers,  ///< a client that can have absent keys removed can make present keys vanish, secret or not
  false_positives_last,     ///< a false positive that was found stays until the filter is made with another secret
  memory_bounds_keys,       ///< advice::most_keys_in_memory is all that fits
};

/// The number of keys for which growing filters are computed if nobody knows how many will come.
inline constexpr std::uint64_t assumed_keys = 100'000'000;

/// A structure, and what it would take to do what is asked.
struct option {
  structure take = structure::plain;

  /// Of what can be made by params: complete, but for the secret of a keyed filter. Of logged the filter after a
  /// rebuild at `for_keys`; of growing its first layer.
  params parameters = {};

  std::uint64_t for_keys = 0;     ///< distinct keys that the figures are for; with a window, those in it
  double bits_per_key = 0;        ///< with all of them in; of logged just after a rebuild, of growing with full layers
  double worst_bits_per_key = 0;  ///< at the worst moment: just grown, while it is rebuilt, with the fewest keys in
  std::uint64_t bytes = 0;        ///< of memory at the worst moment up to `for_keys`
  std::uint64_t disk_bytes = 0;   ///< of the log
  double rate = 0;                ///< exact, with all of them in; of growing what its layers' rates sum to at most
  std::uint32_t lines = 0;        ///< cache lines that a lookup touches, at most
  ground why = ground::number_known;  ///< it is taken or passed over
  layout_judgement layout_why = {};   ///< plain and windowed, where taken: the choice of their layout
  std::optional<error> problem = {};  ///< of cannot_keep_rate

  /// False: it cannot do what is asked, and the figures are 0; `why` is the cause.
  bool possible() const noexcept { return bytes != 0; }
};

/// What another requirement would bring.
struct change {
  what_if what;
  option then;  ///< what would be taken; its `why` has no meaning here
};

/// What to take, and why.
struct advice {
  option taken;
  std::vector<option> passed_over;        ///< the other structures, each with its reason
  std::vector<change> changes;            ///< what would change it
  std::vector<caution> cautions;          ///< what the choice does not guarantee
  bool needs_secret = false;              ///< give parameters.secret before making it: random_secret()
  std::uint64_t most_keys_in_memory = 0;  ///< of one that grows, with a memory limit: the keys that fit
};

/// Chooses among all structures.
///
/// @throws error  invalid_argument: a rate outside (0, 1), most_keys below keys, requirements that contradict each
///                other
///                (both are named); too_large: nothing fits the memory, or no geometry keeps the rate (the smallest that
///                is possible is named). The hints say which requirements to change.
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
