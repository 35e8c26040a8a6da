// static_filter<>: an immutable filter, built once from all its keys. It needs 9.02 bits per key at an FPR of 0.39%,
// where a filter with inserts needs at least 11.5, and 11.3 at 0.098% instead of 14.4.
//
// detail/fuse.hpp and detail/ribbon.hpp have the binary formats and the construction. any_filter opens the same files
// if key type, width and hash are known at run time only.
#pragma once

#include <bloomery/detail/bulk_insert.hpp>
#include <bloomery/detail/checks.hpp>
#include <bloomery/detail/export.hpp>
#include <bloomery/detail/filter_kind.hpp>
#include <bloomery/detail/fuse.hpp>
#include <bloomery/detail/joined_threads.hpp>
#include <bloomery/detail/ribbon.hpp>
#include <bloomery/detail/storage.hpp>
#include <bloomery/error.hpp>
#include <bloomery/hash.hpp>
#include <bloomery/layouts/split_block512.hpp>
#include <bloomery/mapped_storage.hpp>
#include <bloomery/params.hpp>
#include <bloomery/processors.hpp>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace BLOOMERY_EXPORT bloomery {

/// The parameters of a static filter. Of `hashing` it uses only the hash, kind of keys, seed, secret and check value.
///
/// Example:
///     std::vector<std::uint64_t> hash64s{mix{}(7).hash64};
///     const static_bytes built = fuse_build(hash64s, 16);
///     const params p = static_params({.hash = "mix", .keys = key_kind::u64le}, 16, built);
///     assert(p.layout == "fuse16" && p.capacity == 1 && p.geometry.bits == 8 * built.payload.size());
params static_params(const params& hashing, unsigned width, const static_bytes& built,
                     static_structure structure = static_structure::fuse);

/// An immutable set of keys without false negatives. The FPR is 2^-w for fingerprints of w bits, whatever the number of
/// keys. The size is 1.13 w bits per key:
///
///   w     FPR         bits per key (10 million keys)    1 million    100,000 keys; more with fewer keys
///   7     0.78%        7.9                               7.9          8.3
///   8     0.39%        9.02                              9.04         9.5
///   10    0.098%      11.3                              11.3         11.8
///   16    0.0015%     18.04                             18.1         19
///   32    2.3e-8%     36.1                              36.2         38
///
/// Widths 8, 16 and 32 have the fastest lookups. A ribbon filter takes 1.01 w bits per key, but its lookups are slower.
///
/// @tparam Key          std::string_view (any bytes) or std::uint64_t
/// @tparam Fingerprint  std::uint8_t, std::uint16_t, std::uint32_t, or fingerprint_bits<w> for w of 1 to 32;
///                      fingerprint_bits<w, static_structure::ribbon> for a ribbon filter
/// @tparam Hash         xxh3_64, xxh3, mix, murmur3, siphash (for keys from untrusted sources), or your own:
///                      hash_of<Hash, Key>. Only hash64 is used: two keys with the same hash64 are the same key
/// @tparam Storage      heap_storage or mapped_storage
///
/// Threads: any number may look up. A moved-from filter may only be assigned to or destroyed.
///
/// Example:
///     const std::vector<std::string_view> cities{"Madrid", "Barcelona", "Madrid"};
///     const auto built = static_filter<>::build(cities);
///     assert(built.insert_count() == 2 && built.may_contain("Barcelona"));
///     assert(!built.may_contain("Berlin"));  // certain
///     built.save("cities.bloom");
///     using mapped = static_filter<std::string_view, std::uint8_t, xxh3_64, mapped_storage>;
///     assert(mapped::open("cities.bloom").insert_count() == 2);
///     using smaller = static_filter<std::string_view, fingerprint_bits<5>>;  // 3.1%
///     assert(smaller::build(cities).may_contain("Madrid"));
///     using smallest = static_filter<std::string_view, fingerprint_bits<5, static_structure::ribbon>>;
///     assert(smallest::build(cities).parameters().layout == "ribbon5");
template <class Key = std::string_view, static_fingerprint Fingerprint = std::uint8_t,
          class Hash = typename default_hash<Key, 64>::type, storage Storage = heap_storage>
  requires hash_of<Hash, Key>
class static_filter {
 public:
  using key_type = Key;
  static constexpr unsigned width = sealed::width_of<Fingerprint>;  ///< w, bits of a fingerprint
  static constexpr static_structure structure = sealed::structure_of<Fingerprint>;

  /// Builds a filter of these keys and verifies each key with a lookup. Keys may be repeated. Without keys, the filter
  /// reports every key as absent. The bytes depend on the set of keys only, not on order or threads.
  ///
  /// Building takes 8 bytes per key, the memory of the filter, and about 40 MiB per thread.
  ///
  /// @param threads  0: one per processor
  /// @throws error   too_large: more than this machine's memory; invalid_argument: the hash does not support the seed
  static static_filter build(std::span<const Key> keys, unsigned threads = 0,
                             Hash hash = {}) requires std::same_as<Storage, heap_storage> {
    heap_storage memory(std::max<std::size_t>(keys.size(), 1) * sizeof(std::uint64_t));
    const std::span<std::uint64_t> hash64s(reinterpret_cast<std::uint64_t*>(memory.data()), keys.size());
    hash_all(keys, hash64s, threads, hash);
    return of_hash64s(hash64s, threads, hash);
  }

  /// Like build(), for callers that already have the hash64 of each key. Reorders `hash64s`. @throws error as build()
  static static_filter of_hash64s(std::span<std::uint64_t> hash64s, unsigned threads = 0,
                                  Hash hash = {}) requires std::same_as<Storage, heap_storage> {
    static_bytes made = static_build(structure, hash64s, width, threads);
    params p = static_params(described(hash), width, made, structure);
    return static_filter(std::move(p), std::move(made.payload), hash);
  }

