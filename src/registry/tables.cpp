// Tables of layouts and hashes.
#include "registry/tables.hpp"

#include <bloomery/hash.hpp>
#include <bloomery/layouts/blocked.hpp>
#include <bloomery/layouts/blocked_page.hpp>
#include <bloomery/layouts/classic.hpp>
#include <bloomery/layouts/counting.hpp>
#include <bloomery/layouts/sliding.hpp>
#include <bloomery/layouts/split_block.hpp>
#include <bloomery/layouts/split_block512.hpp>

#include "kernels/kernels.hpp"
#include "layouts/quotient.hpp"
#include "registry/static_row.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

namespace bloomery {
namespace {

template <class Hash>
Hash with_seed(const hash_seed& seed) {
  if constexpr (std::same_as<Hash, mix>)
    return seed.seed;
  else if constexpr (std::same_as<Hash, siphash>)
    return siphash(seed.secret);
  else if constexpr (std::same_as<Hash, identity>)
    return {};
  else
    return Hash{seed.seed.seed()};
}

template <layout L, class Hash, class Key>
bool insert_key(std::uint8_t* bytes, const geometry& g, const hash_seed& seed, Key key) {
  return insert_one<L>(bytes, g, with_seed<Hash>(seed)(key));
}

template <layout L, class Hash, class Key>
bool has_key(const std::uint8_t* bytes, const geometry& g, const hash_seed& seed, Key key) {
  return has_one<L>(bytes, g, with_seed<Hash>(seed)(key));
}

template <layout L, class Hash>
constexpr single_key_calls single_calls() {
  single_key_calls calls{nullptr, nullptr, insert_key<L, Hash, std::uint64_t>, has_key<L, Hash, std::uint64_t>};
  if constexpr (hash_of<Hash, std::string_view>) {
    calls.insert_bytes = insert_key<L, Hash, std::string_view>;
    calls.has_bytes = has_key<L, Hash, std::string_view>;
  }
  return calls;
}

// Lookups in static filters, given the hash. The code for packed cells exists once, for all hashes.
template <unsigned W>
struct fuse_lookup {
  static bool has(const std::uint8_t* bytes, std::uint64_t hash64) { return fuse::has<W>(bytes, hash64); }
};
template <>
struct fuse_lookup<fuse::packed> {
  [[gnu::noinline]] static bool has(const std::uint8_t* bytes, std::uint64_t hash64) {
    return fuse::has<fuse::packed>(bytes, hash64);
  }
};
struct ribbon_lookup {
  static bool has(const std::uint8_t* bytes, std::uint64_t hash64) { return bloomery::ribbon::has(bytes, hash64); }
};

struct cascade_lookup {
  static bool has(const std::uint8_t* bytes, std::uint64_t hash64) { return bloomery::cascade::has(bytes, hash64); }
};

template <class Lookup, class Hash, class Key>
bool is_sealed_in(const std::uint8_t* bytes, const geometry&, const hash_seed& seed, Key key) {
  return Lookup::has(bytes, with_seed<Hash>(seed)(key).hash64);
}

template <class Lookup, class Hash>
constexpr single_key_calls sealed_calls() {
  single_key_calls calls{nullptr, nullptr, nullptr, is_sealed_in<Lookup, Hash, std::uint64_t>};
  if constexpr (hash_of<Hash, std::string_view>) calls.has_bytes = is_sealed_in<Lookup, Hash, std::string_view>;
  return calls;
}

template <class Hash, class Key>
void hash_with(const hash_seed& seed, std::span<const Key> keys, key_hash* out) {
  bloomery::hash_each(with_seed<Hash>(seed), keys, out);
}

template <class Hash, class Key>
key_hash hash_one_with(const hash_seed& seed, Key key) {
  return with_seed<Hash>(seed)(key);
}

template <class Hash>
void hash64_with(const hash_seed& seed, std::span<const std::string_view> keys, std::uint64_t* out,
                 const detail::block_prefetch& blocks) {
  if (blocks.bytes == nullptr) return with_seed<Hash>(seed).each_hash64(keys, out);
  with_seed<Hash>(seed).each_hash64(keys, out, blocks);
}

template <class Hash>
constexpr hash_row row_of_hash() {
  hash_row row{Hash::name,
               std::numeric_limits<std::uint64_t>::max(),
               false,
               nullptr,
               hash_with<Hash, std::uint64_t>,
               nullptr,
               hash_one_with<Hash, std::uint64_t>,
               nullptr,
               std::same_as<Hash, siphash>,
               std::same_as<Hash, mix>,
               std::same_as<Hash, identity>};
  if constexpr (requires { Hash::most_seed; }) row.most_seed = Hash::most_seed;
  if constexpr (hash_of<Hash, std::string_view>) {
    row.takes_bytes = true;
    row.of_bytes = hash_with<Hash, std::string_view>;
    row.of_one_bytes = hash_one_with<Hash, std::string_view>;
  }
  if constexpr (std::same_as<Hash, xxh3_64>) row.hash64_of_bytes = hash64_with<Hash>;
  return row;
}

template <class... Hashes>
struct hash_list {
  static constexpr hash_row rows[] = {row_of_hash<Hashes>()...};

