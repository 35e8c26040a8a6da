// A demo session: a filter, the reference set of its keys, and the steps so far, which can be undone.
//
// Undoing the last step repeats all earlier steps from the start, so no step needs an inverse.
#pragma once

#include "playground/session/reference_set.hpp"
#include "playground/session/shown_filter.hpp"
#include "playground/session/wanted_filter.hpp"

#include <bloomery/measure.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace bloomery::playground {

/// The random addresses first .. first + count - 1 of a seed, which the client need not send.
struct address_range {
  std::uint64_t seed = 0;
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

/// Explicit keys, or addresses.
using key_list = std::variant<std::vector<std::string>, address_range>;

/// A step of a session. An insertion that joins the step before it is undone together with it.
struct add_step {
  key_list keys;
  bool joins = false;
};
struct remove_step {
  std::string key;
  bool by_force = false;
};
struct tick_step {
  std::uint64_t milliseconds = 0;
};
using step = std::variant<add_step, remove_step, tick_step>;

/// The state of a key in the reference set.
enum class membership : std::uint8_t {
  unknown,  ///< the key may be one of the unknown keys of a file
  added,
  never,
  removed,
  expired,  ///< it was added longer ago than the window
};

/// "unknown", "added", "never", "removed"; "forgotten" if it has expired.
const char* name_of(membership m) noexcept;

/// A cell of a key.
struct key_cell {
  place at;
  std::uint32_t value = 0;
  bool again = false;                    ///< an earlier probe of the same key selected it, too
  bool becomes_set = false;              ///< set by the insertion of this key
  std::vector<std::string> owners = {};  ///< some of the keys in the filter that share the cell
  std::uint64_t owner_count = 0;         ///< all such keys
};

/// A key and its lookup result.
struct key_view {
  std::string key;
  std::optional<key_hash> hash;
  bool maybe = false;
  membership actual = membership::unknown;
  bool false_positive() const {
    return maybe && (actual == membership::never || actual == membership::removed || actual == membership::expired);
  }
  std::vector<key_cell> cells;
  std::vector<std::uint64_t> numbers = {};  ///< shown_filter::numbers_of()

  /// Adds the cell of the next probe.
  void add_cell(const place& at, std::uint32_t value) {
    const bool again = std::any_of(cells.begin(), cells.end(), [&](const key_cell& c) { return c.at == at; });
    cells.push_back({at, value, again});
  }
};

struct answers {
  std::vector<key_view> keys;  ///< the first keys
  std::uint64_t count = 0;
  std::uint64_t yes = 0;  ///< lookups: possibly present; inserts: certainly new
  std::uint64_t false_positives = 0;
};

struct removal_view {
  bool found = true;
  std::vector<place> cells;
  std::vector<std::string> lost;  ///< some of the keys that became false negatives
  std::uint64_t lost_count = 0;
};

struct owners_of_cell {
  std::uint32_t value = 0;
  std::uint32_t layer = 0;
  std::vector<std::string> named;
  std::uint64_t count = 0;

  void add(const std::string& key, std::uint64_t most_named) {
    ++count;
    if (named.size() < most_named) named.push_back(key);
  }
};

struct search_result {
  measured_rate measured;
  std::vector<std::string> found;  ///< some of the false positives
};

/// A filter with its reference set and its steps. Not thread-safe.
class demo_session {
 public:
  static constexpr std::uint64_t most_keys = 1'000'000;  ///< in all steps together
  static constexpr std::uint64_t most_owned_keys =
      200'000;  ///< with more keys, or with many probes, owners of cells are not searched
  static constexpr std::uint64_t most_shown_keys = 100;  ///< per step
  static constexpr std::uint64_t most_key_bytes = 65'536;
  static constexpr std::uint64_t most_named_owners = 3;
  static constexpr std::uint64_t most_bits = std::uint64_t{1} << 30;

  /// @throws error  as shown_filter; too_large: more than most_bits
  explicit demo_session(wanted_filter wanted);
  static void check_size(const wanted_filter& wanted);  ///< @throws error as above

  /// The same, after these steps. @throws error  as above, and as add(), remove() and tick()
  demo_session(wanted_filter wanted, const std::vector<step>& steps);

  /// A filter from the bytes of a file; its keys are unknown. @throws error  as any_filter::from_bytes
  explicit demo_session(std::string file_bytes);

  /// @param joins  the keys belong to the step before: both are undone together
  /// @throws error  too_large: more keys than most_keys; incompatible, invalid_argument: as shown_filter. After an
  ///                error no key was added
  answers add(key_list keys, bool joins = false);
  answers ask(key_list keys) const;

  /// @throws error as shown_filter
  removal_view remove(std::string key,
                      bool by_force);  ///< by_force: clears the bits of the key if the filter contains it

  void tick(std::uint64_t milliseconds);

  /// Undoes the last step. @throws error  incompatible: there is no step, or too many keys would be inserted again
  void undo();
  bool can_undo() const;

  /// Removes all keys, including those of the file, and all steps.
  /// @throws error incompatible: a static filter
  void reset();

  owners_of_cell owners(std::uint64_t cell, std::uint64_t most) const;

  /// Looks up `count` random addresses or numbers that were never added.
  search_result search(std::uint64_t count, std::uint64_t seed) const;

  const shown_filter& filter() const noexcept { return filter_; }
  const reference_set& keys() const noexcept { return keys_; }
  std::uint64_t distinct() const;  ///< keys in the filter, according to the reference set
  bool knows_keys() const noexcept { return wanted_ || emptied_; }
  const std::vector<step>& steps() const noexcept { return steps_; }
  std::uint64_t step_count() const noexcept;  ///< without those that join another

  /// Steps that insert the same keys into a filter of another kind, with as many copies.
  std::vector<step> insertions() const;

  /// The number after those of all address ranges that were added.
  std::uint64_t next_address() const noexcept;
  const filter_facts& facts() const;  ///< valid until the next step

 private:
  shown_filter as_at_first() const;
  std::string as_taken(std::string key) const;
  key_list as_taken(key_list keys) const;
  key_list checked(key_list keys) const;
  void record(step s);
  void do_again(const step& s);
  bool insert(std::string_view key);
  bool take_out(const std::string& key, bool by_force);  // false: the filter does not contain it
  membership membership_of(std::string_view key) const;
  key_view view_of(const std::string& key) const;
  void name_owners(std::vector<key_view>& views) const;
  bool is_in(const reference_set::entry& e) const;
  std::uint64_t oldest_section() const;  // still in the window; 0: all are
  template <class Work>
  void each_owner(Work work) const;

  std::optional<wanted_filter> wanted_;
  std::string file_;      // bytes of the file of the original filter
  bool emptied_ = false;  // the keys of the file are no longer in the filter
  std::uint64_t begun_;   // start of the filter's clock, milliseconds since 1970; the same after every undo
  shown_filter filter_;
  reference_set keys_;
  std::vector<step> steps_;
  std::uint64_t keys_of_steps_ = 0;
  mutable std::optional<filter_facts> facts_;  // cached until the next step: slow for some schemes
};

}  // namespace bloomery::playground
