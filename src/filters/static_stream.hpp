// Construction of static filters from hashes in a temporary file, partition by partition, into a file. For sets that do
// not fit into memory; the bytes are those of fuse_build() and ribbon_build().
#pragma once

#include <bloomery/detail/function_ref.hpp>
#include <bloomery/detail/static_payload.hpp>
#include <bloomery/params.hpp>

#include "filters/hash_groups.hpp"

#include <cstdint>
#include <span>

namespace bloomery {

struct static_calls;

/// The hashes of a static filter, without repetitions, and the resources for its construction.
struct stream_source {
  const hash_groups& hashes;
  std::uint64_t keys = 0;    ///< hashes in all groups
  std::uint64_t memory = 0;  ///< bytes for hashes and scratch buffers
  unsigned threads = 1;      ///< at most; fewer if their scratch buffers exceed the memory
  const build_watch& watch;
};

/// Writes bytes of a payload at an offset. Called by several threads at once. Bytes that are never written are zero.
using payload_sink = function_ref<void(std::span<const std::uint8_t> bytes, std::uint64_t offset)>;

/// A payload that was written to a sink.
struct streamed_payload {
  std::uint64_t keys = 0;
  std::uint64_t bytes = 0;
};

/// Writes the payload that fuse_build() or ribbon_build() would return.
/// @throws error  as fuse_build(); too_large: a partition does not fit into the memory, because the hashes are not
///                uniform; what `watch` and `to` throw
streamed_payload static_stream(static_structure structure, const stream_source& from, unsigned width,
                               const payload_sink& to);
streamed_payload fuse_stream(const stream_source& from, unsigned width, const payload_sink& to);
streamed_payload ribbon_stream(const stream_source& from, unsigned width, const payload_sink& to);

/// static_params() of a payload of this size.
params static_params_of(const params& hashing, unsigned width, const streamed_payload& built,
                        static_structure structure);
params static_params_of(const static_calls& calls, const params& hashing, unsigned width,
                        const streamed_payload& built);

}  // namespace bloomery
