// Generations of a sliding-window filter: length, epoch, key counts and clock.
//
// A window of length W consists of 7 slices of L = ceil(W / 7). The filter holds eight generations of keys, one per
// slice: the newest, which takes new keys, and 7 full ones. Each generation has a number, its epoch. For windows of
// time the epoch is floor(milliseconds since 1970 / L), so that all machines agree; for windows of keys it is
// floor(insertions so far / L). A key inserted in epoch e is reported up to epoch e + 7: at least for W, and at most
// for 8 L = 8 ceil(W / 7), which is about a seventh longer.
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/layouts/sliding.hpp>
#include <bloomery/mapped_storage.hpp>
#include <bloomery/measure.hpp>
#include <bloomery/params.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace BLOOMERY_EXPORT bloomery {

/// The last 24 hours: window_of_time(std::chrono::hours(24)).
constexpr window_length window_of_time(std::chrono::milliseconds time) noexcept {
  return window_of_milliseconds(time.count() > 0 ? static_cast<std::uint64_t>(time.count()) : 0);
}

/// The system's clock; 0 before 1970.
std::uint64_t milliseconds_since_1970() noexcept;

/// The generations of a sliding-window filter at some moment.
struct window_facts {
  window_length length;
  std::uint64_t slice = 0;  ///< L, length of a slice: milliseconds, or insertions
  std::uint64_t keys_per_slice =
      0;                    ///< distinct keys per generation that keep the target FPR: fullest_generations(), or in
                            ///< files of earlier versions ceil(capacity / 7); 0: no target FPR
  std::uint64_t epoch = 0;  ///< of the newest generation
  std::uint64_t insertions = 0;
  keys_by_generation keys{};  ///< keys of each generation; epoch e is at index e % 8
  double rate = 0;            ///< expected FPR with these keys, assuming that all are distinct

  std::uint64_t keys_held() const noexcept;       ///< sum over all generations; a key counts once in each that has it
  bool has_overfull_generation() const noexcept;  ///< a generation has more than keys_per_slice keys
};

/// The rule that assigns keys to generations, and the key counts of the generations. Holds no cells.
class generations {
 public:
  /// @throws error  invalid_argument: p is not of a sliding-window filter, or its window has no length
  explicit generations(const params& p, window_clock clock = {});

  void set_clock(window_clock clock) { clock_ = std::move(clock); }

  /// L, the length of a slice in milliseconds or insertions.
  std::uint64_t slice() const noexcept { return slice_; }

  /// The epoch used by lookups: the newest one, or for windows of time the clock's, if that is later. If the clock goes
  /// backwards, the epoch stays until the clock has caught up, so no key expires too early.
  std::uint64_t epoch(const std::uint8_t* bytes) const {
    std::uint64_t newest;
    std::memcpy(&newest, bytes, sizeof newest);
    return by_keys_ ? newest : later(newest, now());
  }

  /// Splits `keys` keys into runs of at most 256 that each go to one generation, calls write(epoch mod 2^32, first,
  /// count) -> window_insertions for each run, and counts the keys. Returns the number of keys that were certainly new
  /// in the window.
  /// @throws error too_large: more than 2^62 insertions; the runs before are inserted
  template <class Write>
  std::uint64_t each_run(std::uint8_t* bytes, std::size_t keys, Write write) const {
    constexpr std::size_t most = 256;  // what a killed writer may leave uncounted
    std::uint64_t unseen = 0;
    for (std::size_t first = 0; first < keys;) {
      const run r = begin_run(bytes, std::min(most, keys - first));
      const window_insertions done = write(static_cast<std::uint32_t>(r.epoch), first, r.count);
      count(bytes, r.epoch, r.count, done.new_to_generation);
      unseen += done.unseen;
      first += r.count;
    }
    return unseen;
  }

  /// Checks the state in bytes that come from a file. If `settled` is false, another process may be writing them, and
  /// only values that could cause harm are refused. @throws error damaged
  void check(std::span<const std::uint8_t> bytes, bool settled, const std::string& path) const;

