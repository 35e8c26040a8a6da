// Construction of filter cascades from two ribbon filters.
#include <bloomery/cascade_builder.hpp>

#include <bloomery/detail/cascade.hpp>
#include <bloomery/detail/hash_span.hpp>
#include <bloomery/error.hpp>

#include "filters/static_stream.hpp"
#include "registry/static_row.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

namespace bloomery {
namespace {

constexpr std::size_t batch = 4096;  // keys looked up together

void sort_distinct(std::vector<std::uint64_t>& words) {
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
}

static_bytes first_level(std::vector<std::uint64_t> hash64s, unsigned width, unsigned threads,
                         const build_watch& watch) {
  cascade_layout_name(width);  // throws
  return ribbon_build(hash64s, width, threads, watch);
}

[[noreturn]] void refuse_after_build(const char* action) {
  throw error(errc::invalid_argument, {std::string("a cascade_builder cannot ") + action + " after build()",
                                       "cascade_builder", "append_absent(), then build() once", "", ""});
}

// Whether a filter of this payload reports each of these keys, or none of them.
bool all_are(bool expected, const std::uint8_t* payload, std::span<const std::uint64_t> hash64s) {
  return std::all_of(hash64s.begin(), hash64s.end(),
                     [&](std::uint64_t hash64) { return cascade::has(payload, hash64) == expected; });
}

}  // namespace

unsigned cascade_builder::width_for(double present, double absent) noexcept {
  unsigned best = 1;
  const auto bits = [&](unsigned width) { return width * present + std::ldexp(absent, -static_cast<int>(width)); };
  for (unsigned width = 2; width <= sealed::most_width; ++width) {
    if (bits(width) < bits(best)) best = width;
  }
  return best;
}

cascade_builder::cascade_builder(std::vector<std::uint64_t> hash64s, unsigned width, unsigned threads,
                                 build_watch watch)
    : width_(width),
      threads_(threads),
      watch_(std::move(watch)),
      present_(std::move(hash64s)),
      first_(first_level(present_, width, threads, watch_)),
      keys_(first_->keys) {}

void cascade_builder::append_absent(std::span<const std::uint64_t> hash64s) {
  if (!first_) refuse_after_build("append keys");
  std::array<std::uint64_t, batch / 64> bitmap;
  for (; !hash64s.empty(); hash64s = hash64s.subspan(std::min(hash64s.size(), batch))) {
    const std::span<const std::uint64_t> some = hash64s.first(std::min(hash64s.size(), batch));
    ribbon::has_batch(first_->payload.data(), hash_span::hash64s(some), bitmap.data());
    for (std::size_t word = 0; word < (some.size() + 63) / 64; ++word) {
      for (std::uint64_t left = bitmap[word]; left != 0; left &= left - 1)
        reported_.push_back(some[64 * word + static_cast<unsigned>(std::countr_zero(left))]);
    }
  }
  is_sorted_ = false;
}

std::optional<std::uint64_t> cascade_builder::conflict() {
  if (!is_sorted_) {
    sort_distinct(present_);
    sort_distinct(reported_);
    is_sorted_ = true;
  }
  auto at = present_.begin();
  for (const std::uint64_t hash64 : reported_) {
    while (at != present_.end() && (*at & cascade::place_bits) < (hash64 & cascade::place_bits)) ++at;
    if (at != present_.end() && (*at & cascade::place_bits) == (hash64 & cascade::place_bits)) return hash64;
  }
  return {};
}

params cascade_builder::build(const params& hashing) {
  if (!first_) refuse_after_build("build");
  if (const std::optional<std::uint64_t> shared = conflict()) {
    throw error(errc::invalid_argument,
                {"a key is in both lists of a cascade_builder, or its hash is that of a key of the other list",
                 "append_absent", "other keys", "hash64 " + std::to_string(*shared), hint::none});
  }
  std::vector<std::uint64_t> flagged;
  flagged.reserve(present_.size() + reported_.size());
  for (const std::uint64_t hash64 : present_) flagged.push_back(hash64 | 1);
  for (const std::uint64_t hash64 : reported_) flagged.push_back(hash64 & ~std::uint64_t{1});
  const std::uint64_t kept = flagged.size();
  const static_bytes second = ribbon_build_bits(flagged, threads_, watch_);
  flagged = {};

  const std::uint64_t offset = first_->payload.size();
  payload_.emplace(offset + second.payload.size());
  std::uint8_t* const to = payload_->data();
  std::memcpy(to, first_->payload.data(), offset);
  first_.reset();
  std::memcpy(to + cascade::offset_at, &offset, sizeof offset);
  std::memcpy(to + offset, second.payload.data(), second.payload.size());
  // Without its lowest bit, a hash at the border of two partitions could be in the other one.
  if (!all_are(true, to, present_) || !all_are(false, to, reported_)) {
    throw error(errc::invalid_argument, {"a filter cascade cannot be built from these hashes", "hash", "",
                                         std::to_string(kept) + " keys", hint::use_another_hash});
  }
  parameters_ = static_params_of(cascade_calls, hashing, width_, {keys_, payload_->size()});
  return parameters_;
}

std::span<const std::uint8_t> cascade_builder::bytes() const noexcept {
  if (!payload_) return {};
  return {payload_->data(), payload_->size()};
}

void cascade_builder::save(const std::string& path, const create_options& options) const {
  if (!payload_) {
    throw error(errc::invalid_argument,
                {"a cascade_builder cannot save a filter that is not built", path, "build() before save()", "", ""});
  }
  save_file(path, parameters_, bytes(), {.inserted = parameters_.capacity}, options);
}

}  // namespace bloomery
