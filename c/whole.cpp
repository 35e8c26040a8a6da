// Operations on whole filters, and what a filter reports about itself.
#include "c/boundary.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>

namespace bloomery::c {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// The longest name of a filter file has 31 characters.
void copy_name(const std::string& name, char (&out)[32]) { out[name.copy(out, sizeof out - 1)] = '\0'; }

std::uint32_t bits_of(const capabilities& can) {
  std::uint32_t bits = 0;
  const auto add = [&](bool has, std::uint32_t bit) { bits |= has ? bit : 0; };
  add(can.can_insert, BLOOMERY_CAN_INSERT);
  add(can.can_remove, BLOOMERY_CAN_REMOVE);
  add(can.can_merge, BLOOMERY_CAN_MERGE);
  add(can.can_clear, BLOOMERY_CAN_CLEAR);
  add(can.has_window, BLOOMERY_HAS_WINDOW);
  add(can.grows, BLOOMERY_FILTER_GROWS);
  add(can.is_remote, BLOOMERY_IS_REMOTE);
  add(can.lookups_in_parallel, BLOOMERY_LOOKUPS_IN_PARALLEL);
  return bits;
}

bloomery_info info_of(const params& p) {
  bloomery_info info = BLOOMERY_INFO;
  info.capacity = p.capacity;
  info.target_fpr = p.target_fpr;
  info.bits = p.geometry.bits;
  info.bytes = bytes_for(p.geometry.bits);
  info.probes = p.geometry.probes;
  info.keys = p.keys == key_kind::u64le ? BLOOMERY_U64 : BLOOMERY_BYTES;
  copy_name(p.layout, info.layout);
  copy_name(p.scheme, info.scheme);
  copy_name(p.hash, info.hash);
  info.current_fpr = info.fill_ratio = info.estimated_keys = info.estimated_sigma = nan;
  return info;
}

// Writes the fields that the caller's version of the struct has, and zeros for fields of later versions.
void write(const bloomery_info& info, bloomery_info* out) {
  const std::size_t size = out->size;
  std::memcpy(out, &info, std::min(size, sizeof info));
  if (size > sizeof info) std::memset(reinterpret_cast<unsigned char*>(out) + sizeof info, 0, size - sizeof info);
  out->size = size;
}

void want_size(const bloomery_info* info) {
  constexpr std::size_t shortest = offsetof(bloomery_info, hash) + sizeof info->hash;  // of version 0
  if (wanted(info, "info").size >= shortest) return;
  throw error(errc::invalid_argument, {"the struct is too short", "info.size", std::to_string(shortest) + " or more",
                                       std::to_string(info->size), "initialize it with BLOOMERY_INFO"});
}

}  // namespace
}  // namespace bloomery::c

using namespace bloomery;
using namespace bloomery::c;

extern "C" {

bloomery_code bloomery_merge(bloomery_filter* filter, const bloomery_filter* other) {
  return guarded([&] { handle_of(filter).merge(*wanted(other, "other").handle); });
}

bloomery_code bloomery_clear(bloomery_filter* filter) {
  return guarded([&] { handle_of(filter).clear(); });
}

bloomery_code bloomery_tick(bloomery_filter* filter, uint64_t now_ms) {
  return guarded([&] { handle_of(filter).tick(now_ms); });
}

bloomery_code bloomery_get_info(const bloomery_filter* filter, int read_bits, bloomery_info* info) {
  return guarded([&] {
    filter_handle& handle = handle_of(filter);
    want_size(info);
    const filter_facts facts = handle.info(read_bits != 0 ? info_depth::bits : info_depth::counts);
    bloomery_info result = info_of(facts.parameters);
    if (handle.capabilities().grows) result.capacity = 0;
    result.insert_count = facts.insert_count.value_or(std::numeric_limits<std::uint64_t>::max());
    result.distinct_keys = facts.distinct_keys;
    result.count_is_estimate = facts.count_is_estimate ? 1 : 0;
    result.expected_fpr = facts.expected_fpr.value_or(nan);
    result.bits = facts.bits;
    result.bytes = facts.bytes;
    result.capabilities = bits_of(handle.capabilities());
    if (facts.fill) {
      result.current_fpr = facts.fill->current_fpr;
      if (facts.fill->cells != 0) result.fill_ratio = facts.fill->fill_ratio();
      if (facts.fill->estimated_keys) {
        result.estimated_keys = facts.fill->estimated_keys->value;
        result.estimated_sigma = facts.fill->estimated_keys->sigma;
      }
    }
    write(result, info);
  });
}

bloomery_code bloomery_plan(const bloomery_params* given, bloomery_info* info) {
  return guarded([&] {
    want_size(info);
    const params p = complete_params_of(given);
    bloomery_info result = info_of(p);
    result.expected_fpr = expected_fpr(p, p.capacity);
    result.capabilities = bits_of(capabilities_of(p));
    write(result, info);
  });
}

}  // extern "C"
