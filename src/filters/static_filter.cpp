// Static filters: their parameters, and building one from keys whose kind and hash are known at run time.
#include <bloomery/any_filter.hpp>
#include <bloomery/detail/fuse.hpp>
#include <bloomery/detail/storage.hpp>
#include <bloomery/error.hpp>
#include <bloomery/static_filter.hpp>

#include "filters/any_filter_impl.hpp"
#include "filters/hash_keys.hpp"
#include "filters/static_stream.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace bloomery {
namespace {

const static_calls& calls_of(static_structure structure) {
  return structure == static_structure::fuse ? fuse_calls : ribbon_calls;
}

}  // namespace

static_bytes static_build(static_structure structure, std::span<std::uint64_t> hash64s, unsigned width,
                          unsigned threads, const build_watch& watch) {
  return structure == static_structure::fuse ? fuse_build(hash64s, width, threads, watch)
                                             : ribbon_build(hash64s, width, threads, watch);
}

std::string_view static_layout_name(static_structure structure, std::uint64_t width) {
  return calls_of(structure).layout_name(width);
}

geometry static_geometry(static_structure structure, unsigned width, std::uint64_t keys) {
  return calls_of(structure).geometry(width, keys);
}

streamed_payload static_stream(static_structure structure, const stream_source& from, unsigned width,
                               const payload_sink& to) {
  return structure == static_structure::fuse ? fuse_stream(from, width, to) : ribbon_stream(from, width, to);
}

params static_params(const params& hashing, unsigned width, const static_bytes& built, static_structure structure) {
  return static_params_of(hashing, width, {built.keys, built.payload.size()}, structure);
}

params static_params_of(const params& hashing, unsigned width, const streamed_payload& built,
                        static_structure structure) {
  return static_params_of(calls_of(structure), hashing, width, built);
}

params static_params_of(const static_calls& calls, const params& hashing, unsigned width,
                        const streamed_payload& built) {
  params p;
  p.layout = calls.layout_name(width);
  p.hash = hashing.hash;
  p.keys = hashing.keys;
  p.seed = hashing.seed;
  p.secret = hashing.secret;
  p.key_check = hashing.key_check;
  p.geometry = {8 * built.bytes, calls.probes};
  p.capacity = built.keys;
  p.target_fpr = calls.rate(width, built.keys);
  return p;
}

any_filter any_filter::build_static(const params& hashing, key_span keys, unsigned width, unsigned threads,
                                    static_structure structure) {
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
  static_bytes built = static_build(structure, hash64s, width, threads);
  params p = static_params(hasher.parameters(), width, built, structure);
  built.payload.counts().inserted = built.keys;
  return any_filter(std::make_unique<impl>(std::move(p), std::move(built.payload)));
}

}  // namespace bloomery
