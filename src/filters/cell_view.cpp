// cell_view: the values of the cells of a filter.
#include <bloomery/cells.hpp>

#include <bloomery/detail/bits.hpp>
#include <bloomery/detail/fuse.hpp>
#include <bloomery/layouts/counting.hpp>
#include <bloomery/layouts/sliding.hpp>
#include <bloomery/scheme.hpp>

#include "registry/tables.hpp"

#include <algorithm>
#include <cstring>

namespace bloomery {
namespace {

constexpr std::uint64_t stamp_bytes = layouts::sliding::stamp_bytes;

}  // namespace

std::uint64_t block_cells_of(const params& p) {
  const std::uint64_t bits = block_bits_of(p);
  const bool has_stamps = family_of(p) == family::sliding_window;
  return has_stamps ? bits / 8 - stamp_bytes : bits / cell_bits_of(p);
}

std::uint64_t cells_of(const params& p) {
  if (family_of(p) != family::sliding_window) return p.geometry.bits / cell_bits_of(p);
  return (p.geometry.bits / 8 - window_state_bytes) / (block_bits_of(p) / 8) * block_cells_of(p);
}

cell_view::cell_view(const params& p, std::span<const std::uint8_t> bytes, std::uint64_t epoch)
    : kind_(kind::bit),
      cell_bits_(cell_bits_of(p)),
      block_cells_(block_cells_of(p)),
      mask_(0),
      epoch_(static_cast<std::uint32_t>(epoch)),
      layers_{{0, cells_of(p), bytes}} {
  switch (family_of(p)) {
    case family::plain: break;
    case family::counting: kind_ = kind::counter; break;
    case family::sliding_window: kind_ = kind::generations; break;
    case family::static_set: kind_ = kind::fingerprint; break;
    case family::quotient:
      kind_ = kind::slots;
      if (const slot_calls* const slots = slots_of(find_layout(p.layout))) used_in_block_ = slots->used_in_block;
      break;
  }
  if (const scheme* const s = find_scheme(p.scheme); s != nullptr && s->from_top) mask_ = 7;
}

void cell_view::add_layer(std::span<const std::uint8_t> bytes) { layers_.push_back({size(), 8 * bytes.size(), bytes}); }

std::uint64_t cell_view::size() const noexcept { return layers_.back().first_cell + layers_.back().cells; }
std::uint64_t cell_view::block_cells() const noexcept { return block_cells_; }

std::uint32_t cell_view::layer_of(std::uint64_t cell) const {
  const auto after = std::upper_bound(layers_.begin(), layers_.end(), cell,
                                      [](std::uint64_t at, const segment& l) { return at < l.first_cell; });
  return static_cast<std::uint32_t>(after - layers_.begin()) - 1;
}

std::uint64_t cell_view::number_of(std::uint64_t explained_cell, std::uint32_t layer) const {
  if (kind_ != kind::generations) return layers_[layer].first_cell + (explained_cell ^ mask_);
  const std::uint64_t block_bytes = stamp_bytes + block_cells_;
  const std::uint64_t byte = explained_cell - window_state_bytes;
  return byte / block_bytes * block_cells_ + byte % block_bytes - stamp_bytes;
}

// A block of a sliding-window filter begins with the epoch in which it was last written.
cell_view::window_block cell_view::block_at(std::uint64_t block) const {
  const std::uint8_t* const at =
      layers_.front().bytes.data() + window_state_bytes + block * (stamp_bytes + block_cells_);
  std::uint32_t stamp;
  std::memcpy(&stamp, at, sizeof stamp);
  return {at + stamp_bytes, live_generations(stamp, epoch_)};
}

std::uint32_t cell_view::value(std::uint64_t cell) const {
  const segment& l = layers_[layer_of(cell)];
  switch (kind_) {
    case kind::counter: return layouts::counting::counter(l.bytes.data(), cell);
    case kind::fingerprint: return fuse_cell(cell_bits_, l.bytes, cell);
    case kind::generations: {
      const window_block block = block_at(cell / block_cells_);
      return std::uint32_t{block.cells[cell % block_cells_]} & block.live;
    }
    case kind::slots: return used_in_block_(l.bytes.data() + cell * (cell_bits_ / 8));
    case kind::bit: break;
  }
  return test_bit(l.bytes.data(), (cell - l.first_cell) ^ mask_) ? 1 : 0;
}

std::uint64_t cell_view::count_set(std::uint64_t from, std::uint64_t to) const {
  std::uint64_t set = 0;
  while (from < to) {
    const segment& l = layers_[layer_of(from)];
    const std::uint64_t end = std::min(to, l.first_cell + l.cells);
    // Counts whole bytes at once, which does not depend on the order of their bits.
    const bool whole_byte = kind_ == kind::bit && (from - l.first_cell) % 8 == 0 && end - from >= 8;
    const std::uint64_t bytes = whole_byte ? (end - from) / 8 : 0;
    set += whole_byte ? count_ones(l.bytes.subspan((from - l.first_cell) / 8, bytes)) : value(from) != 0;
    from += whole_byte ? 8 * bytes : 1;
  }
  return set;
}

void cell_view::count_set(std::uint64_t from, std::uint64_t run, std::span<std::uint64_t> counts) const {
  if (run == 0) return std::fill(counts.begin(), counts.end(), std::uint64_t{0});
  const std::span<const std::uint8_t> bytes = layers_.front().bytes;
  const bool whole_blocks = from + run * counts.size() <= size() && layers_.size() == 1 && from % run == 0;
  if (whole_blocks && kind_ == kind::bit && run == 512)
    return count_ones_of_lines(bytes.subspan(from / 8, 64 * counts.size()), counts);
  for (std::uint64_t& count : counts) {
    if (whole_blocks && kind_ == kind::bit && run % 8 == 0) {
      count = count_ones(bytes.subspan(from / 8, run / 8));
    } else if (whole_blocks && kind_ == kind::counter && run == block_cells_) {
      count = layouts::counting::cells_used(bytes.subspan(from / 2, run / 2));
    } else if (whole_blocks && kind_ == kind::generations && run == block_cells_) {
      const window_block block = block_at(from / run);
      count = static_cast<std::uint64_t>(
          std::count_if(block.cells, block.cells + run, [&](std::uint8_t cell) { return (cell & block.live) != 0; }));
    } else {
      count = count_set(from, std::min(size(), from + run));
    }
    from += run;
  }
}

}  // namespace bloomery
