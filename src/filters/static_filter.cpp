// Static filters: their parameters, and building one from keys whose kind and hash are known at run time.
#include <bloomery/any_filter.hpp>
#include <bloomery/detail/fuse.hpp>
#include <bloomery/detail/storage.hpp>
#include <bloomery/static_filter.hpp>

#include "filters/any_filter_impl.hpp"
#include "filters/hash_keys.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace bloomery {

params fuse_params(const params& hashing, unsigned width, const fuse_bytes& built) {
  params p;
  p.layout = fuse_layout_name(width);
  p.hash = hashing.hash;
  p.keys = hashing.keys;
  p.seed = hashing.seed;
  p.secret = hashing.secret;
  p.key_check = hashing.key_check;
  p.geometry = {8 * built.payload.size(), fuse::probes};
  p.capacity = built.keys;
  p.target_fpr = fuse_rate(width, built.keys);
  return p;
}

any_filter any_filter::build_static(const params& hashing, key_span keys, unsigned width, unsigned threads) {
  const any_filter hasher({.layout = std::string(layouts::split_block512::name),
                           .hash = hashing.hash,
                           .keys = hashing.keys,
                           .seed = hashing.seed,
                           .capacity = 1,
                           .target_fpr = 0.5,
                           .secret = hashing.secret});
  heap_storage memory(std::max<std::uint64_t>(keys.size(), 1) * sizeof(std::uint64_t));
  const std::span hash64s(reinterpret_cast<std::uint64_t*>(memory.data()), keys.size());
  in_batches(keys.size(), [&](std::size_t first, std::size_t count) {
    std::array<key_hash, keys_of_a_batch> hashes;
    hasher.hash(keys.part(first, count), hashes);
    for (std::size_t i = 0; i < count; ++i) hash64s[first + i] = hashes[i].hash64;
  });
  fuse_bytes built = fuse_build(hash64s, width, threads);
  params p = fuse_params(hasher.parameters(), width, built);
  built.payload.counts().inserted = built.keys;
  return any_filter(std::make_unique<impl>(std::move(p), std::move(built.payload)));
}

}  // namespace bloomery
