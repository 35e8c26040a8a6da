// bloomery's filters as contestants: filter<>, any_filter, static_filter<>, and each kernel set.
#pragma once

#include "lookups.hpp"
#include "peers/peer.hpp"

#include <bloomery/any_filter.hpp>
#include <bloomery/filter.hpp>
#include <bloomery/static_filter.hpp>

#include "kernels/dispatch.hpp"

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace bench {

using bloomery::geometry;

/// The geometry with this many bits per key, in whole blocks, and the number of probes with the lowest FPR.
template <class Layout>
geometry geometry_of(std::uint64_t n, unsigned bits_per_key) {
  const std::uint64_t bits = n * bits_per_key;
  if constexpr (std::same_as<Layout, bloomery::layouts::classic>) {
    return {bits, bloomery::layouts::classic::best_probes(bits, n)};
  } else {
    const std::uint64_t blocks = std::max<std::uint64_t>(bits / Layout::block_bits, 1);
    std::uint32_t probes = 8;
    if constexpr (requires { Layout::most_chosen_probes; }) {
      constexpr std::uint64_t sample = 1024;  // blocks; the FPR hardly depends on their number
      const auto rate = [&](std::uint32_t k) {
        return Layout::expected_fpr({sample * Layout::block_bits, k}, sample * Layout::block_bits / bits_per_key);
      };
      probes = 1;
      while (rate(probes + 1) < rate(probes)) ++probes;
    }
    return {blocks * Layout::block_bits, probes};
  }
}

/// The operations that filter<> and any_filter have in common.
template <class Filter, class Key>
class our_calls {
 public:
  explicit our_calls(Filter filter) : filter_(std::move(filter)) {}
  void clear() { filter_.clear(); }
  std::uint64_t bytes() const { return filter_.byte_size(); }
  void insert(const Key& key) { filter_.insert(key); }
  void insert_bulk(std::span<const Key> keys) { filter_.insert(keys); }
  void build(std::span<const Key> keys, unsigned threads) { filter_.insert_all(keys, threads); }
  bool has(const Key& key) const { return filter_.may_contain(key); }
  std::uint64_t count_bulk(std::span<const Key> keys) const {
    return count_in_pieces(keys, [this](auto some, auto bitmap) { filter_.may_contain(some, bitmap); });
  }

 private:
  Filter filter_;
};

template <class Layout, class Key>
struct typed : our_calls<bloomery::filter<Key, Layout>, Key> {
  typed(std::uint64_t n, unsigned bits_per_key)
      : our_calls<bloomery::filter<Key, Layout>, Key>(
            bloomery::filter<Key, Layout>(geometry_of<Layout>(n, bits_per_key))) {}
};

template <class Layout, class Key>
struct untyped : our_calls<bloomery::any_filter, Key> {
  untyped(std::uint64_t n, unsigned bits_per_key)
      : our_calls<bloomery::any_filter, Key>(bloomery::any_filter(
            {.layout = std::string(Layout::name),
             .keys = std::same_as<Key, std::uint64_t> ? bloomery::key_kind::u64le : bloomery::key_kind::bytes,
             .geometry = geometry_of<Layout>(n, bits_per_key),
             .capacity = n})) {}
};

/// A static filter, whose number of bits per key follows from its fingerprints. Integers only.
template <class Fingerprint>
class fuse {
 public:
  using keys = std::span<const std::uint64_t>;
  using filter = bloomery::static_filter<std::uint64_t, Fingerprint>;

  fuse(std::uint64_t, unsigned) {}
  void clear() { filter_.reset(); }
  std::uint64_t bytes() const { return filter_->byte_size(); }
  void build(keys all, unsigned threads) { filter_ = filter::build(all, threads); }
  bool has(std::uint64_t key) const { return filter_->may_contain(key); }
  std::uint64_t count_bulk(keys some) const { return count_batch(*filter_, some); }

 private:
  std::optional<filter> filter_;
};

/// Kernel set number `Set`, regardless of the library's choice. Integers only.
template <class Layout, std::size_t Set>
class by_kernel {
 public:
  using keys = std::span<const std::uint64_t>;

  by_kernel(std::uint64_t n, unsigned bits_per_key)
      : geometry_(geometry_of<Layout>(n, bits_per_key)),
        storage_(geometry_.bits / 8),
        fetch_(bloomery::fetch_for(storage_.size())) {}
  void clear() { std::fill_n(storage_.data(), storage_.size(), std::uint8_t{0}); }
  std::uint64_t bytes() const { return storage_.size(); }
  void insert_bulk(keys some) { kernel().insert(blocks(), source(some), nullptr); }
  bool has(std::uint64_t key) const {
    const std::uint64_t hash64 = hash_(key).hash64;
    return kernel().has_one(block_of(hash64), hash64, geometry_.probes);
  }
  std::uint64_t count_bulk(keys all) const {
    return count_in_pieces(all,
                           [this](keys some, auto bitmap) { kernel().has(blocks(), source(some), bitmap.data()); });
  }

 private:
  static const bloomery::kernels::layout_kernel& kernel() {
    const bloomery::kernels::kernel_set& set = *bloomery::kernels::kernel_sets[Set];
    return std::same_as<Layout, bloomery::layouts::split_block512> ? set.split_block512 : set.split_block;
  }
  bloomery::kernels::blocks blocks() const {
    return {const_cast<std::uint8_t*>(storage_.data()), geometry_.bits / Layout::block_bits, geometry_.probes, fetch_};
  }
  bloomery::kernels::keys source(keys some) const {
    return {some.data(), some.size(), hash_.whitening(), bloomery::kernels::form::mixed};
  }
  const std::uint8_t* block_of(std::uint64_t hash64) const {
    return storage_.data() + Layout::block_of(hash64, geometry_.bits / Layout::block_bits) * (Layout::block_bits / 8);
  }

  geometry geometry_;
  bloomery::mix hash_;
  bloomery::heap_storage storage_;
  bloomery::kernels::fetch fetch_;
};

namespace detail {

// Returns a copy of the name with static lifetime, because contestants hold pointers.
inline const char* static_name(std::string name) {
  static std::deque<std::string> names;
  return names.emplace_back(std::move(name)).c_str();
}

template <template <class, class> class Subject, class Layout, class Key>
void add(std::vector<contestant<Key>>& to, const std::string& kind) {
  to.push_back(contestant_of<Subject<Layout, Key>, Key>(static_name(kind + std::string(Layout::name))));
}

template <class Fingerprint>
void add_fuse(std::vector<contestant<std::uint64_t>>& to, const char* name) {
  to.push_back(contestant_of<fuse<Fingerprint>, std::uint64_t>(name));
  to.back().only_bits = bits_of_fuse;
  to.back().most_keys = most_keys_of_fuse;
}

template <class Layout, std::size_t Set>
void add_kernel(std::vector<contestant<std::uint64_t>>& to) {
  const bloomery::kernels::kernel_set& set = *bloomery::kernels::kernel_sets[Set];
  if (!set.supported()) return;
  const std::string name = "kernels " + std::string(set.name) + " " + std::string(Layout::name);
  to.push_back(contestant_of<by_kernel<Layout, Set>, std::uint64_t>(static_name(name)));
}

}  // namespace detail

template <class Key>
void add_ours(std::vector<contestant<Key>>& to) {
  using namespace bloomery;
  detail::add<typed, layouts::split_block>(to, "bloomery ");
  detail::add<typed, layouts::split_block512>(to, "bloomery ");
  detail::add<typed, layouts::blocked>(to, "bloomery ");
  detail::add<typed, layouts::blocked_page>(to, "bloomery ");
  detail::add<typed, layouts::classic>(to, "bloomery ");
  detail::add<untyped, layouts::split_block>(to, "any_filter ");
  detail::add<untyped, layouts::split_block512>(to, "any_filter ");
  if constexpr (std::same_as<Key, std::uint64_t>) {
    detail::add_fuse<std::uint8_t>(to, "static fuse8");
    detail::add_fuse<std::uint16_t>(to, "static fuse16");
    [&]<std::size_t... Sets>(std::index_sequence<Sets...>) {
      (detail::add_kernel<layouts::split_block, Sets>(to), ...);
      (detail::add_kernel<layouts::split_block512, Sets>(to), ...);
    }
    (std::make_index_sequence<std::size(kernels::kernel_sets)>());
  }
}

}  // namespace bench
