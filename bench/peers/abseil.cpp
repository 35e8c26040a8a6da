// absl::flat_hash_set as a contestant: a fast exact set.
#include "peer.hpp"

#include <absl/container/flat_hash_set.h>

namespace bench {

/// Each slot takes the size of a key plus a control byte.
template <class Key>
std::uint64_t memory_of(const absl::flat_hash_set<Key>& set) {
  return set.capacity() * (sizeof(Key) + 1);
}

}  // namespace bench

#include "hash_set.hpp"

BLOOMERY_PEERS {
  using namespace bench;
  static auto integers =
      contestant_of<hash_set<absl::flat_hash_set<std::uint64_t>>, std::uint64_t>("absl::flat_hash_set");
  static auto strings =
      contestant_of<hash_set<absl::flat_hash_set<std::string_view>>, std::string_view>("absl::flat_hash_set");
  integers.most_keys = strings.most_keys = most_keys_of_sets;
  *list = {{&integers, 1}, {&strings, 1}};
}
