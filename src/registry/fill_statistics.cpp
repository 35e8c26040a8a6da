// Fill statistics: the selection of kernels, and the current FPR from a cell scan.
#include "registry/fill_statistics.hpp"

#include <bloomery/detail/bits.hpp>
#include <bloomery/error.hpp>
#include <bloomery/scheme.hpp>

#include "kernels/dispatch.hpp"
#include "math/occupancy.hpp"
#include "math/rates.hpp"
#include "registry/tables.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

namespace bloomery {

fill_statistics fill_statistics_of(const layout_row& row, const geometry& g, const cell_scan_result& seen) {
  if (seen.hash_values == 0) return {seen.used, static_cast<double>(seen.hit)};
  if (seen.used == 0) return {};
  const occupancy o = row.occupancy(g);
  const std::uint64_t cells = o.blocks * o.block_bits;
  const long double fill = static_cast<long double>(seen.used) / static_cast<long double>(cells);
  const long double hit = row.block_bits == 0 ? cell_scans::power(fill, g.probes) : seen.hit;
  const double keys = std::round(keys_from_zeros(o, std::max<std::uint64_t>(cells - seen.used, 1)).value);
  const long double collision = rates::collision(seen.hash_values, static_cast<std::uint64_t>(std::min(keys, 0x1p62)));
  return {seen.used, static_cast<double>(std::min(rates::either(hit, collision), 1.0L))};
}

block_counters counters_for(const layout_row& row) noexcept {
  const kernels::fill_kernel& kernel = chosen_kernels().fill_statistics;
  return {kernel.ones, row.block_kernel != nullptr ? kernel.*row.block_kernel : nullptr};
}

std::uint64_t used_ones(std::uint64_t bits, const byte_slice& slice, bool from_top) {
  std::uint64_t ones = count_ones(slice.bytes);
  const bool is_last = slice.first + slice.bytes.size() == bytes_for(bits);
  if (const std::uint64_t used = bits % 8; used != 0 && is_last) {
    const unsigned mask = from_top ? 0xFFu >> used : 0xFFu << used & 0xFFu;
    ones -= static_cast<std::uint64_t>(std::popcount(slice.bytes.back() & mask));
  }
  return ones;
}

namespace {

// Number of set bits of a slice among bits first .. end - 1 of the filter.
std::uint64_t ones_between(const byte_slice& slice, std::uint64_t first, std::uint64_t end, bool from_top) {
  const std::uint64_t flip = from_top ? 7 : 0;
  first = std::max(first, 8 * slice.first) - 8 * slice.first;
  end = std::min<std::uint64_t>(std::max(end, 8 * slice.first) - 8 * slice.first, 8 * slice.bytes.size());
  std::uint64_t ones = 0;
  while (first < end) {
    const std::uint64_t whole_bytes = first % 8 == 0 ? (end - first) / 8 : 0;
    if (whole_bytes > 0) {
      ones += count_ones(slice.bytes.subspan(first / 8, whole_bytes));
    } else {
      ones += test_bit(slice.bytes.data(), first ^ flip) ? 1 : 0;
    }
    first += whole_bytes > 0 ? 8 * whole_bytes : 1;
  }
  return ones;
}

}  // namespace

std::uint64_t ones_in(const byte_slice& slice, const bit_range& range, std::uint64_t bits, bool from_top) {
  const std::uint64_t end = range.first + range.count;
  const std::uint64_t at_start = end - std::min(end, bits);  // the rest of a range that continues at the first bit
  return ones_between(slice, range.first, std::min(end, bits), from_top) + ones_between(slice, 0, at_start, from_top);
}

fill_scan::fill_scan(const params& p)
    : geometry_(p.geometry), layout_(find_layout(p.layout)), scheme_(find_scheme(p.scheme)) {
  if (layout_ == nullptr && scheme_ == nullptr) {
    throw error(errc::invalid_argument,
                {"unknown layout or scheme", "", "one of " + layout_names() + ", " + scheme_names(),
                 "'" + p.layout + p.scheme + "'", ""});
  }
  if (layout_ != nullptr)
    layout_->check(geometry_);
  else
    scheme_->check(geometry_);
  if (scheme_ == nullptr) return;
  if (scheme_->beginning != nullptr) beginning_.reserve(scheme_->beginning(geometry_));
  if (scheme_->line_bits != 0) lines_.resize(scheme_->line_bits + 1);
}

void fill_scan::add(std::span<const std::uint8_t> bytes) {
  const std::uint64_t left = bytes_for(geometry_.bits) - read_;
  const bool in_slices = scheme_ != nullptr || layout_->family == family::plain || layout_->family == family::counting;
  const bool is_slice = in_slices && bytes.size() < left && bytes.size() % slice_unit == 0;
  if (bytes.size() != left && !is_slice) {
    throw error(errc::invalid_argument,
                {"wrong number of bytes", "fill_scan", std::to_string(left), std::to_string(bytes.size()), ""});
  }
  const byte_slice slice{read_, bytes};
  read_ += bytes.size();
  if (scheme_ == nullptr) {
    const cell_scan_result seen = layout_->scan_cells(geometry_, slice, counters_for(*layout_));
    used_ += seen.used;
    hit_ += seen.hit;
    hash_values_ = seen.hash_values;
    return;
  }
  used_ += used_ones(geometry_.bits, slice, scheme_->from_top);
  if (scheme_->favoured != nullptr)
    favoured_ += ones_in(slice, scheme_->favoured(geometry_), geometry_.bits, scheme_->from_top);
  if (scheme_->beginning != nullptr) {
    const std::uint64_t more = scheme_->beginning(geometry_) - beginning_.size();
    const auto wanted = bytes.first(static_cast<std::size_t>(std::min<std::uint64_t>(more, bytes.size())));
    beginning_.insert(beginning_.end(), wanted.begin(), wanted.end());
  }
  if (const std::size_t line = scheme_->line_bits / 8; line != 0) {
    for (std::size_t at = 0; at < bytes.size(); at += line) ++lines_[count_ones(bytes.subspan(at, line))];
  }
}

fill_statistics fill_scan::result() const {
  if (scheme_ != nullptr) return {used_, scheme_->current_fpr(geometry_, {used_, favoured_, beginning_, lines_})};
  return fill_statistics_of(*layout_, geometry_, {used_, hit_, hash_values_});
}

fill_statistics measure_fill(const params& p, std::span<const std::uint8_t> bytes) {
  fill_scan scan(p);
  if (bytes.size() != bytes_for(p.geometry.bits)) {
    throw error(errc::invalid_argument, {"wrong number of bytes", "measure_fill",
                                         std::to_string(bytes_for(p.geometry.bits)), std::to_string(bytes.size()), ""});
  }
  scan.add(bytes);
  return scan.result();
}

}  // namespace bloomery
