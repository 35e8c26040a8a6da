// filter_facts: everything that a filter reports about itself, whatever its kind. filter_handle::info() returns it.
//
// Facts come in sections. A section that does not apply to a filter is empty, so code that prints facts tests for
// sections instead of kinds of filters.
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/detail/generations.hpp>
#include <bloomery/detail/geometry.hpp>
#include <bloomery/judgement.hpp>
#include <bloomery/measure.hpp>
#include <bloomery/params.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace BLOOMERY_EXPORT bloomery {

/// How much info() reads.
enum class info_depth : std::uint8_t {
  counts,      ///< counters and headers; on servers one exchange, in which the servers count the bits of up to 64 MiB
  bits,        ///< also counts all bits: locally at memory speed, on servers in about a millisecond per MiB
  everything,  ///< also reads the whole key log; servers send the bits of filters of at most 64 MiB
};

/// Statistics of the present bits. For sliding-window filters: as of the newest generation.
struct fill_facts {
  std::uint64_t cells = 0;      ///< bits, counters or slots; 0: the number of set cells does not show the fill ratio
  std::uint64_t cells_set = 0;  ///< bits set, non-zero counters, or used slots
  double current_fpr = 0;       ///< FPR of the present bits, 0 to 1
  bool is_exact = true;  ///< false: current_fpr is computed from the number of set cells only, not from their positions
  double uncertainty = 1;  ///< the factor within which current_fpr is right: above 1 for schemes that approximate it
  std::optional<estimate> estimated_keys = {};  ///< distinct keys, from cells_set; infinite if all cells are set;
      ///< empty for quotient filters, whose slots tell only the number of copies

  /// Whether current_fpr follows from the cells without an approximation.
  bool is_certain() const noexcept { return is_exact && uncertainty == 1; }

  /// Fraction of cells that are set, 0 to 1; 0 without cells.
  double fill_ratio() const noexcept {
    return cells == 0 ? 0 : static_cast<double>(cells_set) / static_cast<double>(cells);
  }
};

/// The number of set cells, and the number expected from the key count.
struct consistency_facts {
  fill_check count;        ///< its z-score is count.deviation(); meaningless unless count.conclusive
  std::uint64_t keys = 0;  ///< distinct keys, derived from insert_count
  bool alarm = false;      ///< the difference is statistically significant, and insert_count is not an estimate
};

/// The file that a filter was opened from or loaded from, as it was then.
struct file_facts {
  std::uint64_t bytes = 0;    ///< the whole file
  bool clean = true;          ///< false: another process writes to it, or ended without closing it
  bool slot_damaged = false;  ///< one of the two state slots is unreadable; the other one is used
  std::string metadata = {};  ///< the user's own bytes
  std::string format = {};    ///< a name in file_formats(), for a file of another system; empty: a file of bloomery
};

/// Facts about removals, of filters that support them.
struct removal_facts {
  std::uint64_t refused = 0;  ///< removals of keys that were certainly absent; if not 0, keys may be missing
  double unnoticed = 0;       ///< expected removals of absent keys that were not refused; may be infinite
};

/// Facts about counting filters.
struct counting_facts {
  std::uint64_t counters = 0;
  std::optional<std::uint64_t> full = {};  ///< counters at their maximum, which removals leave as they are; empty: not
                                           ///< read
};

/// Facts about quotient filters.
struct quotient_facts {
  std::uint64_t slots = 0;
  std::uint64_t keys_for = 0;              ///< slots that can be used before a key has no room, almost certainly, if no
                                           ///< key has more than two copies
  std::uint64_t grows_to = 0;              ///< keys that a filter that doubles will have room for; 0: it does not grow
  std::uint32_t fingerprint_bits = 0;      ///< of a slot: a remainder, and a bit for the second block
  std::optional<std::uint64_t> full = {};  ///< fingerprints with the maximum of 15 copies, which removals leave as they
                                           ///< are; empty: not read
};

