// What nodes of a cluster say of who has which slots. All of it may be lies: numbers and sizes are checked here.
#pragma once

#include "redis/net/batch.hpp"
#include "redis/net/connection.hpp"

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace bloomery::redis {

/// Some slots and who has them: the master first.
struct slot_range {
  std::size_t first;
  std::size_t last;
  std::vector<place> nodes;
};

/// Reads the answer to CLUSTER SLOTS. @param asked  the node that gave it: it may mean itself
/// @returns none, and why, if it is of no use
std::vector<slot_range> slot_ranges_in(const reply& ranges, const place& asked, const char*& why);

/// "MOVED 3999 127.0.0.1:6381": the place, of `asked` if the host is empty. Nothing if the text is another.
std::optional<place> target_of(std::string_view text, const place& asked);

}  // namespace bloomery::redis
