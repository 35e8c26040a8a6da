// Filter files: opening and creating them, the contents of the header, and mapped_storage, which reads and writes a
// filter's bytes in place. docs/format.md has the format.
//
// While mapped for writing, the file is marked dirty and locked against other writers. close() (or the destructor)
// writes the checksums of the changed pages, the key count, and the clean mark, in this order. If the process is killed
// before, the file stays dirty. It can still be opened, with all bits that were set; filter<> and any_filter estimate
// its count from the bits when they open it for writing.
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/detail/function_ref.hpp>
#include <bloomery/detail/storage.hpp>
#include <bloomery/params.hpp>
#include <bloomery/secret.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace bloomery::format {
struct open_file;  // not exported
class page_check;
}  // namespace bloomery::format

namespace BLOOMERY_EXPORT bloomery {

enum class access : std::uint8_t { read_only, read_write };

/// When the pages of a clean file are compared with their checksums. Header, state and metadata are always checked. A
/// file that another process writes, or that was not closed cleanly, has no valid checksums, so its pages are never
/// compared.
enum class file_check : std::uint8_t {
  header,     ///< never: damaged pages give wrong answers
  payload,    ///< all pages at open, at about 6 GB/s if the file is cached
  on_use,     ///< each page before its first use by any_filter or a filter_handle, which then throws errc::damaged;
              ///< templates on mapped_storage, such as filter<>, check only on verify(). For writing: as payload
  automatic,  ///< payload for up to 32 MiB and for writing, on_use for larger files
};

/// A clock that returns milliseconds since 1970. An empty one stands for the system's clock.
using window_clock = callback<std::uint64_t()>;

/// How a filter is opened, for all classes of filters and open_filter(). Each function ignores the options that do not
/// apply to it: a filter that is read into memory has no mode, and the secret of a filter<> is in its hash.
///
/// Example:
///     const secret_key key = random_secret();
///     any_filter keyed(complete({.capacity = 1000, .target_fpr = 0.01, .secret = key}));
///     keyed.save("keyed.bloom");
///     any_filter file = any_filter::open("keyed.bloom", {.mode = access::read_write, .secret = key});
///     assert(file.insert("Madrid"));
struct open_options {
  access mode = access::read_only;
  file_check check = file_check::automatic;              ///< file_check::payload: also compares every record of a log
  callback<void(const std::string& path)> waiting = {};  ///< read_write: called many times a second while another
                                                         ///< process writes, may throw to give up; empty:
                                                         ///< errc::locked
  std::optional<secret_key> secret = {};                 ///< of a keyed filter; an error for all other filters
  window_clock clock = {};                               ///< of a sliding-window filter; empty: the system's
  callback<void(const std::string&)> notes = {};         ///< called with what was repaired, also later
  bool facts_only = false;  ///< read_only: without the secret of a keyed filter, or with an unknown hash; refuses keys
  bool to_remove = false;   ///< refuse a filter whose keys cannot be removed, before it is changed
  bool no_lock = false;     ///< as in create_options
};

/// The version of a file: two versions are equal unless the file was replaced, or opened for writing, in between.
struct file_version {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;  ///< 0: there is no regular file
  std::uint64_t bytes = 0;
  std::uint64_t header = 0;  ///< checksum of the first 4096 bytes, which change when a filter is opened for writing
                             ///< and when it is closed, but not while it is open or if its writer is killed

  friend bool operator==(const file_version&, const file_version&) = default;
};

/// The present version of a file. @throws error  not_permitted, io: it cannot be read
///
/// Example:
///     const any_filter cities(complete({.capacity = 1000, .target_fpr = 0.01}));
///     cities.save("cities.bloom");
///     const file_version before = version_of("cities.bloom");
///     any_filter::open("cities.bloom", {.mode = access::read_write}).insert("Madrid");
///     assert(version_of("cities.bloom") != before);  // so save() with `.expected = before` would throw `locked`
file_version version_of(const std::string& path);

/// How a filter file is created.
struct create_options {
  std::string metadata = {};  ///< the user's own bytes, which open() reports
  bool reserve = true;        ///< allocate all disk space at once; false: sparse, and a full disk causes SIGBUS
  bool replace = true;        ///< replace an existing file; false: throw already_exists
  /// Functions that write a whole file throw `locked`, and keep the present file, if it is no longer of this version:
  /// another process has changed it since it was read.
  std::optional<file_version> expected = {};
  bool sync = true;      ///< wait until the data is on disk; false: only checkpoint() and close() do
  bool no_lock = false;  ///< continue without a lock on a file system that has none, instead of throwing errc::io. The
                         ///< caller must ensure that no other process writes the filter. If the file system has locks,
                         ///< they are used.
};

/// Whether files in the directory of `path` can be locked, which writing a filter there requires. Also true if this
/// cannot be tested, because no file can be created in the directory.
bool has_locks(const std::string& path);

/// The contents of a file's header.
struct file_info {
  params parameters;
  key_counts counts;          ///< as of the last clean close
  bool clean = true;          ///< false: a writer has it open, or ended without closing it
  bool slot_damaged = false;  ///< one of the two state slots is unreadable; the other one is used
  std::string metadata;       ///< the user's own bytes
  std::uint64_t file_bytes = 0;
  std::string format = {};  ///< a name in file_formats(), for a file of another system; empty: a file of bloomery
};

/// The result of inspect().
struct inspection {
  bool usable = false;                ///< open() would succeed
  file_info info;                     ///< meaningful if usable
  std::vector<std::string> problems;  ///< as text; also for a usable file: dirty, damaged pages
};

/// Examines an untrusted file. Never throws; the result lists the problems. (If another process truncates the file
/// while its pages are read, SIGBUS ends this process, as with every mapped file.) With file_check::payload every page
/// is read; pages of a dirty file have no valid checksums and are not checked.
inspection inspect(const std::string& path, file_check check = file_check::header) noexcept;

class mapped_storage {
 public:
  static constexpr bool tracks_changes = true;

