// any_filter: creation, copies, merge and intersection, statistics, and consistency of counts.
#include <bloomery/any_filter.hpp>

#include "filters/any_filter_impl.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace bloomery {

namespace {

// difference(), but filters with slots may have been doubled more or less often.
std::string why_not_merged(const params& a, const params& b) {
  const layout_row* const x = find_layout(a.layout);
  const layout_row* const y = find_layout(b.layout);
  if (slots_of(x) == nullptr || slots_of(y) == nullptr) return difference(a, b);
  if (a.geometry.bits << x->fingerprint_bits != b.geometry.bits << y->fingerprint_bits) return difference(a, b);
  params same = b;
  same.layout = a.layout;
  same.geometry = a.geometry;
  return difference(a, same);
}

}  // namespace

bool any_filter::impl::resize(unsigned doublings, const impl* other) {
  const layout_row* row = layout;
  geometry g = parameters.geometry;
  for (unsigned i = 0; i < doublings; ++i) {
    row = find_layout(row->slots->doubled_layout);
    g.bits *= 2;
  }
  row->check(g);
  heap_storage made(bytes_for(g.bits));
  const std::span<std::uint8_t> into(made.data(), made.size());
  if (doublings == 0)
    std::copy_n(data, bytes, made.data());
  else if (!row->slots->add(g, into, doublings, {data, bytes}))
    return false;
  if (other != nullptr) {
    const auto times = static_cast<unsigned>(std::countr_zero(made.size() / other->bytes));
    if (!row->slots->add(g, into, times, {other->data, other->bytes})) return false;
  }
  made.counts() = *counts;
  heap_storage& held = storage.emplace<heap_storage>(std::move(made));
  data = held.data();
  bytes = held.size();
  counts = &held.counts();
  parameters.layout = row->name;
  parameters.geometry = g;
  layout = row;
  removals = row->removals;
  return true;
}

void any_filter::impl::merge_slots(const impl& other) {
  const unsigned least = other.bytes <= bytes ? 0 : static_cast<unsigned>(std::countr_zero(other.bytes / bytes));
  const unsigned most = std::max(least, doublings_left(parameters));
  for (unsigned doublings = least; doublings <= most; ++doublings) {
    if (resize(doublings, &other)) return;
  }
  throw full_filter(parameters, inserted() + other.counts->inserted);
}

void any_filter::merge(const any_filter& other) {
  const std::string reason = why_not_merged(parameters(), other.parameters());
  if (!reason.empty())
    throw error(errc::incompatible, {"filters cannot be merged", "", "", reason, hint::merge_like_filters});
  impl_->want_writable();
  other.verify();
  if (impl_->window) {
    merge_windows(parameters(), {impl_->data, impl_->bytes}, other.bytes());
    impl_->inserted() += other.impl_->counts->inserted;
    impl_->counts->is_estimate = true;
    impl_->changed_everywhere();
    if (other.count_is_out_of_date()) impl_->estimate_count();
    return;
  }
  if (impl_->removals != nullptr) {
    if (slots_of(impl_->layout) != nullptr)
      impl_->merge_slots(*other.impl_);
    else
      impl_->removals->merge(parameters().geometry, {impl_->data, impl_->bytes}, other.bytes());
    *impl_->counts = sum_of_counts(*impl_->counts, *other.impl_->counts);
    impl_->changed_everywhere();
    if (other.count_is_out_of_date()) impl_->estimate_count();
    return;
  }
  unite_bits({impl_->data, impl_->bytes}, other.bytes());
  impl_->changed_everywhere();
  impl_->estimate_count();
}

void any_filter::intersect(const any_filter& other) {
  const std::string reason = difference(parameters(), other.parameters());
  if (!reason.empty()) throw error(errc::incompatible, {"filters cannot be intersected", "", "", reason, ""});
  if (impl_->removals != nullptr) {
    throw error(errc::incompatible,
                {"filters with removal cannot be intersected: they do not show which copies are in both", "",
                 "filters of bits", parameters().layout, hint::intersect_plain_filters});
  }
  if (impl_->window) {
    throw error(errc::incompatible,
                {"sliding-window filters cannot be intersected: a key may be in different generations of the two", "",
                 "", parameters().layout, hint::none});
  }
  impl_->want_writable();
  other.verify();
  const estimate keys = estimate_overlap(parameters(), count_shared(bytes(), other.bytes())).keys_both;
  intersect_bits({impl_->data, impl_->bytes}, other.bytes());
  impl_->changed_everywhere();
  impl_->inserted() = 0;
  if (std::isfinite(keys.sigma))
    impl_->set_estimated_count(keys.value);
  else
    impl_->estimate_count();  // all bits of the union are set, so the overlap is unknown
}

