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

/// Behavior on file systems without locks (flock).
enum class locking : std::uint8_t {
  required,     ///< throw errc::io with hint::allow_no_lock
  if_possible,  ///< continue without a lock: the caller knows that no other process uses the file
};

/// Locks an open file. False: another process has the lock. @throws error io: the file system has no locks
bool try_lock(int fd, const std::string& path, locking how);

/// Whether files in the directory of `path` can be locked. Also true if this cannot be tested there.
bool has_locks(const std::string& path);

/// Opens a regular file for writing and locks it. If `path` is replaced while waiting for the lock, the new file is
/// opened.
///
/// @param waiting  called many times per second while another process has the lock; if empty, errc::locked is thrown
/// @throws error   as open_regular(); locked; io: the file system has no locks
opened open_locked(const std::string& path, function_ref<void(const std::string& path)> waiting,
                   locking how = locking::required);

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

/// Renames `from` to `to`. Returns false if `to` exists, which is then kept. @throws error not_permitted, io
bool rename_if_free(const std::string& from, const std::string& to);

/// "PATH.unfinished", the temporary name of a new file for `path`. The process that creates the file holds its lock, so
/// an unlocked file of this name was left by a killed process.
std::string unfinished_name(const std::string& path);

/// Removes a regular file that no process has locked: a temporary file with a fixed name, left by a killed process.
/// Links are not followed. Returns whether the name is available.
bool remove_abandoned(const std::string& name, locking how = locking::required) noexcept;

/// Calls remove_abandoned() before a file of this name is created. @param path  the final path, named in errors
/// @throws error  locked: another process is creating it; already_exists: the name belongs to a link or to another file
void free_name(const std::string& name, const std::string& path, locking how = locking::required);

/// How a replacement is made.
struct replacement_options {
  bool replace = true;  ///< false: no file may exist at the path
  locking lock = locking::required;
  std::uint32_t mode = 0666;  ///< of a file that replaces none; the umask applies
};

/// A new file that gets its name only in publish(). Without publish() it is discarded.
///
/// Where the file system supports it (O_TMPFILE), the file has no name until then. A file that replaces another one
/// temporarily has the name unfinished_name(); without O_TMPFILE it has that name from the beginning. A killed process
/// leaves at most this one file, which the next replacement of the same path removes.
class replacement {
 public:
  /// @throws error  not_permitted, not_found (no such directory), locked (another process is writing the old file, or
  ///                is making a new one), already_exists, io (no locks)
  explicit replacement(const std::string& path, const replacement_options& options = {});

  /// Replaces a file that is already locked by open_locked(); the lock is held until the end.
  /// @throws error  not_permitted
  replacement(const std::string& path, descriptor locked, locking how = locking::required);
  replacement(replacement&&) = delete;
  ~replacement();

  int fd() const noexcept { return file_.get(); }

  /// Syncs the file, so that publish() takes only a moment. To be called after the last write. @throws error  io
  void sync_now();

  /// Syncs the file, gives it its final name, replacing an old file, and syncs the directory. Returns the descriptor,
  /// which stays open.
  /// @param synced  false: do not sync
  /// @throws error  io; already_exists: another process has created a file of this name meanwhile
  descriptor publish(bool synced = true);

 private:
  void make_beside();
  void claim_name();
  bool link_as(const std::string& name) const;
  void name_new_file();
  void take_place_of_old();
  void check_temporary() const;

  std::string path_;
  locking lock_ = locking::required;
  std::uint32_t mode_ = 0666;
  std::string temporary_;  ///< name until published; empty while the file is unnamed
  descriptor file_;
  descriptor old_;  ///< the file to be replaced, locked
  bool is_synced_ = false;
  bool in_place_ = false;  ///< the target is a device or pipe, which is written directly
};

}  // namespace posix
}  // namespace bloomery
