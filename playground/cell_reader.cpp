#include "playground/cell_reader.hpp"

#include "cli/commands/counting.hpp"

#include <bloomery/detail/bits.hpp>
#include <bloomery/detail/fuse.hpp>
#include <bloomery/fill_statistics.hpp>
#include <bloomery/layouts/counting.hpp>
#include <bloomery/scheme.hpp>

#include <algorithm>
#include <cstring>

namespace bloomery::playground {

std::uint64_t cells_of(const params& p) {
  if (family_of(p) != family::windowed) return p.geometry.bits / cell_bits_of(p);
  const window_shape shape(p);
  return (p.geometry.bits / 8 - window_state_bytes) / shape.block_bytes * shape.cells_of_block;
}

std::uint64_t block_cells_of(const params& p) {
  if (!p.scheme.empty()) return 0;
  if (family_of(p) == family::windowed) return window_shape(p).cells_of_block;
  return block_bits_of(p) / cell_bits_of(p);
}

std::uint64_t range_for(std::uint64_t cells, std::uint64_t most, std::uint64_t block) {
  const std::uint64_t least = (cells + most - 1) / most;
  if (block == 0) return least;
  if (least >= block) return (least + block - 1) / block * block;
  std::uint64_t part = least;
  while (block % part != 0) ++part;
  return part;
}

bool counts_from_top(const params& p) {
  const scheme* const s = find_scheme(p.scheme);
  return s != nullptr && s->from_top;
}

cell_reader::cell_reader(const params& p, std::span<const std::uint8_t> bytes, std::uint64_t epoch)
    : params_(&p), family_(family_of(p)), mask_(counts_from_top(p) ? 7 : 0), epoch_(static_cast<std::uint32_t>(epoch)) {
  segments_.push_back({0, cells_of(p), bytes});
  if (family_ == family::windowed) shape_.emplace(p);
}

cell_reader::cell_reader(const scalable_layers& layers) {
  std::uint64_t first_cell = 0;
  for (const scalable_layer& layer : layers.layers()) {
    segments_.push_back({first_cell, layer.geometry.bits, layers.bytes_of(segments_.size())});
    first_cell += layer.geometry.bits;
  }
}

std::uint32_t cell_reader::layer_of(std::uint64_t cell) const {
  const auto after = std::upper_bound(segments_.begin(), segments_.end(), cell,
                                      [](std::uint64_t at, const segment& s) { return at < s.first_cell; });
  return static_cast<std::uint32_t>(after - segments_.begin()) - 1;
}

std::uint32_t cell_reader::value(std::uint64_t cell) const {
  const segment& s = segments_[layer_of(cell)];
  if (family_ == family::windowed) {
    const std::uint64_t byte = shape_->byte_of(cell);
    std::uint32_t stamp;
    std::memcpy(&stamp, s.bytes.data() + shape_->block_of(byte), sizeof stamp);
    return s.bytes[byte] & live_generations(stamp, epoch_);
  }
  if (family_ == family::sealed) return fuse_cell(cell_bits_of(*params_), s.bytes, cell);
  return family_ == family::plain ? std::uint32_t{test_bit(s.bytes.data(), (cell - s.first_cell) ^ mask_)}
                                  : cli::value_of_cell(*params_, s.bytes, cell);
}

std::uint64_t cell_reader::ones(std::uint64_t from, std::uint64_t to) const {
  std::uint64_t ones = 0;
  while (from < to) {
    const segment& s = segments_[layer_of(from)];
    const std::uint64_t end = std::min(to, s.first_cell + s.cells);
    // Whole bytes at once: from whichever end their bits are counted, they are the same.
    const bool whole_byte = family_ == family::plain && (from - s.first_cell) % 8 == 0 && end - from >= 8;
    const std::uint64_t bytes = whole_byte ? (end - from) / 8 : 0;
    ones += whole_byte ? count_ones(s.bytes.subspan((from - s.first_cell) / 8, bytes)) : value(from) != 0;
    from += whole_byte ? 8 * bytes : 1;
  }
  return ones;
}

void cell_reader::count_runs(std::uint64_t from, std::uint64_t run, std::span<std::uint64_t> ones) const {
  const segment& last = segments_.back();
  const bool whole = from + run * ones.size() <= last.first_cell + last.cells;
  if (whole && segments_.size() == 1 && from % run == 0) {
    const std::span<const std::uint8_t> bytes = last.bytes;
    if (family_ == family::plain && run == 512) {
      return count_ones_of_lines(bytes.subspan(from / 8, 64 * ones.size()), ones);
    }
    if (family_ == family::counting && run == layouts::counting::cells_of_line) {
      for (std::uint64_t& sum : ones) {
        sum = layouts::counting::cells_used(bytes.subspan(from / 2, run / 2));
        from += run;
      }
      return;
    }
    if (family_ == family::windowed && run == shape_->cells_of_block) {
      for (std::uint64_t& sum : ones) {
        sum = block_ones(bytes.data() + shape_->byte_of(from));
        from += run;
      }
      return;
    }
  }
  const std::uint64_t end = last.first_cell + last.cells;
  for (std::uint64_t& sum : ones) {
    sum = this->ones(from, std::min(end, from + run));
    from += run;
  }
}

std::uint64_t cell_reader::block_ones(const std::uint8_t* cells) const {
  std::uint32_t stamp;
  std::memcpy(&stamp, cells - (shape_->block_bytes - shape_->cells_of_block), sizeof stamp);
  const std::uint8_t live = live_generations(stamp, epoch_);
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < shape_->cells_of_block; ++i) sum += (cells[i] & live) != 0 ? 1 : 0;
  return sum;
}

}  // namespace bloomery::playground
