// Parsing of slot ranges and redirections.
#include "redis/net/slots.hpp"

#include <charconv>
#include <cstdint>
#include <system_error>
#include <utility>

namespace bloomery::redis {
namespace {

constexpr std::size_t most_nodes_of_a_range = 1'000;

// Parses one entry of CLUSTER SLOTS; empty, with the reason in `why`, if it is unusable.
std::optional<slot_range> range_in(const reply& range, const place& asked, const char*& why) {
  const auto useless = [&](const char* text) {
    why = text;
    return std::nullopt;
  };
  if (range.size() < 3) return useless("a range of slots without nodes");
  if (range.size() > 2 + most_nodes_of_a_range) return useless("a range of slots with too many nodes");
  reply at = range[0];
  const reply end = at.next();
  const std::int64_t first = at.integer();
  const std::int64_t last = end.integer();
  if (!at.is(reply_type::integer) || !end.is(reply_type::integer) || first < 0 || last < first ||
      last >= static_cast<std::int64_t>(num_slots)) {
    return useless("slots that do not exist");
  }
  slot_range found{static_cast<std::size_t>(first), static_cast<std::size_t>(last), {}};
  at = end;
  for (std::size_t j = 2; j < range.size(); ++j) {
    at = at.next();
    if (at.size() < 2) return useless("a node without an address");
    place where;
    where.host = at[0].text();
    if (where.host.empty() || where.host == "?") where.host = asked.host;  // the one that was asked
    const std::int64_t port = at[1].integer();
    if (port < 1 || port > 65535 || where.host.size() > 253) return useless("a node without an address");
    where.port = static_cast<std::uint16_t>(port);
    found.nodes.push_back(std::move(where));
  }
  return found;
}

}  // namespace

std::vector<slot_range> slot_ranges_in(const reply& ranges, const place& asked, const char*& why) {
  why = !ranges.is(reply_type::array) ? "no list of slots"
        : ranges.size() == 0          ? "the cluster has no slots"
        : ranges.size() > num_slots   ? "more ranges of slots than slots"
                                      : nullptr;
  if (why != nullptr) return {};
  std::vector<slot_range> read;
  reply at = ranges[0];
  for (std::size_t i = 0; i < ranges.size(); ++i, at = at.next()) {
    std::optional<slot_range> range = range_in(at, asked, why);
    if (!range) return {};
    read.push_back(*std::move(range));
  }
  return read;
}

std::optional<place> target_of(std::string_view text, const place& asked) {
  const std::size_t space = text.rfind(' ');
  const std::size_t colon = text.rfind(':');
  if (space == std::string_view::npos || colon == std::string_view::npos || colon < space) return std::nullopt;
  place target;
  target.host = text.substr(space + 1, colon - space - 1);
  if (target.host.empty() || target.host == "?") target.host = asked.host;
  const auto [end, problem] = std::from_chars(text.data() + colon + 1, text.data() + text.size(), target.port);
  if (problem != std::errc() || end != text.data() + text.size() || target.port == 0) return std::nullopt;
  return target;
}

}  // namespace bloomery::redis