  /// Opens a file in place. Of the options it uses `mode`, which must be read_only, and `check`.
  /// @throws error  as mapped_storage::open; incompatible: the file has another width, hash, kind of keys or seed than
  ///                this type, or is not a static filter; not_permitted: read_write; damaged: its parts contradict each
  ///                other
  static static_filter open(const std::string& path, const open_options& options = {},
                            Hash hash = {}) requires std::same_as<Storage, mapped_storage> {
    mapped_storage bytes = mapped_storage::open(path, options, [&](const params& p) {
      matched(p, hash, path);
      if (options.mode == access::read_write) detail::refuse_writing(path);
    });
    params p = matched(bytes.info().parameters, hash, path);
    return static_filter(std::move(p), std::move(bytes), hash, path);
  }

  /// Reads a file into the heap and checks every page. @throws error as load_file and open()
  static static_filter load(const std::string& path, Hash hash = {}) requires std::same_as<Storage, heap_storage> {
    loaded_file file = load_file(path);
    params p = matched(file.info.parameters, hash, path);
    return static_filter(std::move(p), std::move(file.bytes), hash, path);
  }

  /// Writes the filter to a file atomically. @throws error as save_file
  void save(const std::string& path, const std::string& metadata = {}) const {
    save_file(path, params_, bytes(), {.inserted = insert_count()}, metadata);
  }

  /// False: the key is certainly not in the set. True: it probably is.
  bool may_contain(const Key& key) const noexcept {
    return lookups_.template has<width>(storage_.data(), hash_(key).hash64);
  }

  /// Looks up keys: bit i%64 of bitmap[i/64] is the answer for keys[i]; unused bits are 0.
  /// `bitmap` has at least ceil(keys.size() / 64) words; further words are unchanged.
  /// @throws error invalid_argument: the bitmap is shorter
  void may_contain(std::span<const Key> keys, std::span<std::uint64_t> bitmap) const {
    detail::check_bitmap("static_filter::may_contain", keys.size(), bitmap.size());
    kind::each_source(hash_, keys, [&](const hash_span& some, std::size_t first) {
      lookups_.has_batch(storage_.data(), bit_size(), some, bitmap.data() + first / 64);
    });
  }

  const params& parameters() const noexcept { return params_; }
  std::span<const std::uint8_t> bytes() const noexcept { return {storage_.data(), storage_.size()}; }

  std::uint64_t insert_count() const noexcept { return params_.capacity; }   ///< distinct keys
  std::uint64_t bit_size() const noexcept { return params_.geometry.bits; }  ///< bits
  std::uint64_t byte_size() const noexcept { return storage_.size(); }       ///< bytes

  /// The exact probability that an absent key is reported: static_rate().
  double expected_fpr() const { return static_rate(width, insert_count()); }

 private:
  using kind = filter_kind<Key, layouts::split_block512, Hash>;  // (split_block512: any layout; its name is replaced)

  static params described(const Hash& hash) {
    params p = kind::describe({}, 0, 0, hash);
    p.layout = static_layout_name(structure, width);
    return p;
  }

  // Each thread hashes a contiguous range of keys.
  static void hash_all(std::span<const Key> keys, std::span<std::uint64_t> hash64s, unsigned threads,
                       const Hash& hash) {
    constexpr std::size_t worth_a_thread = 100'000;
    if (threads == 0) threads = available_processors();
    const std::size_t parts = std::clamp<std::size_t>(keys.size() / worth_a_thread, 1, std::min(threads, 256u));
    const auto work = [&](std::size_t part) {
      const std::size_t begin = keys.size() / parts * part;
      const std::size_t end = part + 1 == parts ? keys.size() : keys.size() / parts * (part + 1);
      kind::each_source(hash, keys.subspan(begin, end - begin), [&](const hash_span& some, std::size_t first) {
        hash64s_of(some, hash64s.data() + begin + first);
      });
    };
    detail::joined_threads others;
    for (std::size_t part = 1; part < parts; ++part) others.start(work, part);
    work(0);
  }

  static params matched(const params& file, const Hash& hash, const std::string& path) {
    params own = described(hash);
    own.geometry = file.geometry;
    own.capacity = file.capacity;
    own.target_fpr = file.target_fpr;
    std::string reason;
    if (file.layout != own.layout) {
      reason = "layout: " + (file.layout.empty() ? file.scheme : file.layout) + " and " + own.layout;
    } else {  // static filters are never compatible, so compare the rest as if they were plain filters
      params a = file, b = own;
      a.layout = b.layout = layouts::split_block512::name;
      reason = difference(a, b);
    }
    detail::check_same_kind(path, reason);
    return own;
  }

  static Storage checked(Storage bytes, const std::string& path) {
    sealed::lookups<structure>::check(width, {bytes.data(), bytes.size()}, path);
    return bytes;
  }

  static_filter(params p, Storage bytes, Hash hash)
      : params_(std::move(p)), hash_(hash), storage_(std::move(bytes)), lookups_(storage_.data()) {}
  static_filter(params p, Storage bytes, Hash hash, const std::string& path)
      : static_filter(std::move(p), checked(std::move(bytes), path), hash) {
    if (sealed::keys_in(this->bytes().data()) != params_.capacity) {
      detail::refuse(errc::damaged,
                     {"the static filter contradicts itself: keys", path, std::to_string(params_.capacity),
                      std::to_string(sealed::keys_in(this->bytes().data())), hint::seal_again});
    }
  }

  params params_;
  Hash hash_;
  Storage storage_;
  sealed::lookups<structure> lookups_;
};

}  // namespace bloomery