  /// Called with the parameters in the header, before the file is changed or marked dirty. Throw to refuse the file.
  using on_header = function_ref<void(const params& parameters)>;

  /// Maps an existing filter. Of the options it uses `mode`, `check`, `waiting` and `notes`. With file_check::header, a
  /// damaged page gets a valid checksum on close if a key was inserted into it.
  ///
  /// @throws error  not_found, not_permitted, not_a_filter, wrong_version, damaged, locked, io
  static mapped_storage open(const std::string& path, const open_options& options = {}, const on_header& suits = {});

  /// Creates an empty filter file and maps it for writing. The name appears only when the file is complete.
  ///
  /// @throws error  invalid_argument, not_permitted, locked, already_exists, io (disk full)
  static mapped_storage create(const std::string& path, const params& parameters, const create_options& options = {});

  mapped_storage(mapped_storage&&) noexcept;
  mapped_storage& operator=(mapped_storage&&) noexcept;

  /// Closes the file and ignores errors. Call close() to get them as exceptions.
  ~mapped_storage();

  /// The contents of the header as of opening.
  const file_info& info() const noexcept;

  std::uint8_t* data() noexcept { return data_; }
  const std::uint8_t* data() const noexcept { return data_; }
  std::uint64_t size() const noexcept { return size_; }
  key_counts& counts() noexcept { return counts_; }
  const key_counts& counts() const noexcept { return counts_; }

  bool writable() const noexcept { return changed_pages_ != nullptr; }

  /// Marks the page of this byte as changed: it needs a new checksum.
  void changed(std::uint64_t byte) noexcept {
    const std::uint64_t page = byte >> 12;
    changed_pages_[page >> 6] |= std::uint64_t{1} << (page & 63);
  }

  /// Marks all pages as changed.
  void changed_all() noexcept;

  /// Compares the pages that file_check::on_use has not compared yet. @throws error  damaged
  ///
  /// Example:
  ///     any_filter(complete({.capacity = 1000, .target_fpr = 0.01})).save("whole.bloom");
  ///     mapped_storage::open("whole.bloom", {.check = file_check::on_use}).verify();
  void verify() const;

  /// Writes the counts and syncs everything; the file stays marked dirty. Call it before a file replaces another one:
  /// otherwise a power failure could leave counts whose bytes are missing.
  /// Requires writable(). @throws error io
  void checkpoint();

  /// Unmaps and unlocks without writing anything; the file stays dirty. For a file that has been replaced.
  void abandon() noexcept;

  /// Writes checksums, counts and the clean mark, syncs, unlocks and unmaps. A read-only mapping is only unmapped.
  ///
  /// @throws error io
  void close();

  /// Whether another process has opened the file for writing since it was opened here.
  bool has_changed() const noexcept;

 private:
  friend class any_filter;  // maps a file that is already open
  struct impl;
  explicit mapped_storage(impl* s) noexcept;
  [[gnu::visibility("hidden")]] static mapped_storage map(const std::string& path, format::open_file file,
                                                          const open_options& options);
  [[gnu::visibility("hidden")]] format::page_check* unverified() const noexcept;  // null: nothing is left to verify

  impl* impl_ = nullptr;  // owned; not a std::unique_ptr, whose header is twice as long as all of this library's
  std::uint8_t* data_ = nullptr;
  std::uint64_t size_ = 0;
  key_counts counts_;
  std::uint64_t* changed_pages_ = nullptr;
};

/// Refuses a filter that has a key log. A hook for mapped_storage::open, for callers that write to the filter but not
/// to its log.
/// @throws error  incompatible
///
/// Example:
///     refuse_log(complete({.capacity = 1000, .target_fpr = 0.01}), "some.bloom");
void refuse_log(const params& parameters, const std::string& path);

/// Writes a filter as a file: to a temporary file in the same directory, which is synced and then renamed, so that
/// `path` is always either the old file or the new one. A file that another process is writing is not replaced.
/// The file is a copy without a key log: its number is not written. A replaced filter's own log is removed.
///
/// @param options  uses `metadata`, `replace`, `expected` and `no_lock`
/// @throws error  invalid_argument (a name or metadata too long), not_permitted, locked, io; already_exists
void save_file(const std::string& path, const params& parameters, std::span<const std::uint8_t> payload,
               const key_counts& counts, const create_options& options);
void save_file(const std::string& path, const params& parameters, std::span<const std::uint8_t> payload,
               const key_counts& counts, const std::string& metadata = {});

/// The bytes that save_file() writes.
/// @throws error  invalid_argument: a name or metadata too long, or not bytes_for(parameters.geometry.bits) of payload
std::vector<std::uint8_t> file_bytes(const params& parameters, std::span<const std::uint8_t> payload,
                                     const key_counts& counts, const std::string& metadata = {});

/// A filter file read into the heap, with every page checked.
struct loaded_file {
  file_info info;
  heap_storage bytes;
};

/// @throws error  as open(); damaged: a page does not match its checksum; too_large: more than the machine's memory
loaded_file load_file(const std::string& path);

/// Like load_file(), for the bytes of a file from an untrusted source. They are checked like a file, and no more memory
/// is allocated than their size. @throws error  not_a_filter, wrong_version, damaged, too_large
loaded_file load_bytes(std::span<const std::uint8_t> file);

}  // namespace bloomery
