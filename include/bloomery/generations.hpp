// The generations of keys that a windowed filter holds: their lengths and numbers, what they count, and the clock.
//
// A window of length W is cut into 7 parts of L = ceil(W / 7). Eight generations of keys are held: the newest, which
// takes the keys of now, and 7 full ones. A generation has a number, its epoch: by time floor(milliseconds since 1970 /
// L), so that all machines agree; by keys floor(insertions so far / L). A key that was inserted in epoch e is reported
// up to epoch e + 7: never shorter than W, and at most 8 L = 8 ceil(W / 7), about a seventh longer.
#pragma once

#include <bloomery/export.hpp>
#include <bloomery/fill_check.hpp>
#include <bloomery/layouts/sliding.hpp>
#include <bloomery/params.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace BLOOMERY_EXPORT bloomery {

/// What a windowed filter remembers: so many insertions, or so long a time. One of the two is 0.
struct window_length {
  std::uint64_t keys = 0;
  std::uint64_t milliseconds = 0;

  friend bool operator==(const window_length&, const window_length&) = default;
};

/// The last `keys` insertions.
inline window_length window_of_keys(std::uint64_t keys) noexcept { return {keys, 0}; }

/// The last 24 hours: window_of_time(std::chrono::hours(24)).
inline window_length window_of_time(std::chrono::milliseconds time) noexcept {
  return {0, time.count() > 0 ? static_cast<std::uint64_t>(time.count()) : 0};
}

/// Tells the time in milliseconds since 1970. An empty one stands for the system's clock.
using window_clock = std::function<std::uint64_t()>;

/// The system's clock; 0 before 1970.
std::uint64_t milliseconds_since_1970() noexcept;

/// What a windowed filter knows about its generations at some moment.
struct window_facts {
  window_length length;
  std::uint64_t part = 0;  ///< L: milliseconds, or insertions, of a generation
  std::uint64_t keys_per_slice =
      0;  ///< distinct keys that the promise allows in a generation: ceil(capacity / 7); 0: it promises nothing
  std::uint64_t epoch = 0;  ///< of the newest generation
  std::uint64_t insertions = 0;
  keys_by_generation keys{};  ///< of each generation; that of epoch e is at e % 8
  double rate = 0;            ///< with these keys, exactly, as if they were all different

  std::uint64_t keys_held() const noexcept;       ///< of all generations: a key counts once in each that has it
  bool has_overfull_generation() const noexcept;  ///< one has more keys than the promise allows
};

/// Which generation keys go to: the rule of the epochs, and the count of what the generations have. It holds no cells.
class generations {
 public:
  /// @throws error  invalid_argument: p is not of a windowed filter, or its window has no length, or two
  explicit generations(const params& p, window_clock clock = {});

  void set_clock(window_clock clock) { clock_ = std::move(clock); }

  /// L, milliseconds or insertions of a generation.
  std::uint64_t part() const noexcept { return part_; }

  /// The epoch at which lookups see the filter: the newest one, or by time a later one if the clock says so. A clock
  /// that goes backwards is not followed: time stands still until it is back, and nothing is forgotten too early.
  std::uint64_t epoch(const std::uint8_t* bytes) const {
    std::uint64_t newest;
    std::memcpy(&newest, bytes, sizeof newest);
    return by_keys_ ? newest : later(newest, now());
  }

  /// Calls write(epoch mod 2^32, first, count) -> window_insertions for runs of `keys` keys that go to one generation
  /// each, and counts them. A run is 256 keys at most. Returns how many were certainly new in the window.
  /// @throws error too_large: more than 2^62 insertions, after the runs before them
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

  /// The state of bytes that come from a file. With `settled` false somebody may be writing them, and only what could
  /// do harm is refused. @throws error damaged
  void check(std::span<const std::uint8_t> bytes, bool settled, const std::string& path) const;

  /// Makes the state that of both filters, by time, at the later epoch of the two, which is returned.
  /// @throws error  incompatible: by keys; too_large: more than 2^62 insertions in both. Nothing is changed then.
  std::uint64_t unite(std::uint8_t* bytes, const std::uint8_t* other) const;

 private:
  struct run {
    std::uint64_t epoch;
    std::size_t count;
  };

  std::uint64_t now() const;

  // The epoch of a moment or of an insertion, if that is later than `newest`. It seldom is: the division is saved.
  std::uint64_t later(std::uint64_t newest, std::uint64_t moment) const noexcept {
    return moment < (newest + 1) * part_ ? newest : std::max(newest, moment / part_);
  }

  run begin_run(std::uint8_t* bytes, std::size_t wanted) const {
    const window_state s = window_state::of(bytes);
    check_insertions(s.insertions, wanted);
    const std::uint64_t epoch = later(s.newest, by_keys_ ? s.insertions : now());
    if (epoch != s.newest) [[unlikely]]
      begin_generation(bytes, s, epoch);
    if (by_keys_)
      wanted = static_cast<std::size_t>(std::min<std::uint64_t>(wanted, (epoch + 1) * part_ - s.insertions));
    return {epoch, wanted};
  }

  // No file may say that there were more.
  static constexpr std::uint64_t most_insertions = std::uint64_t{1} << 62;

  static void check_insertions(std::uint64_t before, std::uint64_t more) {
    if (before > most_insertions || more > most_insertions - before) [[unlikely]]
      refuse_insertions();
  }
  [[noreturn]] static void refuse_insertions();

  static void begin_generation(std::uint8_t* bytes, const window_state& s, std::uint64_t epoch) noexcept;

  // In this order, which a process that is killed has kept to: no generation has more keys than were inserted.
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
  std::uint64_t part_;
  window_clock clock_;
};

/// Refuses the bytes of a file whose state cannot be; generations::check(). @throws error damaged
void check_window_state(const params& p, std::span<const std::uint8_t> bytes, bool settled, const std::string& path);

/// Adds the keys of `from` to `into`, bytes of two filters by time of these params: each in its own generation, as of
/// the later epoch of the two. A key that both have in one generation counts twice.
/// @throws error  incompatible: they go by keys; too_large: more than 2^62 insertions in both; invalid_argument:
///                another
///                number of bytes, no window
void merge_windows(const params& p, std::span<std::uint8_t> into, std::span<const std::uint8_t> from);

/// What the bytes of a windowed filter say, at `epoch`, or at that of the newest generation.
/// @throws error  invalid_argument: p is not of a windowed filter, or another number of bytes
window_facts facts_of_window(const params& p, std::span<const std::uint8_t> bytes,
                             std::optional<std::uint64_t> epoch = {});

/// The cells of each generation and the FPR of these bits, at `epoch`, or at that of the newest generation. Reads all
/// bytes. @throws error as facts_of_window
window_cells look_at_window(const params& p, std::span<const std::uint8_t> bytes,
                            std::optional<std::uint64_t> epoch = {});

/// Whether the cells of the generations are as many as their counts of keys let expect: as check_fill() does for
/// filters that do not forget. @throws error as facts_of_window
fill_check check_window_fill(const params& p, std::span<const std::uint8_t> bytes);

}  // namespace bloomery
