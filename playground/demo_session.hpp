// A filter under glass: what it says, the truth beside it, and the steps that led here, which can be taken back.
//
// Everything is done again from the first step when one is taken back: no step needs to know how to undo itself.
#pragma once

#include "playground/exact_set.hpp"
#include "playground/shown_filter.hpp"
#include "playground/wanted_filter.hpp"

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

enum class truth : std::uint8_t { unknown, added, never, removed, forgotten };

/// "unknown", "added", "never", "removed"; "forgotten": it came, longer ago than the window.
const char* name_of(truth t) noexcept;

struct cell_view {
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
  truth fact = truth::unknown;
  bool false_positive() const {
    return maybe && (fact == truth::never || fact == truth::removed || fact == truth::forgotten);
  }
  std::vector<cell_view> cells;
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
      200'000;  ///< beyond, or with many probes, nobody looks for who set a cell
  static constexpr std::uint64_t most_shown_keys = 100;  ///< of a call
  static constexpr std::uint64_t most_key_bytes = 65'536;
  static constexpr std::uint64_t most_named_owners = 3;
  static constexpr std::uint64_t most_bits = std::uint64_t{1} << 30;

  /// @throws error  as shown_filter; too_large: more than most_bits
  explicit demo_session(wanted_filter wanted);
  static void check_size(const wanted_filter& wanted);  ///< @throws error as above

  /// A filter from the bytes of a file; nobody knows its keys. @throws error as any_filter::load
  explicit demo_session(std::string file_bytes);

  /// @throws error  too_large: more keys than most_keys; incompatible, invalid_argument: as shown_filter; then none is
  ///        added
  answers add(key_list keys);
  answers ask(key_list keys) const;

  /// @throws error as shown_filter
  removal_view remove(std::string key, bool by_force);  ///< by force: what it denies anyway is left alone

  void tick(std::uint64_t milliseconds);

  /// Takes back the last step. @throws error incompatible: there is none, or too much would have to be done again
  void undo();
  bool can_undo() const;

  /// All that was done, and all keys, are forgotten; of a filter from a file what the file had, too.
  /// @throws error incompatible: a sealed filter
  void reset();

  owners_of_cell owners(std::uint64_t cell, std::uint64_t most) const;

  /// Asks for `count` random addresses that never came, or numbers.
  search_result search(std::uint64_t count, std::uint64_t seed) const;

  const shown_filter& filter() const noexcept { return filter_; }
  const exact_set& keys() const noexcept { return keys_; }
  std::uint64_t distinct() const;  ///< keys that are in, by the exact set
  bool knows_truth() const noexcept { return wanted_ || emptied_; }
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
  truth truth_of(std::string_view key) const;
  key_view view_of(const std::string& key) const;
  void name_owners(std::vector<key_view>& views) const;
  bool is_in(const exact_set::entry& e) const;
  std::uint64_t oldest_part() const;  // that is remembered; 0: all are
  template <class Work>
  void each_owner(Work work) const;

  std::optional<wanted_filter> wanted_;
  std::string file_;      // that it came from
  bool emptied_ = false;  // what the file had is gone
  std::uint64_t begun_;   // when, in milliseconds since 1970: its clock begins there, however often it begins
  shown_filter filter_;
  exact_set keys_;
  std::vector<step> steps_;
  std::uint64_t keys_of_steps_ = 0;
  mutable std::optional<filter_facts> facts_;  // since the last step: of some schemes they take long
};

}  // namespace bloomery::playground
