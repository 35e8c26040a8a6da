// A demo session: a filter, the reference set of its keys, and the steps so far, which can be undone.
//
// To undo a step, all steps before it are done again from the start: no step needs an inverse.
#pragma once

#include "playground/session/reference_set.hpp"
#include "playground/session/shown_filter.hpp"
#include "playground/session/wanted_filter.hpp"

#include <bloomery/measure.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace bloomery::playground {

/// Random addresses first .. first + count - 1 of a seed: keys that need not be sent.
struct address_range {
  std::uint64_t seed = 0;
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

/// Keys as they are, or addresses.
using key_list = std::variant<std::vector<std::string>, address_range>;

/// What the reference set says of a key.
enum class membership : std::uint8_t {
  unknown,  ///< the filter has keys of a file, and this may be one of them
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
  bool again = false;                    ///< the key had it before, by another probe
  bool becomes_set = false;              ///< it was 0, and adding the key set it
  std::vector<std::string> owners = {};  ///< keys that are in and have this cell; some
  std::uint64_t owner_count = 0;         ///< of all
};

/// A key and what the filter says of it.
struct key_view {
  std::string key;
  std::optional<key_hash> hash;
  bool maybe = false;
  membership actual = membership::unknown;
  bool false_positive() const {
    return maybe && (actual == membership::never || actual == membership::removed || actual == membership::expired);
  }
  std::vector<key_cell> cells;
};

struct answers {
  std::vector<key_view> keys;  ///< of the first ones
  std::uint64_t count = 0;
  std::uint64_t yes = 0;  ///< asked: maybe there; added: certainly new
  std::uint64_t false_positives = 0;
};

struct removal_view {
  bool found = true;
  std::vector<place> cells;
  std::vector<std::string> lost;  ///< keys that are in, and are denied now; some
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
  std::vector<std::string> found;  ///< false positives; some
};

/// Not to be used by two threads at once.
class demo_session {
 public:
  static constexpr std::uint64_t most_keys = 1'000'000;  ///< of all steps
  static constexpr std::uint64_t most_owned_keys =
      200'000;  ///< with more, or with many probes, owners of cells are not searched
  static constexpr std::uint64_t most_shown_keys = 100;  ///< of a call
  static constexpr std::uint64_t most_key_bytes = 65'536;
  static constexpr std::uint64_t most_named_owners = 3;
  static constexpr std::uint64_t most_bits = std::uint64_t{1} << 30;

  /// @throws error  as shown_filter; too_large: more than most_bits
  explicit demo_session(wanted_filter wanted);
  static void check_size(const wanted_filter& wanted);  ///< @throws error as above

  /// A filter from the bytes of a file, whose keys are unknown. @throws error as any_filter::from_bytes
  explicit demo_session(std::string file_bytes);

  /// @throws error  too_large: more keys than most_keys; incompatible, invalid_argument: as shown_filter; then none is
  ///        added
  answers add(key_list keys);
  answers ask(key_list keys) const;

  /// @throws error as shown_filter
  removal_view remove(std::string key,
                      bool by_force);  ///< by force: bits are cleared only if the filter contains the key

  void tick(std::uint64_t milliseconds);

  /// Undoes the last step. @throws error incompatible: there is none, or too many keys would have to be inserted again
  void undo();
  bool can_undo() const;

  /// Removes all keys and steps, and the keys of the file that the filter came from.
  /// @throws error incompatible: a static filter
  void reset();

  owners_of_cell owners(std::uint64_t cell, std::uint64_t most) const;

  /// Looks up `count` random addresses, or numbers, that were never added.
  search_result search(std::uint64_t count, std::uint64_t seed) const;

  const shown_filter& filter() const noexcept { return filter_; }
  const reference_set& keys() const noexcept { return keys_; }
  std::uint64_t distinct() const;  ///< keys in the filter, by the reference set
  bool knows_keys() const noexcept { return wanted_ || emptied_; }
  std::uint64_t steps() const noexcept { return steps_.size(); }
  const filter_facts& facts() const;                        ///< until the next step
  std::uint64_t byte_size() const;                          ///< of memory, about
  static std::uint64_t byte_size_of(const key_list& keys);  ///< what they would add to it, at most

 private:
  struct add_step {
    key_list keys;
  };
  struct remove_step {
    std::string key;
    bool by_force;
  };
  struct tick_step {
    std::uint64_t milliseconds;
  };
  using step = std::variant<add_step, remove_step, tick_step>;

  shown_filter as_at_first() const;
  std::string as_taken(std::string key) const;
  key_list as_taken(key_list keys) const;
  void do_again(const step& s);
  bool insert(std::string_view key);
  bool take_out(const std::string& key, bool by_force);  // false: the filter had not got it
  membership membership_of(std::string_view key) const;
  key_view view_of(const std::string& key) const;
  void name_owners(std::vector<key_view>& views) const;
  bool is_in(const reference_set::entry& e) const;
  std::uint64_t oldest_part() const;  // that is remembered; 0: all are
  template <class Work>
  void each_owner(Work work) const;

  std::optional<wanted_filter> wanted_;
  std::string file_;      // the filter came from these bytes
  bool emptied_ = false;  // the keys of the file were removed
  std::uint64_t begun_;   // when, in milliseconds since 1970: its clock begins there, however often it begins
  shown_filter filter_;
  reference_set keys_;
  std::vector<step> steps_;
  std::uint64_t keys_of_steps_ = 0;
  mutable std::optional<filter_facts> facts_;  // since the last step: of some schemes they take long
};

}  // namespace bloomery::playground