/// Facts about static filters.
struct static_facts {
  std::uint64_t keys = 0;  ///< exact number of distinct keys
  std::uint64_t partitions = 0;
  std::uint32_t fingerprint_bits = 0;  ///< 1 to 32
  bool has_absent_list = false;        ///< no key of a second list is reported: a cascade
};

/// Why a rebuilding filter cannot use its key log.
enum class log_problem : std::uint8_t {
  none,
  missing,            ///< there is no such file
  unreadable,         ///< it cannot be opened
  of_another_filter,  ///< it has another filter's number
  incomplete,         ///< keys of the filter are missing from it: it was truncated, or is an older version
  damaged,            ///< some records do not match their checksums; info_depth::everything
};

/// The key log of a rebuilding filter. With a problem, the filter still answers lookups but takes no keys.
struct log_facts {
  std::string path;
  bool is_open = false;          ///< false: keys, bytes and generation are unknown
  std::uint64_t keys = 0;        ///< including repetitions
  std::uint64_t bytes = 0;       ///< length of the file up to the end of the last whole record
  std::uint64_t generation = 0;  ///< number of times the log was rewritten, plus 1
  bool was_read = false;         ///< all records were compared with their checksums
  bool has_torn_record = false;  ///< the last record is incomplete: being written, or its writer was killed
  log_problem problem = log_problem::none;
  std::string problem_text = {};          ///< one sentence; empty without a problem
  std::uint64_t bytes_while_growing = 0;  ///< memory while the next, larger filter is built
};

/// A layer of a scalable filter or of a copy of layers; in a copy of a window all layers of a slice.
struct layer_facts {
  bloomery::geometry geometry = {};
  std::uint64_t capacity = 0;                   ///< keys at which the next layer is added
  std::uint64_t insert_count = 0;               ///< keys that were certainly new when inserted into the layer
  double target_fpr = 0;                        ///< at its capacity
  std::optional<std::uint64_t> cells_set = {};  ///< empty: not read
  std::uint64_t start = 0;                      ///< of a slice: milliseconds since 1970
  std::uint64_t expires_at = 0;                 ///< of a slice: milliseconds since 1970
};

/// A copy of a shared filter with a window. Its slices are filter_facts::layers, also those that have expired by
/// `time`; all other facts leave these out.
struct window_copy_facts {
  window_length length;         ///< milliseconds
  std::uint64_t slice = 0;      ///< length of a slice, milliseconds
  std::uint64_t copied_at = 0;  ///< the server's time of the copy, milliseconds since 1970
  std::uint64_t time = 0;       ///< of these facts: of the handle's clock, or copied_at if that is later
};

/// A shared filter on servers.
struct shared_facts {
  std::uint64_t shards = 0;
  std::uint64_t layers = 0;                   ///< of the shard with the most layers
  std::uint64_t lines_per_shard = 0;          ///< 64-byte lines in a shard's first layer
  std::uint64_t epoch = 0;                    ///< changes when the filter is cleared or replaced
  bool grows = false;                         ///< adds layers when full
  std::optional<std::uint64_t> maximum = {};  ///< keys up to which it grows; empty: no limit
};

/// A Guava chain on a server: bitmaps that are filled one after another.
struct chain_facts {
  std::uint64_t growths = 0;             ///< number of bitmaps minus one
  std::vector<std::uint64_t> ones = {};  ///< bits set in each bitmap, the oldest first; empty: not counted
};

/// Everything that a filter reports about itself.
///
/// Example:
///     const std::unique_ptr<filter_handle> seen =
///         make_handle(any_filter(complete({.layout = "classic", .capacity = 1000, .target_fpr = 0.01})));
///     seen->insert(std::vector<std::string>{"Madrid", "Berlin"});
///     const filter_facts facts = seen->info(info_depth::bits);
///     assert(facts.insert_count == 2 && facts.fill->cells_set <= 14);
///     assert(facts.fill->current_fpr < 1e-6 && !facts.consistency->alarm);
///     assert(!facts.file && !facts.counting && !facts.window);
struct filter_facts {
  params parameters;        ///< scalable filters: of the first layer; Guava chains: of one bitmap
  std::uint64_t bits = 0;   ///< of all layers and shards
  std::uint64_t bytes = 0;  ///< the same in bytes

