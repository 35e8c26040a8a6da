// cascade_builder: builds a static filter that answers correctly for each key of two lists.
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/detail/static_payload.hpp>
#include <bloomery/mapped_storage.hpp>
#include <bloomery/params.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace BLOOMERY_EXPORT bloomery {

/// Builds a filter that reports each key of one list, and no key of another list. Keys of neither list have an FPR of
/// 2^-(w+1). For n and N keys, it takes 1.01 (w n + n + N / 2^w) bits: detail/cascade.hpp.
///
/// Of the N keys, the builder keeps only those that the first level reports. Until the filter is built, each of these
/// and of the n keys takes 16 bytes, in addition to the filter and the scratch memory of ribbon_build().
///
/// Threads: one at a time.
///
/// Example:
///     std::vector<std::uint64_t> hash64s;
///     for (std::uint64_t i = 0; i < 1000; ++i) hash64s.push_back(mix{}(i).hash64);
///     cascade_builder builder(hash64s, cascade_builder::width_for(1000, 50'000));
///     for (std::uint64_t i = 1000; i < 51'000; ++i) {
///       const std::uint64_t absent[] = {mix{}(i).hash64};
///       builder.append_absent(absent);
///     }
///     const params p = builder.build({.hash = "mix", .keys = key_kind::u64le});
///     builder.save("listed.bloom");
///     const any_filter listed = any_filter::open("listed.bloom");
///     assert(listed.may_contain(999) && !listed.may_contain(1000) && !listed.may_contain(50'999));
class cascade_builder {
 public:
  /// The width with the smallest filter of n present and N absent keys: about log2(0.7 N / n), at least 1 and at most
  /// 32.
  static unsigned width_for(double present, double absent) noexcept;

  /// Builds the first level.
  ///
  /// @param hash64s  the hash64 of each key to be present; may be repeated
  /// @param width    w, 1 to 32
  /// @param threads  0: one per processor
  /// @param watch    called occasionally while a level is built. If it throws, building stops
  /// @throws error   invalid_argument: another width; too_large: more than this machine's memory; what `watch` throws
  cascade_builder(std::vector<std::uint64_t> hash64s, unsigned width, unsigned threads = 0, build_watch watch = {});

  /// Adds the hash64 of keys to be absent, which may be repeated. @throws error invalid_argument: after build()
  void append_absent(std::span<const std::uint64_t> hash64s);

  /// The number of different keys that are present.
  std::uint64_t keys() const noexcept { return keys_; }

  /// The number of keys in append_absent() so far that the first level reports; after conflict() or build() without
  /// repetitions.
  std::uint64_t false_positives() const noexcept { return reported_.size(); }

  /// A hash64 of append_absent() that is also the hash of a key to be present, or differs from it in the lowest bit
  /// only; none if there is none. Sorts all kept hashes.
  std::optional<std::uint64_t> conflict();

  /// Builds the second level and looks up all kept hashes. May be called once.
  ///
  /// @param hashing  only hash, kind of keys, seed, secret and check value are used
  /// @return         the parameters of the filter; `capacity` is keys()
  /// @throws error   invalid_argument: there is a conflict(), or it is the second call
  params build(const params& hashing);

  /// The payload; none before build().
  std::span<const std::uint8_t> bytes() const noexcept;

  /// Writes the filter as a file, whole or not at all.
  /// @throws error  as save_file(); invalid_argument: before build()
  void save(const std::string& path, const create_options& options = {}) const;

 private:
  unsigned width_;
  unsigned threads_;
  build_watch watch_;
  std::vector<std::uint64_t> present_;
  std::vector<std::uint64_t> reported_;
  std::optional<static_bytes> first_;  // until build()
  std::uint64_t keys_;
  std::optional<heap_storage> payload_;
  params parameters_;
  bool is_sorted_ = false;
};

}  // namespace bloomery
