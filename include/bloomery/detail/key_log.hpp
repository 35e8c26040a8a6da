// key_log: an append-only file with the hash of every inserted key, 8 bytes per key. docs/format.md has the format.
//
// A filter with a key log can be rebuilt with another size, FPR and layout: see rebuilding_filter.hpp. Each record has
// a checksum and the number of keys before it. So an incomplete record of a killed writer is detected, and keys lost to
// disk errors are counted.
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/mapped_storage.hpp>
#include <bloomery/params.hpp>

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>

namespace BLOOMERY_EXPORT bloomery {

/// The result of reading a log.
struct log_reading {
  std::uint64_t keys = 0;            ///< keys read
  std::uint64_t lost_keys = 0;       ///< keys missing before the last whole record
  std::uint64_t damaged_places = 0;  ///< number of damaged regions between whole records
  std::uint64_t first_damage = 0;    ///< byte offset of the first damaged region, if any
  std::uint64_t end = 0;             ///< byte offset of the end of the last whole record
  std::uint64_t torn_bytes = 0;      ///< bytes after `end`: an incomplete record

  /// Whether no key before the last whole record is missing.
  bool whole() const noexcept { return damaged_places == 0 && lost_keys == 0; }

  /// "12,000 keys lost in 1 place, the first at byte 4096", without the separators.
  std::string damage_in_words() const;
};

/// A file with the hash64 of each key (detail/key_hash.hpp), in the order of insertion, with all repetitions.
///
/// Threads: one may append while others read up to a given byte.
///
/// Example:
///     key_log log = key_log::create("some.log", complete({.capacity = 1000, .target_fpr = 0.01}));
///     const std::uint64_t hash64s[] = {17, 4, 17};
///     log.append(hash64s);
///     std::uint64_t sum = 0;
///     log.read(0, [&](std::span<const std::uint64_t> some) { for (const std::uint64_t hash64 : some) sum += hash64; });
///     assert(sum == 38 && log.keys() == 3);
class key_log {
 public:
  /// Maximum number of keys per record.
  static constexpr std::uint64_t most_keys_of_record = 65'536;

  /// For read(): up to the end.
  static constexpr std::uint64_t all = std::numeric_limits<std::uint64_t>::max();

  /// estimate_distinct() counts up to this number of distinct keys exactly.
  static constexpr std::uint64_t exactly_estimated = std::uint64_t{1} << 20;

  using visitor = std::function<void(std::span<const std::uint64_t> hash64s)>;

  /// Creates an empty log and locks it. It stores the hash, kind of keys, seed and secret check value of `p`. It also
  /// stores layout and target FPR, so that a filter can be rebuilt from the log alone.
  ///
  /// @param p           its log_id() becomes the log's number; 0: a new random number
  /// @param generation  number of times the log was rewritten, from 1
  /// @param options     uses `replace` and `no_lock`
  /// @throws error  invalid_argument, not_permitted, locked, already_exists, io
  static key_log create(const std::string& path, const params& p, std::uint64_t generation = 1,
                        const create_options& options = {});

  /// Opens a log; for read_write it is locked first. The options used are `mode`, `waiting` and `no_lock`. Bytes after
  /// the last whole record stay until cut_torn() or append(). Only the header and the end are read, unless there is no
  /// whole record near the end; read() finds damage before that.
  ///
  /// @throws error  not_found, not_permitted, not_a_filter, wrong_version, damaged (the header), locked, io
  static key_log open(const std::string& path, const open_options& options = {});

  key_log(key_log&&) noexcept;
  key_log& operator=(key_log&&) noexcept;
  ~key_log();

  /// Appends keys. When it returns, the operating system has the data, so a killed process loses no key; a power
  /// failure may lose keys until sync(). Each call writes one or more records: 24 extra bytes per 65,536 keys.
  /// Requires read_write. @throws error io (disk full): the keys may be stored in part or not at all
  void append(std::span<const std::uint64_t> hash64s);

  /// Waits until all data is on disk. @throws error io
  void sync();

  /// Truncates the file after the last whole record. Requires read_write. @throws error io
  void cut_torn();

  /// Calls visit(hash64s) for all keys, record by record. Damaged bytes are skipped up to the next valid record. The
  /// number of lost keys is known, because each record has the number of keys before it.
  ///
  /// @param from  byte offset of a record: an earlier value of bytes(), or 0 for the first record
  /// @param to    byte offset at which reading stops: an earlier value of bytes()
  /// @throws error io; whatever visit throws
  log_reading read(std::uint64_t from, const visitor& visit, std::uint64_t to = all) const;

  /// Appends the distinct keys of the first `to` bytes to another log, ordered by hash. Works on one range of hashes at
  /// a time, with two bytes of memory per key but at least 32 MiB, and reads the log once per range.
  /// @param watch  called for every record; may throw to stop
  /// @throws error io; whatever watch throws
  log_reading write_distinct(key_log& into, std::uint64_t to = all, const std::function<void()>& watch = {}) const;

  /// The distinct keys of the first `to` bytes, estimated from the hashes below a bound: exact up to a million, then
  /// with a standard deviation of 0.15%. Repetitions do not matter. @throws error io
  std::uint64_t estimate_distinct(std::uint64_t to = all) const;

  /// Rewrites the log without repetitions, under the same name and with the next generation, which invalidates stored
  /// byte offsets. Refuses a damaged log. Requires read_write. @throws error damaged, io
  void remove_duplicates();

  /// Renames the file and replaces an existing file of that name.
  /// @param synced  sync the directory, so that the new name survives a power failure. If the sync fails, the file has
  ///                the new name nevertheless
  /// @throws error io
  void rename(const std::string& path, bool synced = true);

  /// Refuses a file that a log may not replace, because it is not a log. A damaged log or a missing file is accepted.
  /// @throws error not_a_filter, not_permitted, io
  static void check_replaceable(const std::string& path);

  std::uint64_t keys() const noexcept;        ///< keys including repetitions, according to the last whole record
  std::uint64_t bytes() const noexcept;       ///< length of the file up to the end of the last whole record
  std::uint64_t torn_bytes() const noexcept;  ///< bytes after the last whole record
  std::uint64_t generation() const noexcept;

  /// hash, keys, seed, key_check and log_id(); layout and target_fpr as at the start of this generation. Other fields
  /// are empty.
  const params& parameters() const noexcept;

  /// Size of the header, and of a record without its keys.
  static constexpr std::uint64_t header_bytes = 256;
  static constexpr std::uint64_t record_header_bytes = 24;

 private:
  struct impl;
  explicit key_log(std::unique_ptr<impl> i) noexcept;
  std::unique_ptr<impl> impl_;
};

}  // namespace bloomery
