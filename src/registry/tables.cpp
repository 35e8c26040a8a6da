#include "registry/tables.hpp"

#include <bloomery/hash.hpp>
#include <bloomery/layouts/blocked.hpp>
#include <bloomery/layouts/blocked_page.hpp>
#include <bloomery/layouts/classic.hpp>
#include <bloomery/layouts/counting.hpp>
#include <bloomery/layouts/split_block.hpp>
#include <bloomery/layouts/split_block512.hpp>

#include "layouts/facts_of.hpp"
#include "layouts/occupancy_of.hpp"
#include "registry/census.hpp"
#include "registry/fuse_row.hpp"
#include "registry/windows.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <vector>

namespace bloomery {
namespace {

template <class L>
void cells_of(const geometry& g, key_hash hash, std::uint64_t* out) {
  typename L::cells cells(g, hash);
  for (std::uint32_t i = 0; i < cells.count(); ++i) out[i] = cells.next();
}

template <class Hash>
Hash with_seed(const hash_seed& seed) {
  if constexpr (std::same_as<Hash, mix>)
    return seed.seed;
  else if constexpr (std::same_as<Hash, siphash>)
    return siphash(seed.secret);
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

template <class F, class Hash, class Key>
bool is_sealed_in(const std::uint8_t* bytes, const geometry&, const hash_seed& seed, Key key) {
  return fuse::has<F>(bytes, with_seed<Hash>(seed)(key).lo);
}

template <class F, class Hash>
constexpr single_key_calls sealed_calls() {
  single_key_calls calls{nullptr, nullptr, nullptr, is_sealed_in<F, Hash, std::uint64_t>};
  if constexpr (hash_of<Hash, std::string_view>) calls.has_bytes = is_sealed_in<F, Hash, std::string_view>;
  return calls;
}

template <class Hash, class Key>
void hash_with(const hash_seed& seed, std::span<const Key> keys, key_hash* out) {
  bloomery::hash_each(with_seed<Hash>(seed), keys, out);
}

template <class Hash>
constexpr hash_row row_of_hash() {
  hash_row row{Hash::name,
               std::numeric_limits<std::uint64_t>::max(),
               false,
               nullptr,
               hash_with<Hash, std::uint64_t>,
               std::same_as<Hash, siphash>,
               std::same_as<Hash, mix>};
  if constexpr (requires { Hash::most_seed; }) row.most_seed = Hash::most_seed;
  if constexpr (hash_of<Hash, std::string_view>) {
    row.takes_bytes = true;
    row.of_bytes = hash_with<Hash, std::string_view>;
  }
  return row;
}

template <class... Hashes>
struct hash_list {
  static constexpr hash_row rows[] = {row_of_hash<Hashes>()...};

  template <layout L>
  static constexpr single_key_calls single[] = {single_calls<L, Hashes>()...};

  template <class F>
  static constexpr single_key_calls sealed[] = {sealed_calls<F, Hashes>()...};
};

// The table of hashes.
using hashes = hash_list<xxh3, mix, murmur3, siphash>;

template <layout L>
constexpr layout_row row_of_layout() {
  layout_row row{facts_of<L>(),      L::geometry_for, L::check,        L::false_positive_rate,
                 L::keys_from_zeros, cells_of<L>,     insert_batch<L>, has_batch<L>,
                 hashes::single<L>,  nullptr,         occupancy_of<L>, census_of<L>};
  if constexpr (layout_by_halves<L>) row.bulk = bulk_target_of<L>;
  return row;
}

constexpr removal_calls removals = {counting::remove_batch, counting::cells_used, counting::copies_in,
                                    counting::merge_bytes};

constexpr layout_row counting_row() {
  layout_row row = row_of_layout<counting>();
  row.removals = &removals;
  return row;
}

// Its keys go in and are looked up as of an epoch, through window_calls: there is no call without one.
template <windowed_layout L>
constexpr layout_row row_of_window() {
  layout_row row{};
  static_cast<layout_facts&>(row) = facts_of<L>();
  row.geometry_for = L::geometry_for;
  row.check = L::check;
  row.false_positive_rate = L::false_positive_rate;
  row.keys_from_zeros = no_keys_from_zeros;
  row.cells = cells_of<L>;
  row.occupancy = no_occupancy;
  row.take_census = census_of_window<L>;
  row.window = &window_calls_of<L>;
  return row;
}

// The table of layouts.
constexpr layout_row layouts[] = {row_of_layout<split_block>(), row_of_layout<split_block512>(),
                                  row_of_layout<blocked>(), row_of_layout<blocked_page>(), row_of_layout<classic>()};

// The layouts of filters that can do more than insert and look up, or less; no choice among plain layouts takes them.
constexpr std::array other_layouts = {counting_row(),
                                      row_of_window<sliding>(),
                                      row_of_window<sliding64>(),
                                      row_of_fuse<std::uint8_t>(hashes::sealed<std::uint8_t>),
                                      row_of_fuse<std::uint16_t>(hashes::sealed<std::uint16_t>),
                                      row_of_fuse<std::uint32_t>(hashes::sealed<std::uint32_t>)};

template <class Row>
const Row* find(std::span<const Row> rows, std::string_view name) noexcept {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace

std::span<const layout_row> layout_rows() noexcept { return layouts; }
std::span<const hash_row> hash_rows() noexcept { return hashes::rows; }
const single_key_calls& single_key_calls_of(const layout_row& layout, const hash_row& hash) noexcept {
  return layout.single[&hash - hashes::rows];
}

const layout_row* find_layout(std::string_view name) noexcept {
  const layout_row* plain = find(layout_rows(), name);
  return plain != nullptr ? plain : find(std::span<const layout_row>(other_layouts), name);
}

const layout_facts* find_layout_facts(std::string_view name) noexcept { return find_layout(name); }

std::vector<layout_facts> layouts_of(bloomery::family f) {
  std::vector<layout_facts> found;
  for (const std::span<const layout_row> rows : {layout_rows(), std::span<const layout_row>(other_layouts)}) {
    std::copy_if(rows.begin(), rows.end(), std::back_inserter(found),
                 [&](const layout_facts& facts) { return facts.family == f; });
  }
  return found;
}

const hash_row* find_hash(std::string_view name) noexcept { return find(hash_rows(), name); }

}  // namespace bloomery
