// A filter file that is changed as a whole or not at all: what a killed process leaves is the old file or the new one.
//
// Changing a file in place is quicker, and all that filters of bits need: bits only turn from 0 to 1, and inserting a
// key once more changes nothing. Counters are another matter: a key that was half removed is broken, and removing it
// once more takes what belongs to others.
#pragma once

#include <bloomery/any_filter.hpp>
#include <bloomery/export.hpp>
#include <bloomery/open_options.hpp>

#include <memory>
#include <string>

namespace BLOOMERY_EXPORT bloomery {

/// A filter of a file, read into memory, with the file's lock held: nobody else writes it meanwhile, and whoever reads
/// it sees it as it was. Takes the filter's size in memory, and on disk until the old file is gone.
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
  /// Locks and loads the file. After an unclean end its count is estimated. Of the options it takes `waiting`,
  /// `secret`, `clock` and `to_remove`.
  ///
  /// @throws error   as any_filter::load; locked; incompatible: a filter that keeps a log, which would miss the new
  ///                 keys
  explicit file_edit(const std::string& path, const open_options& options = {});
  file_edit(file_edit&&) noexcept;
  file_edit& operator=(file_edit&&) noexcept;

  /// Without commit() all changes are forgotten and the file is what it was.
  ~file_edit();

  /// The filter, to be changed.
  any_filter& filter() noexcept;

  /// Puts the changed filter in the file's place, with the file's metadata: synced, then renamed. Once, and last.
  /// @throws error  not_permitted, io: the file is what it was; already_exists: its name means another file by now
  void commit();

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace bloomery
