// The system calls of files, with their errors turned into bloomery::error and their short counts into loops.
#pragma once

#include <bloomery/detail/function_ref.hpp>
#include <bloomery/error.hpp>
#include <bloomery/export.hpp>

#include <cstdint>
#include <span>
#include <string>

namespace BLOOMERY_EXPORT bloomery {
namespace posix {

/// An open file; -1 is none.
class descriptor {
 public:
  descriptor() = default;
  explicit descriptor(int fd) noexcept : fd_(fd) {}
  descriptor(descriptor&& other) noexcept : fd_(other.release()) {}
  descriptor& operator=(descriptor&& other) noexcept;
  ~descriptor();

  int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }
  int release() noexcept;

 private:
  int fd_ = -1;
};

/// Throws the error that errno stands for: "path: cannot <verb>: No space left on device".
[[noreturn]] void fail(const std::string& verb, const std::string& path);

struct opened {
  descriptor file;
  std::uint64_t bytes = 0;  ///< its length
};

/// Opens a regular file. @throws error not_found, not_permitted, not_a_filter (a directory, a device), io
opened open_regular(const std::string& path, bool writable);

/// Opens a regular file for writing with its lock held: the file that `path` names then, for it may have moved on to a
/// new one while we waited.
///
/// @param waiting  called many times a second while another process has the lock; if empty, errc::locked is thrown
/// @throws error   as open_regular(); locked
opened open_locked(const std::string& path, function_ref<void(const std::string& path)> waiting);

void write_all(int fd, std::span<const std::uint8_t> bytes, const std::string& path);
void write_at(int fd, std::span<const std::uint8_t> bytes, std::uint64_t offset, const std::string& path);

/// Reads until the buffer is full or the file ends; the count read.
std::size_t read_at(int fd, std::span<std::uint8_t> bytes, std::uint64_t offset, const std::string& path);

void sync(int fd, const std::string& path);

/// Whether `path` still names the open file.
bool same_file(int fd, const std::string& path);

/// The file that a path means: where a link points to, or the path itself.
std::string behind_links(const std::string& path);

/// Waits until the disk has the names of the folder that `path` is in. @throws error io
void sync_folder_of(const std::string& path);

/// Gives the file `to` the mode and owner of `from`, if there is such a file. @throws error not_permitted, io
void take_mode_of(const std::string& from, const std::string& to);

/// Gives the file `from` the name `to` in place of an old one, whose mode and owner it takes over.
/// @param synced  sync the folder, so that a failure of the machine does not take it back
/// @throws error not_permitted, io
void rename_over(const std::string& from, const std::string& to, bool synced = true);

/// A file being made that takes its name only when it is whole. Without publish() nothing of it stays.
class replacement {
 public:
  /// @param replace  false: there must be no old file
  /// @throws error  not_permitted, not_found (no such folder), locked (another process is writing the old file),
  ///                already_exists
  replacement(const std::string& path, bool replace);

  /// To take the place of a file whose lock is held, as by open_locked(); it is kept until the end.
  /// @throws error  not_permitted
  replacement(const std::string& path, descriptor locked);
  replacement(replacement&&) = delete;
  ~replacement();

  int fd() const noexcept { return file_.get(); }

  /// Syncs the file, gives it its name in place of the old one's, syncs the folder. The descriptor stays open and is
  /// given to the caller.
  /// @param synced  false: without the syncing
  /// @throws error  io; already_exists: another process made a file of this name meanwhile
  descriptor publish(bool synced = true);

 private:
  void make_beside();

  std::string path_;
  std::string temporary_;  ///< its name until published; empty while it has none
  descriptor file_;
  descriptor old_;         ///< the file to be replaced, locked
  bool in_place_ = false;  ///< a device or pipe: written directly
};

}  // namespace posix
}  // namespace bloomery