  /// Keys that were certainly new when inserted; for filters with removal the present copies; for static filters all.
  /// Empty: not counted.
  std::optional<std::uint64_t> insert_count = {};
  bool count_is_estimate = false;  ///< insert_count was estimated from the bits, or its file was not closed cleanly
  bool count_is_at_most = false;   ///< insert_count includes room that clients of servers have reserved and may not use
  std::uint64_t distinct_keys = 0;          ///< the best figure for distinct keys: from insert_count, or from the bits
  std::optional<double> expected_fpr = {};  ///< mean FPR of filters with distinct_keys keys; empty: unknown

  /// Keys that may still be inserted before the target FPR is exceeded, at least info_depth::bits. Empty: no limit,
  /// unknown, or a sliding-window filter.
  std::optional<std::uint64_t> keys_left = {};
  std::optional<std::int64_t> expires_at = {};  ///< milliseconds since 1970; empty: never

  std::optional<fill_facts> fill = {};                ///< at least info_depth::bits
  std::optional<consistency_facts> consistency = {};  ///< at least info_depth::bits; local filters with one layer
  std::optional<file_facts> file = {};
  std::optional<window_facts> window = {};  ///< local sliding-window filters, at the time of the filter's clock
  std::optional<removal_facts> removals = {};
  std::optional<counting_facts> counting = {};
  std::optional<quotient_facts> quotient = {};
  std::optional<static_facts> static_keys = {};
  std::optional<log_facts> log = {};
  std::vector<layer_facts> layers = {};  ///< local scalable filters and copies of layers; the oldest first
  std::optional<window_copy_facts> window_copy = {};

  /// Expected number of distinct keys for which insert() wrongly returned false. Local scalable filters.
  std::optional<double> expected_losses = {};
  std::optional<shared_facts> shared = {};
  std::optional<chain_facts> chain = {};
};

/// Judges the FPR of the present bits, or the expected FPR if they were not read. The target FPR of a Guava chain is
/// that of all its bitmaps together. @throws error as judge_fpr(params, fpr)
///
/// Example:
///     any_filter seen(complete({.layout = "classic", .capacity = 1000, .target_fpr = 0.01}));
///     for (int i = 0; i < 3000; ++i) seen.insert(std::to_string(i));
///     assert(judge_fpr(make_handle(std::move(seen))->info(info_depth::bits)).is_broken());
fpr_judgement judge_fpr(const filter_facts& facts);

/// More keys than any filter can hold: stands for an unknown number when all cells are set.
inline constexpr std::uint64_t beyond_counting = std::uint64_t{1} << 62;

/// Estimated distinct keys of a filter of these parameters, `counted` of which were certainly new when inserted.
/// Returns `counted` for static filters and those with removal, and for more than 64 probes, where computing a rate
/// takes a second.
///
/// Example:
///     const params p = complete({.layout = "classic", .capacity = 1000, .target_fpr = 0.01});
///     assert(estimate_distinct(p, 10) == 10 && estimate_distinct(p, 1000) > 1000);
std::uint64_t estimate_distinct(const params& p, std::uint64_t counted);

/// Maximum number of distinct keys with which a filter of these parameters keeps an FPR of `rate`; 0 if there is none.
/// For more than 64 probes: its capacity.
///
/// Example:
///     const params p = complete({.layout = "classic", .capacity = 1000, .target_fpr = 0.01});
///     assert(keys_within(p, 0.01) >= 1000 && keys_within(p, 0.01) < 1010);
std::uint64_t keys_within(const params& p, double rate);

}  // namespace bloomery
