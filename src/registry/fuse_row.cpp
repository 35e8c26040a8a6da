// Rows of static filters, and their checks.
#include "registry/fuse_row.hpp"

#include <bloomery/detail/bits.hpp>
#include <bloomery/error.hpp>

#include "math/rates.hpp"

#include <cmath>

namespace bloomery {
namespace {

[[noreturn]] void refuse_making() {
  throw error(errc::invalid_argument,
              {"a static filter cannot be created empty, because it is built once from all its keys", "layout", "", "",
               hint::seal_all_keys});
}

}  // namespace

geometry fuse_geometry_for(std::uint64_t, double) { refuse_making(); }

void check_fuse_geometry(const geometry& g) {
  constexpr std::uint64_t unit = 512;
  if (g.bits < 2 * unit || g.bits % unit != 0) {
    throw error(errc::invalid_argument, {"invalid number of bits for a static filter", "geometry",
                                         "a multiple of 512, at least 1024", std::to_string(g.bits), ""});
  }
  if (g.probes != fuse::probes) {
    throw error(errc::invalid_argument,
                {"invalid number of probes for a static filter", "geometry", "3", std::to_string(g.probes), ""});
  }
}

double fuse_keys_from_zeros(const geometry&, std::uint64_t) { return 0; }

occupancy fuse_occupancy(const geometry& g) { return {1, g.bits, 0, g.probes}; }

// For any cell values, the fingerprint of a random key matches with probability 2^-w. So the current FPR depends only
// on which partitions have cells.
template <fuse_fingerprint F>
cell_scan_result look_at_fuse(const geometry& g, const byte_slice& all, const block_counters&) {
  const std::span<const std::uint8_t> bytes = all.bytes;
  check_fuse_geometry(g);
  check_fuse(8 * sizeof(F), bytes, "measure_fill");
  const std::uint64_t partitions = fuse::partitions_in(bytes.data());
  std::uint64_t with_keys = 0;
  for (std::uint64_t p = 0; p < partitions; ++p) with_keys += fuse::partition_in(bytes.data(), p).keys > 0 ? 1 : 0;
  const long double hit = std::exp2(-8 * static_cast<long double>(sizeof(F))) * static_cast<long double>(with_keys) /
                          static_cast<long double>(partitions);
  const long double collision = rates::collision(0x1p64L, fuse_keys(bytes));
  return {count_ones(bytes), rates::either(hit, collision), 0};
}

template <fuse_fingerprint F>
void check_fuse_bytes(const params& p, std::span<const std::uint8_t> bytes, const std::string& where) {
  check_fuse(8 * sizeof(F), bytes, where);
  if (fuse_keys(bytes) == p.capacity) return;
  throw error(errc::damaged, {"the static filter contradicts itself: keys", where, std::to_string(p.capacity),
                              std::to_string(fuse_keys(bytes)), hint::seal_again});
}

template cell_scan_result look_at_fuse<std::uint8_t>(const geometry&, const byte_slice&, const block_counters&);
template cell_scan_result look_at_fuse<std::uint16_t>(const geometry&, const byte_slice&, const block_counters&);
template cell_scan_result look_at_fuse<std::uint32_t>(const geometry&, const byte_slice&, const block_counters&);
template void check_fuse_bytes<std::uint8_t>(const params&, std::span<const std::uint8_t>, const std::string&);
template void check_fuse_bytes<std::uint16_t>(const params&, std::span<const std::uint8_t>, const std::string&);
template void check_fuse_bytes<std::uint32_t>(const params&, std::span<const std::uint8_t>, const std::string&);

std::vector<std::uint64_t> static_cells(const params& p, std::span<const std::uint8_t> bytes, std::uint64_t hash64) {
  const fuse_place place = fuse_place_of(cell_bits_of(p), bytes, hash64);
  if (!place.somewhere) return {};
  return {place.cells.begin(), place.cells.end()};
}

void refuse_keys_if_static(const params& p, const std::string& where) {
  if (family_of(p) != family::static_set) return;
  throw error(errc::not_permitted, {"keys cannot be inserted into or removed from a static filter", where, "", "",
                                    hint::seal_old_and_new_keys});
}

void refuse_empty_if_static(const params& p) {
  if (family_of(p) == family::static_set) refuse_making();
}

}  // namespace bloomery
