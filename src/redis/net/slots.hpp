// Parsing of slot ranges and redirections from cluster nodes, which are untrusted: numbers and sizes are checked.
#pragma once

#include "redis/net/batch.hpp"
#include "redis/net/connection.hpp"

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace bloomery::redis {

/// A range of slots with its nodes, the master first.
struct slot_range {
  std::size_t first;
  std::size_t last;
  std::vector<place> nodes;
};

/// Parses the reply to CLUSTER SLOTS. @param asked  the node that sent it, for entries without a host
/// @returns empty, with the reason in `why`, if the reply is unusable
std::vector<slot_range> slot_ranges_in(const reply& ranges, const place& asked, const char*& why);

/// The place in "MOVED 3999 127.0.0.1:6381", with the host of `asked` if it is empty. Empty for other texts.
std::optional<place> target_of(std::string_view text, const place& asked);

}  // namespace bloomery::redis
