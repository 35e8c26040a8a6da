// rebuilding_filter: a filter in a file that grows with its keys, and a log of their hashes beside it.
//
//   FILTER       a filter file as any other, of layout split_block, split_block512, blocked or blocked_page
//   FILTER.log   key_log.hpp: 8 bytes for every key that was ever inserted, also those that seemed to be there
//
// When the filter is nearly full, one of 1.24 times the keys is made from the log by another thread while inserting
// goes on, and takes the old one's place. So a lookup always touches one filter, and the error never passes the
// promise.
#pragma once

#include <bloomery/any_filter.hpp>
#include <bloomery/detail/key_log.hpp>
#include <bloomery/export.hpp>
#include <bloomery/key_span.hpp>
#include <bloomery/mapped_storage.hpp>
#include <bloomery/open_options.hpp>
#include <bloomery/params.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace BLOOMERY_EXPORT bloomery {

/// What a rebuild changes; what is left empty stays as it is.
struct rebuild_plan {
  std::optional<double> rate = {};             ///< p, in (0, 1)
  std::optional<std::uint64_t> capacity = {};  ///< n, keys; rebuilding_filter::grown_capacity of its keys if empty
  std::string layout = {};                     ///< split_block, split_block512, blocked or blocked_page
  bool salvage = false;                        ///< if the log is damaged, go on without the keys that are lost; what
                                               ///< there was is kept, as FILTER.damaged and FILTER.damaged.log
  std::function<void()> watch = {};            ///< called many times a second; may throw to end it: all stays as it was
};

/// A filter whose kind is known at run time, which never becomes too small.
///
/// insert() writes to the log before it sets bits. So a killed process loses no key whose insert() returned; after the
/// machine itself failed, all that was before the last flush() or close() is there. One process writes at a time. A
/// reader sees the filter as it was before a rebuild until it opens the file again, and so misses later keys.
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
  /// Share of its capacity from which on the next filter is made: until that is done, both are in memory.
  static constexpr double nearly_full = 0.98;

  /// The log of a filter: its path and ".log"; beside the file a link points to.
  static std::string log_path(const std::string& path);

  /// The capacity that a rebuild gives n distinct keys: 1.24 n, twice as many below 2048, and at least 1000.
  ///
  /// Example:
  ///     assert(rebuilding_filter::grown_capacity(100'000) == 124'000);
  static std::uint64_t grown_capacity(std::uint64_t keys) noexcept;

  /// What `p` becomes: rate 0.01, capacity 1000 and a layout where they are left empty. The layout is the quickest of
  /// split_block512, blocked and blocked_page that needs at most a quarter more memory than the best of them:
  /// split_block512 at 1 %, which is then at most 12.6 bits a key.
  /// @throws error  as complete(); incompatible: a scheme, classic or a filter that is not plain, which need more of a
  ///                key than the 64 bits of a log
  ///
  /// Example:
  ///     assert(rebuilding_filter::completed({}).layout == "split_block512");
  static params completed(params p);

  /// Makes an empty filter and its log and opens both for writing.
  ///
  /// @param p  as completed(); capacity is where it begins
  /// @throws error  as completed(); not_permitted, locked, already_exists, io; not_a_filter: another file than a log
  ///                has
  ///                the log's name
  static rebuilding_filter create(const std::string& path, params p, const create_options& options = {});

  /// Opens a filter that has a log. For reading the log is not needed. For writing, keys that a killed writer left in
  /// the log alone are inserted, and a record that it tore is cut off; options.notes hears of both, and later of
  /// rebuilds that fail.
  ///
  /// @throws error  as any_filter::open; for read_write also incompatible: the filter has no log, or another one's is
  ///                there; not_found: its log is missing; damaged: keys are lost in the log, or it is an older one
  static rebuilding_filter open(const std::string& path, const open_options& options = {});

  /// Makes the filter again from its log alone, whatever has become of the filter's own file, and opens it for writing.
  /// Layout, rate and metadata are those of the old file if it can be read, else what the log was begun with. Of the
  /// options it takes `waiting`, `secret` and `notes`.
  ///
  /// @throws error  as open() and rebuild(); already_exists: with salvage, a damaged one of earlier is still there
  static rebuilding_filter recover(const std::string& path, const rebuild_plan& plan = {},
                                   const open_options& options = {});

  /// What `log`, the log of the filter that this was read from, lacks of the filter's keys, in words; empty if it has
  /// them all, as far as can be told: a log that was cut short is known by its length, an older one by the number of
  /// its keys (it is read through if its generation is not the filter's). @throws error io
  static std::string missing_in(const file_info& filter, const key_log& log);

  /// Gives a closed filter and its log another name, in place of an old filter and its log.
  /// @throws error  locked, not_permitted, io; not_a_filter: another file than a log has the log's name
  static void move(const std::string& from, const std::string& to);

  rebuilding_filter(rebuilding_filter&&) noexcept;
  rebuilding_filter& operator=(rebuilding_filter&&) noexcept;

  /// Closes; errors are lost here, so call close() where they matter.
  ~rebuilding_filter();

  /// Adds a key; true: certainly new. A single key takes a system call and 32 bytes of the log: batches are for speed.
  /// When the filter is full before its successor is ready, waits for that.
  /// @throws error  incompatible: keys of the other kind; not_permitted: opened for reading only; io
  bool insert(std::string_view key);
  bool insert(std::uint64_t key);

  /// Adds keys one after another, hashed or not, and returns how many were certainly new. `is_new` is empty or takes
  /// 1 or 0 for each key.
  /// @throws error  as above; invalid_argument: another size of `is_new`. Then nothing is inserted.
  std::uint64_t insert(key_span keys, std::span<std::uint8_t> is_new = {});

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

  /// Makes the filter again from the log. A log that is more than twice as long as its distinct keys need is rewritten,
  /// too. If that fails, the old filter stays in use.
  /// @throws error  invalid_argument: a capacity below its keys, a rate out of range; incompatible: such a layout;
  ///                damaged: the log, without salvage; not_permitted, io
  void rebuild(const rebuild_plan& plan = {});

  /// Waits for a rebuild that is under way, and takes its result. @throws error io
  void settle();

  /// Waits until the disk has all keys. @throws error io
  void flush();

  /// flush(), then the filter's checksums, count and clean mark, as any_filter::close(). @throws error io
  void close();

  /// Ends as a killed process does: the next open() for writing finds out.
  void abandon() noexcept;

  /// The filter as it is now, for all else that can be asked of one. Another one after an insertion.
  const any_filter& view() const noexcept;

  /// The log. Requires read_write.
  const key_log& log() const noexcept;

  const params& parameters() const noexcept;
  std::uint64_t insert_count() const noexcept;  ///< keys that were certainly new when they came
  std::uint64_t capacity() const noexcept;      ///< keys that it has room for now; grows
  double expected_fpr() const;                  ///< now; at most the target
  std::uint64_t rebuilds() const noexcept;      ///< since it was opened
  std::uint64_t lost_keys() const noexcept;     ///< by the last rebuild with salvage

 private:
  struct impl;
  explicit rebuilding_filter(std::unique_ptr<impl> b) noexcept;
  std::unique_ptr<impl> impl_;
};

}  // namespace bloomery
