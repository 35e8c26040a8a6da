// rebuilding_filter: a filter in a file that grows with its keys, and a log of their hashes beside it.
//
//   FILTER       a filter file like any other, with layout split_block, split_block512, blocked or blocked_page
//   FILTER.log   key_log.hpp: 8 bytes for every inserted key, also for keys that were already present
//
// When the filter is nearly full, another thread builds a filter for 1.24 times the keys from the log while inserting
// continues, and the new filter replaces the old one. So a lookup always reads one filter, and the FPR stays at most
// the target, unless a rebuild fails: see rebuilding_filter.
#pragma once

#include <bloomery/any_filter.hpp>
#include <bloomery/detail/export.hpp>
#include <bloomery/detail/key_log.hpp>
#include <bloomery/key.hpp>
#include <bloomery/mapped_storage.hpp>
#include <bloomery/params.hpp>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace BLOOMERY_EXPORT bloomery {

/// The changes made by a rebuild. Empty fields keep their present values.
struct rebuild_plan {
  std::optional<double> rate = {};             ///< target FPR p, in (0, 1)
  std::optional<std::uint64_t> capacity = {};  ///< n, keys; empty: rebuilding_filter::grown_capacity of its keys
  std::string layout = {};                     ///< split_block, split_block512, blocked or blocked_page
  bool salvage = false;                        ///< if the log is damaged, continue without the lost keys; the old
                                               ///< files are kept as FILTER.damaged and FILTER.damaged.log
  std::function<void()> watch = {};            ///< called many times per second; may throw to cancel the rebuild
};

/// A filter in a file that grows with its keys, with parameters chosen at run time.
///
/// insert() writes to the log before it sets bits, so a killed process loses no key whose insert() returned. After a
/// power failure, all keys before the last flush() or close() are present. One process may write at a time. A process
/// that has the filter open for reading does not see a rebuild, nor the keys after it, until it opens the file again.
///
/// If the next filter cannot be built, for example because the disk is full, the present one stays in use and accepts
/// all further keys, so its FPR may exceed the target. open_options::notes receives the first failure. Later inserts
/// try again, and a successful rebuild restores the target FPR. Until then, settle() or close() throws the error, once.
///
/// Threads: any number may look up while none inserts.
///
/// Example:
///     {
///       rebuilding_filter seen = rebuilding_filter::create("seen.bloom", {.target_fpr = 0.01});
///       for (std::uint64_t i = 0; i < 5000; ++i) seen.insert(std::to_string(i));
///       assert(seen.capacity() > 5000 && seen.log().keys() == 5000);
///       seen.close();
///     }
///     assert(any_filter::open("seen.bloom").may_contain("4999"));
class rebuilding_filter {
 public:
  /// Fraction of the capacity at which the rebuild starts. During the rebuild, both filters are in memory.
  static constexpr double nearly_full = 0.98;

  /// The path of a filter's log: the filter's path with symbolic links resolved, and ".log".
  static std::string log_path(const std::string& path);

  /// The capacity after a rebuild with n distinct keys: 1.24 n; below 2048 keys 2 n, but at least 1000.
  ///
  /// Example:
  ///     assert(rebuilding_filter::grown_capacity(100'000) == 124'000);
  static std::uint64_t grown_capacity(std::uint64_t keys) noexcept;

  /// Completes `p` with target FPR 0.01, capacity 1000 and a layout where they are empty. The layout is the fastest of
  /// split_block512, blocked and blocked_page that needs at most 25% more memory than the smallest of them:
  /// split_block512 at 1%, with at most 12.6 bits per key.
  /// @throws error  as complete(); incompatible: a scheme, classic or a filter that is not plain, which read more than
  ///                hash64, the part of a key's hash that the log stores
  ///
  /// Example:
  ///     assert(rebuilding_filter::completed({}).layout == "split_block512");
  static params completed(params p);

  /// Creates an empty filter and its log and opens both for writing. A log without keys and without a filter is
  /// replaced.
  ///
  /// @param p  as completed(); capacity is the initial capacity
  /// @throws error  as completed(); not_permitted, locked, already_exists, io; not_a_filter: a file with the log's name
  ///                is not a log
  static rebuilding_filter create(const std::string& path, params p, const create_options& options = {});

  /// A function that calls its argument with all keys, in parts of any size, for build().
  using key_feed = std::function<void(const std::function<void(key_span)>& record)>;

  /// Creates a filter of many keys and its log and opens both for writing. The files get their names, and replace old
  /// ones, when they are complete; if the process is killed, the old files stay. All keys are inserted at once, which
  /// is faster than insert().
  ///
  /// @param p     as completed(); a capacity below the number of distinct keys is replaced by grown_capacity()
  /// @throws error  as create(); whatever `feed` throws
  ///
  /// Example:
  ///     const std::vector<std::string_view> cities = {"Madrid", "Bern", "Madrid"};
  ///     const rebuilding_filter built = rebuilding_filter::build(
  ///         "built.bloom", {.target_fpr = 0.01}, [&](const auto& record) { record(cities); });
  ///     assert(built.log().keys() == 3 && built.may_contain("Bern"));
  static rebuilding_filter build(const std::string& path, params p, const key_feed& feed,
                                 const create_options& options = {});

  /// Opens a filter that has a log. For reading the log is not needed. For writing, keys that a killed writer left only
  /// in the log are inserted, and its incomplete last record is removed. options.notes receives a note about both, and
  /// later about failed rebuilds.
  ///
  /// @throws error  as any_filter::open; for read_write also incompatible: the filter has no log, or the log belongs to
  ///                another filter; not_found: the log is missing; damaged: the log lost keys, or is an older version
  static rebuilding_filter open(const std::string& path, const open_options& options = {});

