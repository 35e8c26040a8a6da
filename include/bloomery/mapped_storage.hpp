// A filter's bytes in a mapped file, read or written in place. docs/format.md draws the file.
//
// While mapped for writing the file is marked dirty, and its lock keeps other writers out. close() (or the destructor)
// writes the checksums of the changed pages, the count of keys, and the clean mark, in this order. A process killed in
// between leaves a dirty file: it opens, with all the bits that were set; filter<> and any_filter estimate its count
// from them when they open it for writing.
#pragma once

#include <bloomery/detail/function_ref.hpp>
#include <bloomery/detail/storage.hpp>
#include <bloomery/export.hpp>
#include <bloomery/params.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace BLOOMERY_EXPORT bloomery {

enum class access : std::uint8_t { read_only, read_write };

/// How a filter file is created.
struct create_options {
  std::string metadata = {};  ///< the user's own bytes, which open() reports
  bool reserve = true;  ///< take disk space for all of it at once; else it is sparse, and a full disk shows as SIGBUS
  bool replace = true;  ///< replace an old file; else throw already_exists if there is one
  bool sync = true;     ///< wait until the disk has it; else after checkpoint() or close() only
};

/// How much open() looks at: the header alone, or every page against its checksum.
enum class file_check : std::uint8_t { header, payload };

/// What a file's header says.
struct file_info {
  params parameters;
  key_counts counts;          ///< as of the last clean close
  bool clean = true;          ///< false: a writer has it open, or ended without closing it
  bool slot_damaged = false;  ///< one of the two state slots is unreadable; the other one serves
  std::string metadata;       ///< the user's own bytes
  std::uint64_t file_bytes = 0;
};

/// What inspect() found.
struct inspection {
  bool usable = false;                ///< open() would succeed
  file_info info;                     ///< meaningful if usable
  std::vector<std::string> problems;  ///< in words; also for a usable file: dirty, damaged pages
};

/// Looks at a file without trusting it. Never throws; problems are told in the result. (A file that somebody cuts short
/// while its pages are read ends the process with SIGBUS, as with every mapped file.) With file_check::payload every
/// page is read; the pages of a dirty file have no valid checksums and are not judged.
inspection inspect(const std::string& path, file_check what = file_check::header) noexcept;

class mapped_storage {
 public:
  static constexpr bool tracks_changes = true;

  /// Called many times a second while another process holds the write lock; throw to give up.
  using on_wait = function_ref<void(const std::string& path)>;

  /// Called with what the header says, before anything is changed or marked; throw to refuse the file.
  using on_header = function_ref<void(const params& parameters)>;

  /// Maps an existing filter. Only the header's page is read, unless `what` is file_check::payload. Without that, a
  /// damaged page that takes a key gets a valid checksum at the end: writers who cannot trust the disk check first.
  ///
  /// @param waiting  for read_write: what to do when another writer has the file; if empty, errc::locked is thrown
  /// @throws error  not_found, not_permitted, not_a_filter, wrong_version, damaged, locked, io
  static mapped_storage open(const std::string& path, access mode, file_check what = file_check::header,
                             const on_wait& waiting = {}, const on_header& suits = {});

  /// Makes a new empty filter file and maps it for writing. The name appears only when the file is whole.
  ///
  /// @throws error  invalid_argument, not_permitted, locked, already_exists, io (disk full)
  static mapped_storage create(const std::string& path, const params& parameters, const create_options& options = {});

  mapped_storage(mapped_storage&&) noexcept;
  mapped_storage& operator=(mapped_storage&&) noexcept;

  /// Closes; errors are lost here, so call close() where they matter.
  ~mapped_storage();

  /// What the header said at opening.
  const file_info& info() const noexcept;

  std::uint8_t* data() noexcept { return data_; }
  const std::uint8_t* data() const noexcept { return data_; }
  std::uint64_t size() const noexcept { return size_; }
  key_counts& counts() noexcept { return counts_; }
  const key_counts& counts() const noexcept { return counts_; }

  bool writable() const noexcept { return changed_pages_ != nullptr; }

  /// Remembers that the page of this byte needs a new checksum.
  void changed(std::uint64_t byte) noexcept {
    const std::uint64_t page = byte >> 12;
    changed_pages_[page >> 6] |= std::uint64_t{1} << (page & 63);
  }

  /// The same for all pages.
  void changed_all() noexcept;

  /// Writes the counts and syncs all; the file stays marked dirty. For a file that takes the place of another one only
  /// after that: else a failure of the machine on the way could leave counts of bytes that are not there.
  /// Requires writable(). @throws error io
  void checkpoint();

  /// Unmaps and unlocks as a killed process does: nothing is written, and the file stays dirty. For a file that has
  /// been replaced.
  void abandon() noexcept;

  /// Writes checksums, count and clean mark, syncs, unlocks and unmaps. Nothing for a read-only mapping but the
  /// unmapping.
  ///
  /// @throws error io
  void close();

 private:
  struct state;
  explicit mapped_storage(state* s) noexcept;

  state* state_ = nullptr;  // owned; not a std::unique_ptr, whose header is twice as long as all of this library's
  std::uint8_t* data_ = nullptr;
  std::uint64_t size_ = 0;
  key_counts counts_;
  std::uint64_t* changed_pages_ = nullptr;
};

/// Refuses a filter whose keys are all in a log, for who would write to the filter alone: a hook for
/// mapped_storage::open. @throws error  incompatible
///
/// Example:
///     refuse_log(complete({.capacity = 1000, .target_fpr = 0.01}), "some.bloom");
void refuse_log(const params& parameters, const std::string& path);

/// Writes a filter's bytes as a file: to a temporary beside it, synced, then renamed, so that `path` is always the old
/// file or the new one. A file that another process is writing is not replaced.
/// It is a copy, which has no log: parameters.log_id is not written.
///
/// @throws error  invalid_argument (a name or metadata too long), not_permitted, locked, io
void save_file(const std::string& path, const params& parameters, std::span<const std::uint8_t> payload,
               const key_counts& counts, const std::string& metadata = {});

/// A filter file as bytes in memory: what save_file() writes.
/// @throws error  invalid_argument: a name or metadata too long, or not bytes_for(parameters.geometry.bits) of payload
std::vector<std::uint8_t> file_bytes(const params& parameters, std::span<const std::uint8_t> payload,
                                     const key_counts& counts, const std::string& metadata = {});

/// A filter read into the heap, every page checked.
struct loaded_file {
  file_info info;
  heap_storage bytes;
};

/// @throws error  as open(); damaged: a page does not match its checksum; too_large: more than the machine's memory
loaded_file load_file(const std::string& path);

/// The same of the bytes of a file, which may come from anywhere: they are checked as a file is, and no more memory is
/// taken than they have bytes. @throws error  not_a_filter, wrong_version, damaged, too_large
loaded_file load_bytes(std::span<const std::uint8_t> file);

}  // namespace bloomery
