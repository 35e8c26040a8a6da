// new_file: writing files that are either complete or absent, even if the process is killed. Filters are written in
// this way; programs can use it for other files beside them.
#pragma once

#include <bloomery/detail/export.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace BLOOMERY_EXPORT bloomery {
namespace detail {

/// A file that gets its name only in publish(). Without publish() it is discarded.
class new_file {
 public:
  /// @param replace  false: no file may exist at the path
  /// @param mode     permissions of a file that replaces none; the umask applies
  /// @throws error   not_found, not_permitted, already_exists, locked (another process is making it)
  explicit new_file(const std::string& path, bool replace = true, std::uint32_t mode = 0666);
  new_file(new_file&&) noexcept;
  ~new_file();

  /// Appends bytes. @throws error io
  void write(std::string_view bytes);

  /// Waits until all written bytes are on disk. @throws error io
  void sync();

  /// Gives the file its name, replacing an old file. The last call on this object.
  /// @param synced  sync the file first, and its directory afterwards
  /// @throws error  not_permitted, already_exists, io
  void publish(bool synced = true);

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

/// A small file that exists while several related files are published. If it exists and no process has it open, a
/// killed process may have published only some of them.
class unfinished_mark {
 public:
  /// Creates or opens the file and locks it. @throws error  locked: another process has locked it; not_permitted, io
  explicit unfinished_mark(const std::string& path);
  unfinished_mark(unfinished_mark&&) noexcept;
  ~unfinished_mark();  // the file stays unless remove() was called

  /// The text of a killed process, at most 4095 bytes; empty if the file is new.
  const std::string& text() const noexcept;

  /// Replaces the contents and syncs them. @throws error io
  void write(std::string_view text);

  /// Removes the file, after all related files were published or removed. @throws error io
  void remove();

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace detail
}  // namespace bloomery
