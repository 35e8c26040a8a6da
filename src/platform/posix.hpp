// POSIX file operations that throw bloomery::error and repeat partial reads and writes.
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/detail/function_ref.hpp>
#include <bloomery/error.hpp>

#include <cstdint>
#include <span>
#include <string>

namespace BLOOMERY_EXPORT bloomery {
namespace posix {

/// An owned file descriptor; -1 if none.
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

/// Throws the error for errno: "path: cannot <verb>: No space left on device".
[[noreturn]] void fail(const std::string& verb, const std::string& path);

struct opened {
  descriptor file;
  std::uint64_t bytes = 0;  ///< length of the file
};

/// Opens a regular file. @throws error not_found, not_permitted, not_a_filter (a directory, a device), io
opened open_regular(const std::string& path, bool writable);

/// Opens a regular file for writing and locks it. If `path` is replaced while waiting for the lock, the new file is
/// opened.
///
/// @param waiting  called many times a second while another process has the lock; if empty, errc::locked is thrown
/// @throws error   as open_regular(); locked
opened open_locked(const std::string& path, function_ref<void(const std::string& path)> waiting);

void write_all(int fd, std::span<const std::uint8_t> bytes, const std::string& path);
void write_at(int fd, std::span<const std::uint8_t> bytes, std::uint64_t offset, const std::string& path);

/// Reads until the buffer is full or the file ends; returns the number of bytes read.
std::size_t read_at(int fd, std::span<std::uint8_t> bytes, std::uint64_t offset, const std::string& path);

void sync(int fd, const std::string& path);

/// Whether `path` still refers to the open file.
bool same_file(int fd, const std::string& path);

/// The target of a symbolic link, or the path itself.
std::string behind_links(const std::string& path);

/// Syncs the directory that contains `path`. @throws error io
void sync_folder_of(const std::string& path);

/// Sets mode and owner of the file `to` to those of `from`, if `from` exists. @throws error not_permitted, io
void take_mode_of(const std::string& from, const std::string& to);

/// Renames `from` to `to`. If `to` exists, it is replaced, and its mode and owner are kept.
/// @param synced  sync the directory, so that the new name survives a power failure
/// @throws error not_permitted, io
void rename_over(const std::string& from, const std::string& to, bool synced = true);

/// A new file that appears under its name only in publish(). Without publish() it is discarded.
class replacement {
 public:
  /// @param replace  false: no file may exist at `path`
  /// @throws error  not_permitted, not_found (no such directory), locked (another process is writing the old file),
  ///                already_exists
  replacement(const std::string& path, bool replace);

  /// Replaces a file that is already locked by open_locked(); the lock is held until the end.
  /// @throws error  not_permitted
  replacement(const std::string& path, descriptor locked);
  replacement(replacement&&) = delete;
  ~replacement();

  int fd() const noexcept { return file_.get(); }

  /// Syncs the file, gives it its final name, replacing an old file, and syncs the directory. Returns the descriptor,
  /// which stays open.
  /// @param synced  false: do not sync
  /// @throws error  io; already_exists: another process has created a file of this name meanwhile
  descriptor publish(bool synced = true);

 private:
  void make_beside();

  std::string path_;
  std::string temporary_;  ///< name until published; empty while the file is unnamed
  descriptor file_;
  descriptor old_;         ///< the file to be replaced, locked
  bool in_place_ = false;  ///< the target is a device or pipe, which is written directly
};

}  // namespace posix
}  // namespace bloomery
