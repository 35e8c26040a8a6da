// Boost.Bloom as a contestant, through its public interface and with its own hashes. Compiled twice: with default flags
// (BLOOMERY_PEER_BUILD "portable") and for the processor of this machine ("native"), where it uses AVX2.
//
// Contestants named "huge" allocate huge pages through the allocator parameter; the others use std::allocator, the
// default.
#include "../pages.hpp"
#include "peer.hpp"

#include <boost/bloom.hpp>

#include <memory>

namespace {

template <class Key, std::size_t K, class Subfilter, class Allocator>
class subject {
 public:
  subject(std::uint64_t n, unsigned bits_per_key) : filter_(n * bits_per_key) {}

  void clear() { filter_.clear(); }
  std::uint64_t bytes() const { return filter_.capacity() / 8; }
  void insert(const Key& key) { filter_.insert(key); }
  void insert_bulk(std::span<const Key> keys) { filter_.insert(keys.begin(), keys.end()); }
  bool has(const Key& key) const { return filter_.may_contain(key); }
  std::uint64_t count_bulk(std::span<const Key> keys) const {
    std::uint64_t hits = 0;
    filter_.may_contain(keys.begin(), keys.end(), [&hits](const Key&, bool found) { hits += found ? 1 : 0; });
    return hits;
  }

 private:
  boost::bloom::filter<Key, K, Subfilter, 0, boost::hash<Key>, Allocator> filter_;
};

using bench::contestant;

template <class Key, std::size_t K, class Subfilter>
void add(contestant<Key>* to, const char* name, const char* name_if_huge, unsigned only_bits) {
  to[0] = bench::contestant_of<subject<Key, K, Subfilter, std::allocator<unsigned char>>, Key>(name);
  to[1] = bench::contestant_of<subject<Key, K, Subfilter, bench::huge_allocator<unsigned char>>, Key>(name_if_huge);
  to[1].least_bytes = bench::huge_page;
  to[0].only_bits = to[1].only_bits = only_bits;
}

#define NAMES(what) "boost " what " " BLOOMERY_PEER_BUILD, "boost " what " " BLOOMERY_PEER_BUILD " huge"

template <class Key>
std::span<const contestant<Key>> all() {
  using namespace boost::bloom;
  static contestant<Key> list[6];
  add<Key, 1, fast_multiblock32<8>>(list, NAMES("fmb32<8>"), 0);
  add<Key, 1, fast_multiblock64<8>>(list + 2, NAMES("fmb64<8>"), 0);
  add<Key, 9, block<unsigned char, 1>>(list + 4, NAMES("classic k=9"), 12);
  return list;
}

}  // namespace

BLOOMERY_PEERS { *list = {all<std::uint64_t>(), all<std::string_view>()}; }