  /// Merges the state of another filter into `bytes`, for windows of time. Returns the resulting epoch, the later of
  /// the two.
  /// @throws error  incompatible: a window of keys; too_large: more than 2^62 insertions together. Nothing is changed
  ///                then.
  std::uint64_t unite(std::uint8_t* bytes, const std::uint8_t* other) const;

 private:
  struct run {
    std::uint64_t epoch;
    std::size_t count;
  };

  std::uint64_t now() const;

  // The epoch of a time or an insertion number if it is later than `newest`. It rarely is, which saves the division.
  std::uint64_t later(std::uint64_t newest, std::uint64_t moment) const noexcept {
    return moment < (newest + 1) * slice_ ? newest : std::max(newest, moment / slice_);
  }

  run begin_run(std::uint8_t* bytes, std::size_t wanted) const {
    const window_state s = window_state::of(bytes);
    check_insertions(s.insertions, wanted);
    const std::uint64_t epoch = later(s.newest, by_keys_ ? s.insertions : now());
    if (epoch != s.newest) [[unlikely]]
      begin_generation(bytes, s, epoch);
    if (by_keys_)
      wanted = static_cast<std::size_t>(std::min<std::uint64_t>(wanted, (epoch + 1) * slice_ - s.insertions));
    return {epoch, wanted};
  }

  // Files with a larger count are refused.
  static constexpr std::uint64_t most_insertions = std::uint64_t{1} << 62;

  static void check_insertions(std::uint64_t before, std::uint64_t more) {
    if (before > most_insertions || more > most_insertions - before) [[unlikely]]
      refuse_insertions();
  }
  [[noreturn]] static void refuse_insertions();

  static void begin_generation(std::uint8_t* bytes, const window_state& s, std::uint64_t epoch) noexcept;

  // In this order, so that even after a kill no generation counts more keys than were inserted.
  static void count(std::uint8_t* bytes, std::uint64_t epoch, std::uint64_t keys, std::uint64_t fresh) noexcept {
    add(bytes + offsetof(window_state, insertions), keys);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    add(bytes + offsetof(window_state, keys) + 8 * (epoch % window_generations), fresh);
  }

  static void add(std::uint8_t* at, std::uint64_t more) noexcept {
    std::uint64_t value;
    std::memcpy(&value, at, sizeof value);
    value += more;
    std::memcpy(at, &value, sizeof value);
  }

  bool by_keys_;
  std::uint64_t slice_;
  window_clock clock_;
};

/// Refuses the bytes of a file whose state is impossible; see generations::check(). @throws error damaged
void check_window_state(const params& p, std::span<const std::uint8_t> bytes, bool settled, const std::string& path);

/// Merges the keys of `from` into `into`, generation by generation, as of the later epoch of the two. Both are bytes of
/// filters of these params, with a window of time. A key that both have in one generation counts twice.
/// @throws error  incompatible: a window of keys; too_large: more than 2^62 insertions together; invalid_argument:
///                another number of bytes, or not a sliding-window filter
void merge_windows(const params& p, std::span<std::uint8_t> into, std::span<const std::uint8_t> from);

/// The facts of a sliding-window filter with these bytes, at `epoch`, or at the epoch of the newest generation.
/// @throws error  invalid_argument: p is not of a sliding-window filter, or another number of bytes
window_facts facts_of_window(const params& p, std::span<const std::uint8_t> bytes,
                             std::optional<std::uint64_t> epoch = {});

/// The set cells of each generation and the current FPR at `epoch`, or at the epoch of the newest generation. Reads all
/// bytes. @throws error as facts_of_window
window_cells measure_window_fill(const params& p, std::span<const std::uint8_t> bytes,
                                 std::optional<std::uint64_t> epoch = {});

/// The consistency check of a sliding-window filter: compares the set cells of each generation with its key count, as
/// check_fill() does for other filters. @throws error as facts_of_window
fill_check check_window_fill(const params& p, std::span<const std::uint8_t> bytes);

}  // namespace bloomery
