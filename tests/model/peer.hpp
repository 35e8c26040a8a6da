// A filter in memory that gets the keys of a trial one at a time, through the calls on single keys of any_filter. The
// filter under test must have the same bits, and report the same keys as new.
#pragma once

#include "model/expect.hpp"
#include "model/operation.hpp"
#include "model/subject.hpp"

#include <bloomery/any_filter.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bloomery_model {

class peer {
 public:
  /// Whether filters of this kind have a peer: a window, a rebuild or racing threads make other bits.
  static bool exists_for(const contract& promises, const bloomery::any_filter* local) {
    return (promises.memory == memory::set || promises.memory == memory::copies) && promises.able.can_insert &&
           promises.is_sequential && !promises.able.grows && local != nullptr;
  }

  peer(const bloomery::any_filter& empty, std::uint64_t salt)
      : filter_(empty.parameters()), keys_(empty.parameters().keys), salt_(salt) {}

  /// @param is_new  the answers of the filter under test, or nothing
  void insert(const std::vector<key_id>& ids, const std::vector<std::uint8_t>& is_new = {}) {
    const key_batch keys(keys_, ids, salt_);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const bool fresh = keys.with_key(i, [&](const auto& key) { return filter_.insert(key); });
      if (!is_new.empty())
        expect_equal(is_new[i] == 1, fresh, "new in a batch and one at a time, key " + std::to_string(ids[i]));
    }
  }

  void remove(const std::vector<key_id>& ids) {
    const key_batch keys(keys_, ids, salt_);
    for (std::size_t i = 0; i < ids.size(); ++i) keys.with_key(i, [&](const auto& key) { return filter_.remove(key); });
  }

  void merge(const bloomery::any_filter& other) { filter_.merge(other); }
  void clear() { filter_.clear(); }

  /// Continues with the bits that a killed process left.
  void restart(const bloomery::any_filter& found) {
    filter_.clear();
    if (family_of(found.parameters()) == bloomery::family::quotient)
      filter_ = found.clone();  // its bits depend on the order of insertions
    else
      filter_.merge(found);
  }

  void compare(const bloomery::any_filter& found) const {
    expect(std::ranges::equal(found.bytes(), filter_.bytes()), "other bits than those of its keys one at a time");
  }

 private:
  bloomery::any_filter filter_;
  bloomery::key_kind keys_;
  std::uint64_t salt_;
};

}  // namespace bloomery_model
