#include "filters/sliced_lookups.hpp"

#include "filters/explain.hpp"

#include <algorithm>
#include <utility>

namespace bloomery {

sliced_lookups::sliced_lookups(const any_filter& cells, std::uint64_t queries, std::uint64_t seed,
                               std::uint64_t slice_bytes)
    : cells_(cells),
      keys_(cells.parameters().keys, seed, 1),
      cell_bits_(cell_bits_of(cells.parameters())),
      slice_bytes_(slice_bytes),
      queries_(queries),
      waiting_(bytes_for(cells.parameters().geometry.bits) / slice_bytes + 1) {
  for (std::uint64_t i = 0; i < queries; ++i) {
    const std::vector<std::uint64_t> of_key = cells_of_key(cells_, keys_.at(i, 1));
    waiting_[slice_of(*std::min_element(of_key.begin(), of_key.end()))].push_back(i);
  }
}

void sliced_lookups::add(std::uint64_t first, std::span<const std::uint8_t> bytes) {
  const std::uint64_t here = first / slice_bytes_;
  const std::uint64_t first_cell = 8 * first / cell_bits_;
  for (const std::uint64_t i : std::exchange(waiting_[here], {})) {
    std::uint64_t next = waiting_.size();
    bool is_set = true;
    for (const std::uint64_t cell : cells_of_key(cells_, keys_.at(i, 1))) {
      const std::uint64_t slice = slice_of(cell);
      if (slice == here) is_set = is_set && cell_value(cell_bits_, bytes.data(), cell - first_cell) != 0;
      if (slice > here) next = std::min(next, slice);
    }
    if (!is_set) continue;
    if (next == waiting_.size())
      ++hits_;
    else
      waiting_[next].push_back(i);
  }
}

}  // namespace bloomery
