// A hash log: a file to which the hash of every key is appended, 8 bytes a key. docs/format.md draws it.
//
// A filter that has one can be made again at any size, rate and layout: rebuilding_filter.hpp does that. Each record
// has a checksum and says how many keys come before it. So what a kill tore is known, and what a disk spoiled is
// counted.
#pragma once

#include <bloomery/export.hpp>
#include <bloomery/mapped_storage.hpp>
#include <bloomery/params.hpp>

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>

namespace BLOOMERY_EXPORT bloomery {

/// What read() saw of a log.
struct log_reading {
  std::uint64_t keys = 0;            ///< that were read
  std::uint64_t lost_keys = 0;       ///< that are missing before the last whole record
  std::uint64_t damaged_places = 0;  ///< stretches of bytes between whole records that are none
  std::uint64_t first_damage = 0;    ///< byte at which the first of them starts; meaningful if there is one
  std::uint64_t end = 0;             ///< byte behind the last whole record
  std::uint64_t torn_bytes = 0;      ///< behind that: a record that was not written to its end

  /// Nothing is missing that was ever whole.
  bool whole() const noexcept { return damaged_places == 0 && lost_keys == 0; }

  /// "12,000 keys are lost in 1 place, the first at byte 4096", without the separators.
  std::string damage_in_words() const;
};

/// Keys' hashes in a file: of each the half `hash64` (key_hash.hpp), in the order of insertion, with every repetition.
///
/// Threads: one may append while others read up to a byte that they name.
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
  /// Keys of a record, at most.
  static constexpr std::uint64_t most_keys_of_record = 65'536;

  /// To the end, for read().
  static constexpr std::uint64_t all = std::numeric_limits<std::uint64_t>::max();

  /// So many distinct keys estimate_distinct() counts exactly.
  static constexpr std::uint64_t exactly_estimated = std::uint64_t{1} << 20;

  using visitor = std::function<void(std::span<const std::uint64_t> hash64s)>;

  /// A new log without keys, locked. Of `p` the hash, the kind of keys, the seed and the check value of the secret are
  /// kept, and for who has nothing but the log, layout and rate.
  ///
  /// @param p           its log_id becomes the log's number; a new one is drawn if it is 0
  /// @param generation  how often the log was written anew, from 1
  /// @param replace     put it in place of an old file; else throw already_exists if there is one
  /// @throws error  invalid_argument, not_permitted, locked, already_exists, io
  static key_log create(const std::string& path, const params& p, std::uint64_t generation = 1, bool replace = true);

  /// Opens a log. For read_write it is locked first; what is behind the last whole record stays until cut_torn() or
  /// append(). Only the header and the end are read, and more only if there is no whole record near the end: damage
  /// before that is found by read().
  ///
  /// @param waiting  for read_write: what to do when another writer has it; if empty, errc::locked is thrown
  /// @throws error  not_found, not_permitted, not_a_filter, wrong_version, damaged (the header), locked, io
  static key_log open(const std::string& path, access mode = access::read_only,
                      const mapped_storage::on_wait& waiting = {});

  key_log(key_log&&) noexcept;
  key_log& operator=(key_log&&) noexcept;
  ~key_log();

  /// Adds keys behind the others. When it returns the system has them, and a killed process loses none; a failure of
  /// the machine may, until sync(). Each call writes a record or several: 24 bytes more for every 65,536 keys.
  /// Requires read_write. @throws error io (disk full): none of these keys need be there
  void append(std::span<const std::uint64_t> hash64s);

  /// Waits until the disk has it all. @throws error io
  void sync();

  /// Cuts off what is behind the last whole record. Requires read_write. @throws error io
  void cut_torn();

  /// Calls visit(some hashes) for all keys, record by record. Bytes that are no record are skipped, up to the next that
  /// is one; the number of keys that are lost is known, since each record says how many are before it.
  ///
  /// @param from  byte at which a record starts, or 0 for the first one: bytes() of an earlier time
  /// @param to    bytes() at some time, to read no further
  /// @throws error io; whatever visit throws
  log_reading read(std::uint64_t from, const visitor& visit, std::uint64_t to = all) const;

  /// Appends the distinct keys of the first `to` bytes to another log, in the order of their hashes. Takes memory for a
  /// part of them at a time, two bytes a key but at least 32 MiB, and reads the log once for each part.
  /// @param watch  called for every record; may throw to end it
  /// @throws error io; whatever watch throws
  log_reading write_distinct(key_log& into, std::uint64_t to = all, const std::function<void()>& watch = {}) const;

  /// The distinct keys of the first `to` bytes, estimated from the hashes below a bound: exact up to a million, then
  /// within 0.15 % (a standard deviation), however often they are repeated. @throws error io
  std::uint64_t estimate_distinct(std::uint64_t to = all) const;

  /// Writes it anew without repetitions, under the same name and the next generation: what counted its bytes counts
  /// them no more. Refuses a log that is damaged. Requires read_write. @throws error damaged, io
  void remove_duplicates();

  /// Gives the file another name, in place of what has it.
  /// @param synced  sync the folder, so that a failure of the machine does not take it back. If that fails, the file
  ///                has
  ///                the new name all the same
  /// @throws error io
  void rename(const std::string& path, bool synced = true);

  /// Refuses a file that may not be replaced by a log, since it is none. A damaged log is one; no file is fine, too.
  /// @throws error not_a_filter, not_permitted, io
  static void check_replaceable(const std::string& path);

  std::uint64_t keys() const noexcept;        ///< keys, with repetitions, as the last whole record says
  std::uint64_t bytes() const noexcept;       ///< length of the file up to the end of the last whole record
  std::uint64_t torn_bytes() const noexcept;  ///< behind that
  std::uint64_t generation() const noexcept;

  /// hash, keys, seed, key_check, log_id; layout and target_fpr as they were at the start of this generation. The
  /// others are empty.
  const params& parameters() const noexcept;

  /// Bytes of a header, and of a record without its keys.
  static constexpr std::uint64_t header_bytes = 256;
  static constexpr std::uint64_t record_header_bytes = 24;

 private:
  struct state;
  explicit key_log(std::unique_ptr<state> s) noexcept;
  std::unique_ptr<state> state_;
};

}  // namespace bloomery
