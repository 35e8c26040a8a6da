// Which filter? All that bloomery has, from what is asked of them: a fixed size, counters, growth, a window, a seal.
//
// The rule: of the structures that can do what is asked, the one that takes the fewest bits a key at its worst. Within a
// structure the layout follows from the rule of choice.hpp. All sizes and rates are exact; nothing is estimated. The
// same in a page of words is docs/choosing.md.
#pragma once

#include <bloomery/params.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace bloomery {

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
  windowed,  ///< forgets what is long ago: windowed_filter
  sealed,    ///< made at once of all its keys: sealed_filter
  growing,   ///< layer upon layer, in memory: growing_filter
  logged,    ///< rebuilt at the size it needs, from a log: logged_filter
};

/// "plain", "counting", "windowed", "sealed", "growing" or "logged".
const char* name_of(structure s) noexcept;

/// The number of keys for which growing filters are computed if nobody knows how many will come.
inline constexpr std::uint64_t assumed_keys = 100'000'000;

/// A structure, and what it would take to do what is asked.
struct option {
  structure take = structure::plain;

  /// Of what can be made by params: complete, but for the secret of a keyed filter. Of logged the filter after a rebuild
  /// at `for_keys`; of growing its first layer.
  params parameters = {};

  std::uint64_t for_keys = 0;    ///< distinct keys that the figures are for; with a window, those in it
  double bits_a_key = 0;         ///< with all of them in; of logged just after a rebuild, of growing with full layers
  double worst_bits_a_key = 0;   ///< at the worst moment: just grown, while it is rebuilt, with the fewest keys in
  std::uint64_t bytes = 0;       ///< of memory at the worst moment up to `for_keys`
  std::uint64_t disk_bytes = 0;  ///< of the log
  double rate = 0;               ///< exact, with all of them in; of growing what its layers' rates sum to at most
  std::uint32_t lines = 0;       ///< cache lines that a lookup touches, at most
  std::string reason = {};       ///< why it is taken, or why it is passed over

  /// False: it cannot do what is asked, and the figures are 0; the reason says why.
  bool possible() const noexcept { return bytes != 0; }
};

/// What another requirement would bring.
struct change {
  std::string what;  ///< "with a log on disk", "without deletes"
  structure take = structure::plain;
  std::string layout = {};
  double bits_a_key = 0;
  double worst_bits_a_key = 0;
  std::string text = {};  ///< the whole sentence: "with a log on disk: logged, 12.52 bits a key instead of 32.9 ..."
};

/// What to take, and why.
struct advice {
  option taken;
  std::vector<option> passed_over;        ///< the other structures, each with its reason
  std::vector<change> changes;            ///< what would change it
  std::vector<std::string> warnings;      ///< what the choice cannot promise
  bool needs_secret = false;              ///< give parameters.secret before making it: random_secret()
  std::uint64_t most_keys_in_memory = 0;  ///< of one that grows, with a memory limit: the keys that fit
};

/// Chooses among all structures.
///
/// @throws error  invalid_argument: a rate outside (0, 1), most_keys below keys, requirements that contradict each other
///                (both are named, and the way out); too_large: nothing fits the memory, or no geometry keeps the rate
///                (the smallest that is possible is named, and what would have to give)
///
/// Example:
///     const advice fixed = advise({.keys = 1'000'000, .rate = 0.01});
///     assert(fixed.taken.take == structure::plain && fixed.taken.parameters.layout == "split_block");
///     const advice deletes = advise({.keys = 1'000'000, .rate = 0.01, .deletes = true});
///     assert(deletes.taken.take == structure::counting);
///     const advice sealed = advise({.keys = 1'000'000, .rate = 0.01, .sealed = true});
///     assert(sealed.taken.parameters.layout == "fuse8" && sealed.taken.bits_a_key < 9.1);
///     const advice unknown = advise({.rate = 0.01});
///     assert(unknown.taken.take == structure::growing && unknown.taken.worst_bits_a_key < 34);
///     const advice unknown_with_log = advise({.rate = 0.01, .log = true});
///     assert(unknown_with_log.taken.take == structure::logged && unknown_with_log.taken.bits_a_key < 13);
advice advise(const requirements& wanted);

}  // namespace bloomery