bool any_filter::count_is_out_of_date() const noexcept {
  return opened_from() != nullptr && !opened_from()->clean && !is_writable() && !count_is_estimate();
}

bool any_filter::compatible_with(const any_filter& other) const {
  return why_not_merged(parameters(), other.parameters()).empty() && parameters().window().keys() == 0;
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
  verify();
  other.verify();
  const auto that_matters = [](const any_filter& f) {
    params p = f.parameters().without_log();
    p.capacity = 0;
    p.target_fpr = 0;
    p.secret.reset();  // difference() compares the check value
    return p;
  };
  return that_matters(*this) == that_matters(other) &&
         std::equal(impl_->data, impl_->data + impl_->bytes, other.impl_->data, other.impl_->data + other.impl_->bytes);
}

void any_filter::clear() {
  impl_->want_writable();
  std::fill_n(impl_->data, impl_->bytes, std::uint8_t{0});
  impl_->inserted() = 0;
  impl_->counts->is_estimate = false;
  impl_->counts->refused_removals = 0;
  impl_->changed_everywhere();
}

bool any_filter::is_writable() const noexcept {
  return family_of(parameters()) != family::static_set && !impl_->is_read_only &&
         (impl_->mapped == nullptr || impl_->mapped->writable());
}

const params& any_filter::parameters() const noexcept { return impl_->parameters; }
std::span<const std::uint8_t> any_filter::bytes() const noexcept { return {impl_->data, impl_->bytes}; }
std::uint64_t any_filter::capacity() const noexcept { return parameters().capacity; }
std::uint64_t any_filter::bit_size() const noexcept { return parameters().geometry.bits; }
std::uint64_t any_filter::byte_size() const noexcept { return impl_->bytes; }
std::uint64_t any_filter::insert_count() const noexcept { return impl_->inserted(); }
std::optional<window_facts> any_filter::window() const {
  return impl_->window ? std::optional(impl_->window_now()) : std::nullopt;
}
std::uint64_t any_filter::epoch() const { return impl_->window ? impl_->window->epoch(impl_->data) : 0; }
void any_filter::set_clock(window_clock clock) {
  if (impl_->window) impl_->window->set_clock(std::move(clock));
}
bool any_filter::count_is_estimate() const noexcept { return impl_->counts->is_estimate; }
const key_counts& any_filter::counts() const noexcept { return *impl_->counts; }
bool any_filter::tainted() const noexcept { return impl_->counts->refused_removals > 0; }

void any_filter::verify(const function_ref<bool(double share)>& go_on) const {
  if (impl_->unverified != nullptr) impl_->unverified->verify_all(go_on);
}

double any_filter::fill_ratio() const {
  verify();
  std::uint64_t cells = impl_->cells();
  if (impl_->window) {
    const occupancy lane = impl_->layout->window->lane(parameters().geometry);
    cells = lane.blocks * lane.block_bits * window_generations;
  }
  return static_cast<double>(impl_->ones()) / static_cast<double>(cells);
}

estimate any_filter::estimated_keys() const {
  verify();
  return impl_->estimated_keys();
}

double any_filter::current_fpr() const {
  verify();
  return measure_fill(parameters(), bytes()).current_fpr;
}

double any_filter::approximate_size() const { return estimated_keys().value; }

double any_filter::expected_fpr(std::uint64_t keys) const { return bloomery::expected_fpr(parameters(), keys); }

double any_filter::expected_fpr() const {
  if (impl_->window) return impl_->window_now().rate;
  if (impl_->has_slow_rates() || impl_->removals != nullptr) return expected_fpr(insert_count());
  const auto rate = [this](std::uint64_t keys) { return expected_fpr(keys); };
  return rate(estimate_distinct(insert_count(), rate));
}

bool any_filter::has_changed() const noexcept {
  return impl_->mapped != nullptr && !is_writable() && impl_->mapped->has_changed();
}

const file_info* any_filter::opened_from() const noexcept {
  return impl_->opened_from ? &*impl_->opened_from : nullptr;
}

}  // namespace bloomery