  /// Rebuilds the filter from its log alone, whatever the state of the filter file, and opens it for writing. Layout,
  /// target FPR and metadata are those of the old file if it can be read, otherwise those at the start of the log. Of
  /// the options it uses `waiting`, `secret`, `notes` and `no_lock`.
  ///
  /// @throws error  as open() and rebuild(); already_exists: with salvage, the files kept by an earlier salvage still
  ///                exist
  static rebuilding_filter recover(const std::string& path, const rebuild_plan& plan = {},
                                   const open_options& options = {});

  /// Describes the keys of the filter that its log lacks; empty if none are known to be missing. A truncated log is
  /// recognized by its length, an older version by the number of its keys (the log is read if its generation differs
  /// from the filter's). @throws error io
  static std::string missing_in(const file_info& filter, const key_log& log);

  rebuilding_filter(rebuilding_filter&&) noexcept;
  rebuilding_filter& operator=(rebuilding_filter&&) noexcept;

  /// Closes the files and ignores errors. Call close() to get them as exceptions.
  ~rebuilding_filter();

  /// Inserts a key. True: the key is certainly new. A single key takes a system call and 32 bytes of the log, so
  /// batches are faster. If the filter is full before the next one is ready, insert() waits. A failed rebuild is not
  /// reported here.
  /// @throws error  incompatible: keys of the other kind; not_permitted: opened for reading only; io
  bool insert(std::string_view key);
  bool insert(std::uint64_t key);

  /// Inserts keys or hashes in order and returns how many were certainly new. `is_new` is empty or receives 1 or 0 per
  /// key.
  /// @throws error  as above; invalid_argument: `is_new` has another size. Nothing is inserted then.
  std::uint64_t insert(key_span keys, std::span<std::uint8_t> is_new = {});
  std::uint64_t insert(std::initializer_list<std::string_view> keys) {
    return insert(key_span(std::span<const std::string_view>(keys.begin(), keys.size())));
  }

  /// Writes keys to the log but not yet to the filter; the next rebuild() or close() inserts them all at once. Until
  /// then, lookups do not find them. For building a filter of many keys.
  /// @throws error  not_permitted, io; incompatible: keys of the other kind
  void record(key_span keys);

  /// False: the key was certainly never inserted. For many keys, bit i % 64 of bitmap[i / 64] is the answer for key i;
  /// `bitmap` has at least ceil(keys.size() / 64) words, and further words are unchanged.
  /// @throws error  incompatible; invalid_argument: the bitmap is too short
  bool may_contain(std::string_view key) const;
  bool may_contain(std::uint64_t key) const;
  void may_contain(key_span keys, std::span<std::uint64_t> bitmap) const;
  bool may_contain(std::initializer_list<std::string_view> keys) const = delete;  // not one view of two pointers

  /// Rebuilds the filter from the log. A log that is more than twice as long as its distinct keys require is rewritten,
  /// too. If the rebuild fails, the old filter stays in use.
  /// @throws error  invalid_argument: a capacity below the number of keys, or an FPR out of range; incompatible: the
  ///                layout does not support a log; damaged: the log, without salvage; not_permitted, io
  void rebuild(const rebuild_plan& plan = {});

  /// Sets a function that returns the target FPR of each larger filter for its capacity, for targets that fall as the
  /// filter grows. Empty, the default: the present target stays. The function is not stored: set it after each opening.
  ///
  /// Example:
  ///     rebuilding_filter seen = rebuilding_filter::create("falling.bloom", {.target_fpr = 1e-5});
  ///     seen.set_growing_target([](std::uint64_t capacity) { return 0.01 / static_cast<double>(capacity); });
  ///     for (std::uint64_t i = 0; i < 5000; ++i) seen.insert(std::to_string(i));
  ///     seen.settle();
  ///     assert(seen.parameters().target_fpr == 0.01 / static_cast<double>(seen.capacity()));
  void set_growing_target(callback<double(std::uint64_t)> target);

  /// Waits for a rebuild in progress and reports its result.
  /// @throws error  io, damaged, not_permitted: the last rebuild failed, and its error was not thrown yet; the filter
  ///                has all keys and stays open
  void settle();

  /// Waits until all keys are on disk. @throws error io
  void flush();

  /// Calls flush(), then writes the filter's checksums, count and clean mark, as any_filter::close().
  /// @throws error  io; as settle(), after the files are complete and closed
  void close();

  /// Leaves the files as a killed process does, without closing them. The next open() for writing repairs them.
  void abandon() noexcept;

  /// The present filter, for functions that this class lacks. An insert may replace it.
  const any_filter& view() const noexcept;

  /// The log. Requires read_write.
  const key_log& log() const noexcept;

  const params& parameters() const noexcept;
  std::uint64_t insert_count() const noexcept;  ///< keys that were certainly new when inserted
  std::uint64_t capacity() const noexcept;      ///< keys; grows
  double expected_fpr() const;                  ///< expected FPR now; at most the target unless a rebuild failed
  std::uint64_t rebuilds() const noexcept;      ///< number of rebuilds since the filter was opened
  std::uint64_t lost_keys() const noexcept;     ///< keys lost by the last rebuild with salvage

 private:
  struct impl;
  explicit rebuilding_filter(std::unique_ptr<impl> b) noexcept;
  std::unique_ptr<impl> impl_;
};

}  // namespace bloomery
