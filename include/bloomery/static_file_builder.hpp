// static_file_builder: builds the file of a static filter within a memory limit, from any number of hashes.
//
// The hashes are kept in memory while they and the filter fit into the limit. Otherwise they move to a temporary file,
// 8 bytes per key, and the filter is built there partition by partition. The resulting file is the same.
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/detail/function_ref.hpp>
#include <bloomery/detail/key_hash.hpp>
#include <bloomery/layout.hpp>
#include <bloomery/mapped_storage.hpp>
#include <bloomery/params.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace BLOOMERY_EXPORT bloomery {

/// The steps of static_file_builder::build() for hashes in a temporary file. In memory, the only step is `build`.
enum class static_step : std::uint8_t {
  count,  ///< removes repeated hashes and counts the others
  build,  ///< builds and writes the partitions
};

/// How a static_file_builder works.
struct static_file_options {
  /// Bytes for hashes, buffers and filter, if the hashes are uniform; 0: half of available_memory(). If the hashes are
  /// in a temporary file, each thread takes 80 MiB, and 1/256 of the hashes are in memory at a time: at most 32 keys
  /// per byte, and less than 128 MiB have no effect. Pages of the system's file cache are not included.
  std::uint64_t memory = 0;

  std::string folder = {};   ///< of the temporary file; empty: TMPDIR, or without it the folder of the filter
  unsigned threads = 0;      ///< 0: one per processor
  create_options file = {};  ///< uses `metadata`, `replace`, `expected` and `no_lock`

  /// Called occasionally, by one thread at a time, with the number of keys that a step has processed. If it throws,
  /// the function in progress throws the same exception.
  callback<void(static_step step, std::uint64_t keys)> watch = {};
};

/// Builds the file of a static filter. The file has the bytes that any_filter::build_static() and save() give for the
/// same keys; they do not depend on order, repetitions, threads or memory.
///
/// The temporary file has no name and disappears with the process. It takes 8 bytes per key, including repetitions.
/// Until publish(), the path has its old file or none.
///
/// Threads: one at a time. After an exception, except for an invalid width, every function throws invalid_argument.
///
/// Example:
///     static_file_builder builder("numbers.bloom", {.memory = std::uint64_t{64} << 20});
///     std::vector<std::uint64_t> hash64s;
///     for (std::uint64_t i = 0; i < 1000; ++i) hash64s.push_back(mix{}(i).hash64);
///     builder.append(hash64s);
///     const params p = builder.build({.hash = "mix", .keys = key_kind::u64le}, 7, static_structure::ribbon);
///     builder.publish();
///     assert(p.layout == "ribbon7" && p.capacity == 1000);
///     const any_filter numbers = any_filter::open("numbers.bloom");
///     assert(numbers.may_contain(999));
class static_file_builder {
 public:
  /// Checks that a file can be written at `path`.
  /// @throws error  as save_file()
  explicit static_file_builder(const std::string& path, const static_file_options& options = {});
  static_file_builder(static_file_builder&&) noexcept;
  static_file_builder& operator=(static_file_builder&&) noexcept;
  ~static_file_builder();

  /// Adds the hashes of keys, which may be repeated.
  /// @throws error  not_found, not_permitted, io: the temporary file cannot be created or written (disk full);
  ///                too_large: `path` is a device or pipe, and the keys do not fit into the memory; invalid_argument:
  ///                after build()
  void append(std::span<const std::uint64_t> hash64s);
  void append(std::span<const key_hash> hashes);

  /// The number of hashes, with repetitions.
  std::uint64_t size() const noexcept;

  /// Bytes of the temporary file: 0 while the hashes are in memory.
  std::uint64_t temporary_bytes() const noexcept;

  /// The folder of the temporary file, if there is one.
  const std::string& temporary_folder() const noexcept;

  /// Throws if the temporary file of this many keys, in total, would not fit on its disk. Does nothing if they fit into
  /// memory. For callers that can estimate the number of keys before they append all of them.
  /// @throws error  io
  void check_room(std::uint64_t keys) const;

  /// Builds the filter and looks up every key in it. May be called once, and no append() may follow.
  ///
  /// @param hashing    only hash, kind of keys, seed, secret and check value are used
  /// @param width      bits of a fingerprint, 1 to 32
  /// @return           the parameters of the filter; `capacity` is the number of distinct hashes
  /// @throws error     invalid_argument: another width; too_large: the hashes are not uniform, so that a 256th of the
  ///                   hash space or a partition has too many for the memory; io; what `watch` throws
  params build(const params& hashing, unsigned width, static_structure structure = static_structure::fuse);

  /// Completes the file and gives it its name. Requires build(), once.
  /// @throws error  as save_file(); invalid_argument: without build(), or for the second time
  void publish();

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace bloomery
