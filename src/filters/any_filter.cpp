#include <bloomery/any_filter.hpp>

#include "filters/any_filter_body.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace bloomery {

void any_filter::merge(const any_filter& other) {
  const std::string reason = difference(parameters(), other.parameters());
  if (!reason.empty()) throw error(errc::incompatible, {"filters cannot be merged", "", "", reason, ""});
  body_->want_writable();
  if (body_->window) {
    merge_windows(parameters(), {body_->data, body_->bytes}, other.bytes());
    body_->inserted() += other.body_->counts->inserted;
    body_->counts->is_estimate = true;
    return body_->changed_everywhere();
  }
  if (body_->removals != nullptr) {
    body_->removals->merge({body_->data, body_->bytes}, other.bytes());
    *body_->counts = sum_of_counts(*body_->counts, *other.body_->counts);
    return body_->changed_everywhere();
  }
  unite_bits({body_->data, body_->bytes}, other.bytes());
  body_->changed_everywhere();
  body_->estimate_count();
}

void any_filter::intersect(const any_filter& other) {
  const std::string reason = difference(parameters(), other.parameters());
  if (!reason.empty()) throw error(errc::incompatible, {"filters cannot be intersected", "", "", reason, ""});
  if (body_->removals != nullptr) {
    throw error(errc::incompatible,
                {"counting filters cannot be intersected: counters do not tell which copies are in both", "",
                 "filters of bits", parameters().layout, hint::intersect_plain_filters});
  }
  if (body_->window) {
    throw error(errc::incompatible,
                {"sliding-window filters cannot be intersected: both may hold a key in different generations", "", "",
                 parameters().layout, hint::none});
  }
  body_->want_writable();
  const estimate keys = estimate_overlap(parameters(), count_shared(bytes(), other.bytes())).keys_both;
  intersect_bits({body_->data, body_->bytes}, other.bytes());
  body_->changed_everywhere();
  body_->inserted() = 0;
  if (std::isfinite(keys.sigma))
    body_->set_estimated_count(keys.value);
  else
    body_->estimate_count();  // together they are full, which tells nothing of what they share
}

bool any_filter::compatible_with(const any_filter& other) const {
  return difference(parameters(), other.parameters()).empty() && parameters().window_keys == 0;
}

any_filter& any_filter::operator|=(const any_filter& other) {
  merge(other);
  return *this;
}

any_filter& any_filter::operator&=(const any_filter& other) {
  intersect(other);
  return *this;
}

bool any_filter::operator==(const any_filter& other) const {
  const auto that_matters = [](params p) {
    p.capacity = p.log_id = 0;
    p.target_rate = 0;
    p.secret.reset();  // its check value is compared
    return p;
  };
  return that_matters(parameters()) == that_matters(other.parameters()) &&
         std::equal(body_->data, body_->data + body_->bytes, other.body_->data, other.body_->data + other.body_->bytes);
}

void any_filter::clear() {
  body_->want_writable();
  std::fill_n(body_->data, body_->bytes, std::uint8_t{0});
  body_->inserted() = 0;
  body_->counts->is_estimate = false;
  body_->counts->refused_removals = 0;
  body_->changed_everywhere();
}

bool any_filter::is_writable() const noexcept {
  return family_of(parameters()) != family::sealed && (body_->mapped == nullptr || body_->mapped->writable());
}

const params& any_filter::parameters() const noexcept { return body_->parameters; }
std::span<const std::uint8_t> any_filter::bytes() const noexcept { return {body_->data, body_->bytes}; }
std::uint64_t any_filter::capacity() const noexcept { return parameters().capacity; }
std::uint64_t any_filter::bit_size() const noexcept { return parameters().geometry.bits; }
std::uint64_t any_filter::byte_size() const noexcept { return body_->bytes; }
std::uint64_t any_filter::size() const noexcept { return body_->inserted(); }
std::optional<window_facts> any_filter::window() const {
  return body_->window ? std::optional(body_->window_now()) : std::nullopt;
}
void any_filter::set_clock(window_clock clock) {
  if (body_->window) body_->window->set_clock(std::move(clock));
}
bool any_filter::count_is_estimate() const noexcept { return body_->counts->is_estimate; }
const key_counts& any_filter::counts() const noexcept { return *body_->counts; }
bool any_filter::tainted() const noexcept { return body_->counts->refused_removals > 0; }

double any_filter::fill_ratio() const noexcept {
  std::uint64_t cells = body_->cells();
  if (body_->window) {
    const occupancy lane = body_->layout->window->lane(parameters().geometry);
    cells = lane.blocks * lane.block_bits * window_lanes;
  }
  return static_cast<double>(body_->ones()) / static_cast<double>(cells);
}

estimate any_filter::estimated_keys() const { return body_->estimated_keys(); }

double any_filter::certified_rate() const { return take_census(parameters(), bytes()).certified_rate; }

double any_filter::approximate_size() const noexcept { return body_->estimated_keys().value; }

double any_filter::false_positive_rate(std::uint64_t keys) const {
  return bloomery::false_positive_rate(parameters(), keys);
}

double any_filter::false_positive_rate() const {
  if (body_->window) return body_->window_now().rate;
  if (body_->has_slow_rates() || body_->removals != nullptr) return false_positive_rate(size());
  const auto rate = [this](std::uint64_t keys) { return false_positive_rate(keys); };
  return rate(distinct_keys(size(), rate));
}

const file_info* any_filter::opened_from() const noexcept {
  return body_->opened_from ? &*body_->opened_from : nullptr;
}

}  // namespace bloomery