  template <layout L>
  static constexpr single_key_calls single[] = {single_calls<L, Hashes>()...};

  template <unsigned W>
  static constexpr single_key_calls fuse[] = {sealed_calls<fuse_lookup<W>, Hashes>()...};

  static constexpr single_key_calls ribbon[] = {sealed_calls<ribbon_lookup, Hashes>()...};

  static constexpr single_key_calls cascade[] = {sealed_calls<cascade_lookup, Hashes>()...};
};

// All hashes.
using hashes = hash_list<xxh3_64, xxh3, mix, identity, murmur3, siphash, xxh64>;

// The row of a layout, completed with the functions for each hash and the kernel that counts its blocks, if any.
template <class L>
layout_row complete_row(decltype(layout_row::block_kernel) block_kernel = nullptr) {
  layout_row row = row_of<L>();
  if constexpr (layout<L>) row.single = hashes::single<L>;
  row.block_kernel = block_kernel;
  return row;
}

// The functions of fuse filters with cells of 8, 16, 32 and other numbers of bits.
const single_key_calls* fuse_of(unsigned width) {
  return width == 8    ? hashes::fuse<8>
         : width == 16 ? hashes::fuse<16>
         : width == 32 ? hashes::fuse<32>
                       : hashes::fuse<fuse::packed>;
}

// All layouts: first those of plain filters, the fastest first; then those of other families, which are never chosen
// automatically.
std::span<const layout_row> all_layouts() noexcept {
  // Never destroyed: filters in static storage may outlive it.
  static const std::vector<layout_row>& rows = *new const std::vector<layout_row>([] {
    using kernels::fill_kernel;
    std::vector<layout_row> all = {
        complete_row<layouts::split_block>(&fill_kernel::split_block),
        complete_row<layouts::split_block512>(&fill_kernel::split_block512),
        complete_row<layouts::blocked>(&fill_kernel::blocked),
        complete_row<layouts::blocked_page>(),
        complete_row<layouts::classic>(),
        complete_row<layouts::counting>(),
        complete_row<layouts::sliding>(),
        complete_row<layouts::sliding64>(),
    };
    const std::vector<layout_row> quotient = quotient::rows();
    all.insert(all.end(), quotient.begin(), quotient.end());
    for (unsigned width = 1; width <= sealed::most_width; ++width)
      all.push_back(row_of_static(static_structure::fuse, width, fuse_of(width)));
    for (unsigned width = 1; width <= sealed::most_width; ++width)
      all.push_back(row_of_static(static_structure::ribbon, width, hashes::ribbon));
    for (unsigned width = 1; width <= sealed::most_width; ++width)
      all.push_back(row_of_cascade(width, hashes::cascade));
    return all;
  }());
  return rows;
}

template <class Row>
const Row* find(std::span<const Row> rows, std::string_view name) noexcept {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace

std::span<const layout_row> layout_rows() noexcept {
  static const std::size_t plain = layouts_of(family::plain).size();
  return all_layouts().first(plain);
}
std::span<const hash_row> hash_rows() noexcept { return hashes::rows; }
const single_key_calls& single_key_calls_of(const layout_row& layout, const hash_row& hash) noexcept {
  return layout.single[&hash - hashes::rows];
}

const layout_row* find_layout(std::string_view name) noexcept { return find(all_layouts(), name); }

const layout_facts* find_layout_facts(std::string_view name) noexcept { return find_layout(name); }

std::vector<layout_facts> layouts_of(bloomery::family f) {
  std::vector<layout_facts> found;
  const std::span<const layout_row> rows = all_layouts();
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(found),
               [&](const layout_facts& facts) { return facts.family == f; });
  return found;
}

const hash_row* find_hash(std::string_view name) noexcept { return find(hash_rows(), name); }

bool can_hash_keys(const params& p) noexcept {
  return (!p.scheme.empty() || find_hash(p.hash) != nullptr) && (p.key_check == 0 || p.secret.has_value());
}

}  // namespace bloomery
