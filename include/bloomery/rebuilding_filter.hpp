// rebuilding_filter: a filter in a file that grows with its keys, and a log of their hashes beside it.
//
//   FILTER       a filter file like any other, of layout split_block, split_block512, blocked or blocked_page
//   FILTER.log   key_log.hpp: 8 bytes for every key ever inserted, also for keys already reported present
//
// When the filter is nearly full, another thread makes one for 1.24 times the keys from the log while inserting
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

/// What a rebuild changes. Empty fields keep their present values.
struct rebuild_plan {
  std::optional<double> rate = {};             ///< p, in (0, 1)
  std::optional<std::uint64_t> capacity = {};  ///< n, keys; rebuilding_filter::grown_capacity of its keys if empty
  std::string layout = {};                     ///< split_block, split_block512, blocked or blocked_page
  bool salvage = false;                        ///< if the log is damaged, continue without the lost keys; the old
                                               ///< files are kept as FILTER.damaged and FILTER.damaged.log
  std::function<void()> watch = {};            ///< called many times a second; may throw to cancel the rebuild
};

/// A filter in a file that grows with its keys, with parameters chosen at run time.
///
/// insert() writes to the log before it sets bits. So a killed process loses no key whose insert() returned. After a
/// power failure all keys before the last flush() or close() are there. One process writes at a time. A
/// reader sees the filter as it was before a rebuild until it opens the file again, and so misses later keys.
///
/// If the next filter cannot be made, such as on a full disk, the present one stays in use and takes all further keys,
/// so its FPR may exceed the target. open_options::notes receives the first failure. Further keys try again, and a
/// rebuild that succeeds restores the target. Until then settle() or close() throws the error, once.
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
  /// Share of the capacity at which the next filter is started. Until that is done, both are in memory.
  static constexpr double nearly_full = 0.98;

  /// The path of a filter's log: the filter's path and ".log", with symbolic links followed.
  static std::string log_path(const std::string& path);

  /// The capacity after a rebuild with n distinct keys: 1.24 n, or 2 n below 2048, and at least 1000.
  ///
  /// Example:
  ///     assert(rebuilding_filter::grown_capacity(100'000) == 124'000);
  static std::uint64_t grown_capacity(std::uint64_t keys) noexcept;

  /// Completes `p`: target FPR 0.01, capacity 1000 and a layout where they are empty. The layout is the fastest of
  /// split_block512, blocked and blocked_page that needs at most 25% more memory than the smallest of them:
  /// split_block512 at 1%, with at most 12.6 bits per key.
  /// @throws error  as complete(); incompatible: a scheme, classic or a filter that is not plain, which need more of a
  ///                key's hash than the 64 bits in a log
  ///
  /// Example:
  ///     assert(rebuilding_filter::completed({}).layout == "split_block512");
  static params completed(params p);

  /// Makes an empty filter and its log and opens both for writing. A log without keys and without a filter is replaced.
  ///
  /// @param p  as completed(); capacity is where it begins
  /// @throws error  as completed(); not_permitted, locked, already_exists, io; not_a_filter: another file than a log
  ///                has the log's name
  static rebuilding_filter create(const std::string& path, params p, const create_options& options = {});

  /// Calls its argument with keys, in parts, for build().
  using key_feed = std::function<void(const std::function<void(key_span)>& record)>;

  /// Makes a filter of many keys, and its log, and opens both for writing. The files get their names, and replace old
  /// ones, when they are complete; a killed process leaves the old ones. All keys are inserted at once, which is faster
  /// than insert().
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

  /// Opens a filter that has a log. For reading the log is not needed. For writing, keys that a killed writer left in
  /// the log alone are inserted, and a record that it tore is cut off; options.notes hears of both, and later of
  /// rebuilds that fail.
  ///
  /// @throws error  as any_filter::open; for read_write also incompatible: the filter has no log, or another one's is
  ///                there; not_found: its log is missing; damaged: keys are lost in the log, or it is an older one
  static rebuilding_filter open(const std::string& path, const open_options& options = {});

  /// Makes the filter again from its log alone, whatever has become of the filter's own file, and opens it for writing.
  /// Layout, rate and metadata are those of the old file if it can be read, else what the log was begun with. Of the
  /// options it takes `waiting`, `secret`, `notes` and `no_lock`.
  ///
  /// @throws error  as open() and rebuild(); already_exists: with salvage, a damaged one of earlier is still there
  static rebuilding_filter recover(const std::string& path, const rebuild_plan& plan = {},
                                   const open_options& options = {});

  /// Which keys of the filter its log lacks, in words; empty if none are known to be missing. A truncated log is
  /// recognised by its length, an older log by the number of its keys (it is read if its generation differs from the
  /// filter's). @throws error io
  static std::string missing_in(const file_info& filter, const key_log& log);

  rebuilding_filter(rebuilding_filter&&) noexcept;
  rebuilding_filter& operator=(rebuilding_filter&&) noexcept;

  /// Closes; errors are lost here, so call close() where they matter.
  ~rebuilding_filter();

  /// Adds a key; true: certainly new. A single key takes a system call and 32 bytes of the log, so batches are faster.
  /// If the filter is full before the next one is ready, insert() waits. A failed rebuild is no error here.
  /// @throws error  incompatible: keys of the other kind; not_permitted: opened for reading only; io
  bool insert(std::string_view key);
  bool insert(std::uint64_t key);

  /// Adds keys one after another, hashed or not, and returns how many were certainly new. `is_new` is empty or takes
  /// 1 or 0 for each key.
  /// @throws error  as above; invalid_argument: another size of `is_new`. Then nothing is inserted.
  std::uint64_t insert(key_span keys, std::span<std::uint8_t> is_new = {});
  std::uint64_t insert(std::initializer_list<std::string_view> keys) {
    return insert(key_span(std::span<const std::string_view>(keys.begin(), keys.size())));
  }

  /// Writes keys to the log and not yet to the filter: the next rebuild() or close() inserts them all at once. Until
  /// then they are not found. For making a filter of many keys.
  /// @throws error  not_permitted, io; incompatible: keys of the other kind
  void record(key_span keys);

  /// False: certainly never inserted. For many keys bit i % 64 of bitmap[i / 64] is the answer for key i; `bitmap` has
  /// at least ceil(keys.size() / 64) words, of which further ones are left as they are.
  /// @throws error  incompatible; invalid_argument: the bitmap is shorter
  bool may_contain(std::string_view key) const;
  bool may_contain(std::uint64_t key) const;
  void may_contain(key_span keys, std::span<std::uint64_t> bitmap) const;
  bool may_contain(std::initializer_list<std::string_view> keys) const = delete;  // not one view of two pointers

  /// Makes the filter again from the log. A log that is more than twice as long as its distinct keys need is rewritten,
  /// too. If that fails, the old filter stays in use.
  /// @throws error  invalid_argument: a capacity below its keys, a rate out of range; incompatible: such a layout;
  ///                damaged: the log, without salvage; not_permitted, io
  void rebuild(const rebuild_plan& plan = {});

  /// Waits for a rebuild that is under way, and takes its result.
  /// @throws error  io, damaged, not_permitted: the last rebuild failed, and its error was not thrown yet; the filter
  ///                has all keys and stays open
  void settle();

  /// Waits until the disk has all keys. @throws error io
  void flush();

  /// flush(), then the filter's checksums, count and clean mark, as any_filter::close().
  /// @throws error  io; as settle(), after the files are complete and closed
  void close();

  /// Closes nothing and leaves the files as a killed process does; the next open() for writing repairs them.
  void abandon() noexcept;

  /// The present filter, for calls that this class lacks. An insertion may replace it.
  const any_filter& view() const noexcept;

  /// The log. Requires read_write.
  const key_log& log() const noexcept;

  const params& parameters() const noexcept;
  std::uint64_t insert_count() const noexcept;  ///< keys that were certainly new when inserted
  std::uint64_t capacity() const noexcept;      ///< keys; grows
  double expected_fpr() const;                  ///< now; at most the target unless a rebuild failed
  std::uint64_t rebuilds() const noexcept;      ///< since it was opened
  std::uint64_t lost_keys() const noexcept;     ///< by the last rebuild with salvage

 private:
  struct impl;
  explicit rebuilding_filter(std::unique_ptr<impl> b) noexcept;
  std::unique_ptr<impl> impl_;
};

}  // namespace bloomery
