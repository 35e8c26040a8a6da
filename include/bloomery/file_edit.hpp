// file_edit: a change of a filter file that happens as a whole or not at all. A killed process leaves the old file or
// the new one.
//
// Filters of bits are changed in place, which is faster and safe: bits only turn from 0 to 1, and inserting a key again
// changes nothing. Counters need more: a key that is half removed is damaged, and removing it again takes counts of
// other keys.
#pragma once

#include <bloomery/any_filter.hpp>
#include <bloomery/detail/export.hpp>
#include <bloomery/open_options.hpp>

#include <memory>
#include <string>

namespace BLOOMERY_EXPORT bloomery {

/// The filter of a file, read into memory, with the file's lock held: other writers wait, and readers see the old file.
/// It takes the filter's size in memory, and once more on disk until the old file is replaced.
///
/// Example:
///     any_filter(complete({.layout = "counting", .capacity = 1000, .target_fpr = 0.01})).save("here.bloom");
///     file_edit edit("here.bloom");
///     edit.filter().insert("Madrid");
///     assert(!any_filter::open("here.bloom").may_contain("Madrid"));
///     edit.commit();
///     assert(any_filter::open("here.bloom").may_contain("Madrid"));
class file_edit {
 public:
  /// Locks and loads the file. If the last writer was killed, the count is estimated. Of the options it
  /// uses `waiting`, `secret`, `clock` and `to_remove`.
  ///
  /// @throws error   as any_filter::load; locked; incompatible: a filter that keeps a log, which would miss the new
  ///                 keys
  explicit file_edit(const std::string& path, const open_options& options = {});
  file_edit(file_edit&&) noexcept;
  file_edit& operator=(file_edit&&) noexcept;

  /// Without commit() all changes are dropped and the file stays as it was.
  ~file_edit();

  /// The filter, to be changed.
  any_filter& filter() noexcept;

  /// Replaces the file by the changed filter, with the same metadata: syncs, then renames. The last call on this
  /// object.
  /// @throws error  not_permitted, io: the file stays as it was; already_exists: the name now belongs to another file
  void commit();

 private:
  friend std::unique_ptr<filter_handle> open_filter(const std::string& path, const open_options& options);
  struct state;
  file_edit(const std::string& path, format::open_file locked, const open_options& options);
  std::unique_ptr<state> state_;
};

}  // namespace bloomery
