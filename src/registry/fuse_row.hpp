// Rows of static filters for tables.cpp, and functions of any_filter for static filters only.
#pragma once

#include <bloomery/detail/fuse.hpp>

#include "registry/tables.hpp"

#include <span>
#include <string>
#include <vector>

namespace bloomery {

/// @throws error invalid_argument, always: the size of a static filter follows from its keys
geometry fuse_geometry_for(std::uint64_t capacity, double rate);
void check_fuse_geometry(const geometry& g);
double fuse_keys_from_zeros(const geometry& g, std::uint64_t zeros);
occupancy fuse_occupancy(const geometry& g);

/// The exact FPR of these partitions: 2^-w in each partition with keys.
template <fuse_fingerprint F>
cell_scan_result look_at_fuse(const geometry& g, const byte_slice& all, const block_counters&);

/// Like check_fuse(); also compares the number of keys with the header.
template <fuse_fingerprint F>
void check_fuse_bytes(const params& p, std::span<const std::uint8_t> bytes, const std::string& where);

template <fuse_fingerprint F>
double fuse_rate_of(const geometry&, std::uint64_t keys) {
  return fuse_rate(8 * sizeof(F), keys);
}

template <fuse_fingerprint F>
void fuse_may_contain(const std::uint8_t* bytes, const geometry& g, const hash_span& keys, std::uint64_t* bitmap) {
  fuse::has_batch<F>(bytes, g.bits, keys, bitmap);
}

/// @param single  functions for each hash, in the order of hash_rows()
template <fuse_fingerprint F>
constexpr layout_row row_of_fuse(const single_key_calls* single) {
  layout_row row{};
  row.name = sizeof(F) == 1 ? "fuse8" : sizeof(F) == 2 ? "fuse16" : "fuse32";
  row.geometry_for = fuse_geometry_for;
  row.check = check_fuse_geometry;
  row.expected_fpr = fuse_rate_of<F>;
  row.keys_from_zeros = fuse_keys_from_zeros;
  row.may_contain = fuse_may_contain<F>;
  row.single = single;
  row.occupancy = fuse_occupancy;
  row.scan_cells = look_at_fuse<F>;
  row.family = family::static_set;
  row.cell_bits = 8 * sizeof(F);
  row.fixed_probes = fuse::probes;
  row.most_chosen_probes = fuse::probes;
  row.check_bytes = check_fuse_bytes<F>;
  return row;
}

/// The indices of a key's three cells; none in a partition without keys.
std::vector<std::uint64_t> static_cells(const params& p, std::span<const std::uint8_t> bytes, std::uint64_t hash64);

/// @throws error not_permitted: p is of a static filter
void refuse_keys_if_static(const params& p, const std::string& where);

/// @throws error invalid_argument: p is of a static filter, which cannot be created empty
void refuse_empty_if_static(const params& p);

}  // namespace bloomery
