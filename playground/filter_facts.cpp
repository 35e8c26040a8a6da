#include "playground/filter_facts.hpp"

#include <bloomery/filter_facts.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace bloomery::playground {

std::string alarm_of(const fill_check& count) {
  return fmt::format("{} bits are set than the count of keys explains", count.deviation() > 0 ? "more" : "fewer");
}

std::uint64_t keys_left(const params& p, std::uint64_t keys, double certified, std::optional<std::uint64_t>& most) {
  if (p.target_fpr <= 0 || p.target_fpr >= 1 || certified > p.target_fpr * 1.01) return 0;
  if (!most) most = keys_within(p, p.target_fpr);
  return *most - std::min(*most, keys);
}

std::uint64_t keys_left(const params& p, std::uint64_t keys, double certified) {
  std::optional<std::uint64_t> most;
  return keys_left(p, keys, certified, most);
}

}  // namespace bloomery::playground
