// mapped_storage, and functions that inspect, load and save filter files.
#include <bloomery/mapped_storage.hpp>

#include <bloomery/error.hpp>

#include "file/format.hpp"
#include "file/layers_file.hpp"
#include "file/mapping.hpp"
#include "file/new_filter_file.hpp"
#include "file/open_file.hpp"
#include "file/page_check.hpp"
#include "file/publish.hpp"
#include "file/unfinished.hpp"
#include "platform/posix.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <memory>
#include <utility>

namespace bloomery {
namespace {

using format::damage;
using format::page_bytes;
using format::page_of;

// The bytes of a filter file, on disk or in memory. read_at() returns the number of bytes read.
struct bytes_on_disk {
  int file;
  const std::string& path;

  std::size_t read_at(std::span<std::uint8_t> into, std::uint64_t offset) const {
    return posix::read_at(file, into, offset, path);
  }
};

struct bytes_in_memory {
  std::span<const std::uint8_t> all;

  std::size_t read_at(std::span<std::uint8_t> into, std::uint64_t offset) const {
    if (offset >= all.size()) return 0;
    const auto from = all.subspan(offset, std::min<std::uint64_t>(into.size(), all.size() - offset));
    std::copy(from.begin(), from.end(), into.begin());
    return from.size();
  }
};

template <class Bytes>
format::decoded read_fields(const Bytes& from, std::uint64_t file_bytes, const std::string& path) {
  format::page bytes{};
  const std::size_t got = from.read_at(bytes, 0);
  format::decoded fields = format::decode(std::span(bytes).first(got), file_bytes, path);
  fields.info.metadata.resize(fields.parts.metadata_bytes);
  const std::span metadata(reinterpret_cast<std::uint8_t*>(fields.info.metadata.data()), fields.info.metadata.size());
  const bool whole = from.read_at(metadata, fields.parts.metadata_at) == metadata.size();
  if (!whole || format::checksum(metadata) != fields.metadata_checksum) {
    throw error(errc::damaged, {"the metadata does not match its checksum", path, "", "", hint::restore_file});
  }
  return fields;
}

format::open_file read_header(const std::string& path, posix::opened opened) {
  // Keeps the kernel from reading the pages after the header.
  ::posix_fadvise(opened.file.get(), 0, 0, POSIX_FADV_RANDOM);
  format::decoded fields = read_fields(bytes_on_disk{opened.file.get(), path}, opened.bytes, path);
  return {std::move(fields), std::move(opened.file)};
}

// Reads the checksum table in pieces and calls visit(page number, checksum).
template <class Bytes, class Visit>
void each_checksum(const Bytes& from, const format::extents& parts, const std::string& path, Visit visit) {
  std::array<std::uint64_t, 4096> piece;
  for (std::uint64_t first = 0; first < parts.pages; first += piece.size()) {
    const std::uint64_t count = std::min<std::uint64_t>(piece.size(), parts.pages - first);
    const std::span bytes(reinterpret_cast<std::uint8_t*>(piece.data()), count * format::checksum_bytes);
    if (from.read_at(bytes, parts.checksums_at + first * format::checksum_bytes) != bytes.size()) {
      throw error(errc::damaged, {"the file was truncated while it was read", path, "", "", ""});
    }
    for (std::uint64_t i = 0; i < count; ++i) visit(first + i, piece[i]);
  }
}

// Enables readahead during its lifetime, for a sequential pass over the bytes.
class reading_through {
 public:
  reading_through(int file, const std::uint8_t* payload, std::uint64_t bytes)
      : file_(file), at_(const_cast<std::uint8_t*>(payload)), bytes_(bytes) {
    ::posix_fadvise(file_, 0, 0, POSIX_FADV_SEQUENTIAL);
    ::madvise(at_, bytes_, MADV_SEQUENTIAL);
  }
  reading_through(const reading_through&) = delete;
  reading_through& operator=(const reading_through&) = delete;
  ~reading_through() {
    ::madvise(at_, bytes_, MADV_RANDOM);
    ::posix_fadvise(file_, 0, 0, POSIX_FADV_RANDOM);
  }

 private:
  int file_;
  std::uint8_t* at_;  // aligned to system pages, which may be larger than the file's pages
  std::uint64_t bytes_;
};

damage damaged_pages(const format::open_file& h, const std::uint8_t* payload, const std::string& path) {
  const reading_through ahead(h.file.get(), payload - format::header_bytes,
                              format::header_bytes + bytes_for(h.fields.info.parameters.geometry.bits));
  damage found;
  const bytes_on_disk from{h.file.get(), path};
  each_checksum(from, h.fields.parts, path,
                [&](std::uint64_t page, std::uint64_t stored) { found.compare(page, page_of(payload, page), stored); });
  return found;
}

// Reads the payload of a file with a checked header, and finds damaged pages.
template <class Bytes>
loaded_file load_payload(const Bytes& from, const format::decoded& fields, const std::string& path, damage& found) {
  const format::extents& parts = fields.parts;
  loaded_file loaded{fields.info, heap_storage(parts.payload_bytes)};
  loaded.bytes.counts() = fields.info.counts;
  const std::span payload(loaded.bytes.data(), parts.payload_bytes);
  if (from.read_at(payload, format::header_bytes) != payload.size()) {
    throw error(errc::damaged, {"the file was truncated while it was read", path, "", "", ""});
  }
  if (!fields.info.clean) return loaded;  // the checksums are outdated
  each_checksum(from, parts, path, [&](std::uint64_t page, std::uint64_t stored) {
    const std::uint64_t begin = page * page_bytes;
    if (begin + page_bytes <= payload.size()) {
      found.compare(page, page_of(payload.data(), page), stored);
    } else {
      format::page last{};
      from.read_at(last, format::header_bytes + begin);
      found.compare(page, last, stored);
    }
  });
  return loaded;
}

// The check of a file that is being opened, with file_check::automatic resolved.
file_check resolved(file_check check, const format::open_file& head, bool writable) {
  constexpr std::uint64_t small = std::uint64_t{32} << 20;  // verified in about 5 ms
  if (!head.fields.info.clean) return file_check::header;   // the checksums are outdated
  if (check != file_check::automatic && check != file_check::on_use) return check;
  if (mapping::reads_at_once) return file_check::payload;
  if (writable) return file_check::payload;  // a damaged page that changes would get a valid checksum
  if (check == file_check::on_use) return check;
  return head.fields.parts.payload_bytes <= small ? file_check::payload : file_check::on_use;
}

}  // namespace

struct mapped_storage::impl {
  std::string path;
  format::open_file head;
  mapping map;
  std::vector<std::uint64_t> changed_pages;        // one bit per page; empty for a read-only mapping
  std::unique_ptr<format::page_check> unverified;  // pages that are verified before their first use

  std::uint8_t* payload() const { return map.at + format::header_bytes; }
  bool writable() const { return !changed_pages.empty(); }

  void mark(bool clean, const key_counts& counts) {
    write_mark(clean, counts);
    posix::sync(head.file.get(), path);
  }

  void write_mark(bool clean, const key_counts& counts) {
    format::decoded& f = head.fields;
    f.current_slot = 1 - f.current_slot;
    f.current = {format::next_sequence(f.current.sequence), clean, counts};
    posix::write_at(head.file.get(), format::encode(f.current), format::slot_at[f.current_slot], path);
  }

  void write_checksums() {
    std::vector<std::uint64_t> run;
    const std::uint64_t pages = head.fields.parts.pages;
    for (std::uint64_t page = 0; page <= pages; ++page) {
      const bool changed = page < pages && (changed_pages[page >> 6] >> (page & 63) & 1) != 0;
      if (changed) run.push_back(format::page_checksum(page_of(payload(), page)));
      if (run.empty() || (changed && run.size() < 8192)) continue;
      const std::uint64_t end = changed ? page + 1 : page;
      const std::span bytes(reinterpret_cast<const std::uint8_t*>(run.data()), run.size() * format::checksum_bytes);
      posix::write_at(head.file.get(), bytes,
                      head.fields.parts.checksums_at + (end - run.size()) * format::checksum_bytes, path);
      run.clear();
    }
  }
};

mapped_storage mapped_storage::open(const std::string& path, const open_options& options, const on_header& suits) {
  format::open_file head = format::open(path, options);
  if (suits) suits(head.parameters());
  return map(path, std::move(head), options);
}

mapped_storage mapped_storage::map(const std::string& path, format::open_file head, const open_options& options) {
  const bool writable = options.mode == access::read_write;
  const file_check check = resolved(options.check, head, writable);
  const std::uint64_t length = format::header_bytes + head.fields.parts.pages * page_bytes;
  mapping map(head.file.get(), length, writable, path);
  if (check == file_check::payload) {
    const damage found = damaged_pages(head, map.at + format::header_bytes, path);
    if (found.pages > 0 && !format::changed_since(head, path)) found.throw_if_any(path);
  }
  auto s = std::make_unique<impl>(impl{path, std::move(head), std::move(map), {}, {}});
  if (writable) {
    s->changed_pages.assign(s->head.fields.parts.pages / 64 + 1, 0);
    // The pages changed by a killed writer are unknown.
    if (!s->head.fields.info.clean) std::fill(s->changed_pages.begin(), s->changed_pages.end(), ~std::uint64_t{0});
    s->mark(false, s->head.fields.current.counts);
  }
  if (check == file_check::on_use) {
    s->unverified = std::make_unique<format::page_check>(s->head, s->payload(), path, options.notes);
  }
  return mapped_storage(s.release());
}

mapped_storage mapped_storage::create(const std::string& path, const params& parameters,
                                      const create_options& options) {
  const std::string& metadata = options.metadata;
  const format::page first = format::encode(parameters, {1, false, {}}, metadata);
  const format::extents parts = format::extents_for(parameters.geometry.bits, metadata.size());
  const posix::locking lock = format::locking_of(options.no_lock);
  format::clean_up(posix::behind_links(path), lock);
  posix::replacement file(path, {.replace = options.replace, .lock = lock});
  format::check_no_renames(path);
  // Payload and checksums of an empty filter are zeros: holes, or reserved space.
  if (::ftruncate(file.fd(), static_cast<off_t>(parts.file_bytes)) != 0) posix::fail("allocate space in", path);
  if (options.reserve) {
    const int failure = ::posix_fallocate(file.fd(), 0, static_cast<off_t>(parts.file_bytes));
    if (failure != 0) {
      errno = failure;
      posix::fail("reserve " + std::to_string(parts.file_bytes) + " bytes", path);
    }
  }
  posix::write_at(file.fd(), first, 0, path);
  posix::write_at(file.fd(), {reinterpret_cast<const std::uint8_t*>(metadata.data()), metadata.size()},
                  parts.metadata_at, path);
  format::check_no_renames(path);  // again, because reserving space takes long
  posix::opened opened{file.publish(options.sync), parts.file_bytes};
  format::open_file head = read_header(path, std::move(opened));
  mapping map(head.file.get(), format::header_bytes + parts.pages * page_bytes, true, path);
  auto s = std::make_unique<impl>(impl{path, std::move(head), std::move(map), {}, {}});
  s->changed_pages.assign(parts.pages / 64 + 1, 0);
  s->head.fields.info.clean = true;
  return mapped_storage(s.release());
}

mapped_storage::mapped_storage(impl* s) noexcept
    : impl_(s),
      data_(impl_->payload()),
      size_(impl_->head.fields.parts.payload_bytes),
      counts_(impl_->head.fields.info.counts),
      changed_pages_(impl_->writable() ? impl_->changed_pages.data() : nullptr) {}

mapped_storage::mapped_storage(mapped_storage&& other) noexcept
    : impl_(std::exchange(other.impl_, nullptr)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      counts_(other.counts_),
      changed_pages_(std::exchange(other.changed_pages_, nullptr)) {}

mapped_storage& mapped_storage::operator=(mapped_storage&& other) noexcept {
  std::swap(impl_, other.impl_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(counts_, other.counts_);
  std::swap(changed_pages_, other.changed_pages_);
  return *this;
}

mapped_storage::~mapped_storage() {
  try {
    close();
  } catch (...) {
    // The file stays marked dirty, so the next process to open it detects this.
  }
}

const file_info& mapped_storage::info() const noexcept { return impl_->head.fields.info; }

format::page_check* mapped_storage::unverified() const noexcept { return impl_->unverified.get(); }

bool mapped_storage::has_changed() const noexcept {
  try {
    return format::changed_since(impl_->head, impl_->path);
  } catch (const std::exception&) {
    return true;  // the header is damaged now
  }
}

void mapped_storage::verify() const {
  if (impl_->unverified) impl_->unverified->verify_all();
}

void mapped_storage::changed_all() noexcept {
  std::fill(impl_->changed_pages.begin(), impl_->changed_pages.end(), ~std::uint64_t{0});
}

void mapped_storage::checkpoint() {
  impl_->write_mark(false, counts_);
  if (::msync(impl_->map.at, impl_->map.bytes, MS_SYNC) != 0) posix::fail("sync", impl_->path);
}

void mapped_storage::abandon() noexcept {
  delete std::exchange(impl_, nullptr);
  data_ = nullptr;
  changed_pages_ = nullptr;
}

void mapped_storage::close() {
  if (impl_ == nullptr) return;
  const std::unique_ptr<impl> s(std::exchange(impl_, nullptr));
  data_ = nullptr;
  changed_pages_ = nullptr;
  if (!s->writable()) return;
  s->write_checksums();
  if (::msync(s->map.at, s->map.bytes, MS_SYNC) != 0) posix::fail("sync", s->path);
  posix::sync(s->head.file.get(), s->path);
  s->mark(true, counts_);
}

inspection inspect(const std::string& path, file_check check) noexcept {
  inspection result;
  try {
    if (format::is_layers_file(path)) return format::inspect_layers(path, check);
    const format::open_file head = read_header(path, posix::open_regular(path, false));
    result.info = head.fields.info;
    result.usable = true;
    if (result.info.slot_damaged) result.problems.emplace_back("one of the two state slots is unreadable");
    if (!result.info.clean) {
      result.problems.emplace_back("not closed cleanly: the count of keys is out of date and pages cannot be checked");
    } else if (check == file_check::payload) {
      const mapping map(head.file.get(), format::header_bytes + head.fields.parts.pages * page_bytes, false, path);
      const damage found = damaged_pages(head, map.at + format::header_bytes, path);
      if (found.pages > 0 && !format::changed_since(head, path)) result.problems.push_back(found.in_words());
    }
  } catch (const std::exception& e) {
    result.usable = false;
    try {
      result.problems.emplace_back(e.what());
    } catch (...) {
      // Not enough memory even for the message.
    }
  }
  return result;
}

namespace {

// Calls write(bytes) for the parts of a filter file, in order.
template <class Write>
void write_file(const params& parameters, std::span<const std::uint8_t> payload, const key_counts& counts,
                const std::string& metadata, Write write) {
  const format::page first = format::encode(parameters, {1, true, counts}, metadata);
  const format::extents parts = format::extents_for(parameters.geometry.bits, metadata.size());
  if (payload.size() != parts.payload_bytes) {
    throw error(errc::invalid_argument,
                {"wrong number of bytes", "payload", std::to_string(parts.payload_bytes) + " bytes",
                 std::to_string(payload.size()), ""});
  }
  write(std::span<const std::uint8_t>(first));
  write(payload.first(parts.payload_bytes));
  const std::uint64_t whole = parts.payload_bytes / page_bytes;
  std::vector<std::uint64_t> checksums;
  checksums.reserve(parts.pages);
  for (std::uint64_t number = 0; number < whole; ++number) {
    checksums.push_back(format::page_checksum(page_of(payload.data(), number)));
  }
  if (whole < parts.pages) {
    format::page last{};
    const auto rest = payload.subspan(whole * page_bytes, parts.payload_bytes - whole * page_bytes);
    std::copy(rest.begin(), rest.end(), last.begin());
    write(std::span<const std::uint8_t>(last).subspan(rest.size()));
    checksums.push_back(format::page_checksum(last));
  }
  write(std::span(reinterpret_cast<const std::uint8_t*>(checksums.data()), checksums.size() * format::checksum_bytes));
  write(std::span(reinterpret_cast<const std::uint8_t*>(metadata.data()), metadata.size()));
}

}  // namespace

void refuse_log(const params& parameters, const std::string& path) {
  if (parameters.log_id() == 0) return;
  throw error(errc::incompatible,
              {"the filter has a log, which would lack new keys", path, "", "", hint::open_with_log});
}

namespace format {

void write(int fd, const std::string& path, const params& parameters, std::span<const std::uint8_t> payload,
           const key_counts& counts, const std::string& metadata) {
  write_file(parameters, payload, counts, metadata,
             [&](std::span<const std::uint8_t> bytes) { posix::write_all(fd, bytes, path); });
}

}  // namespace format

namespace {

// A copy has no key log.
key_counts without_log(key_counts counts) {
  counts.logged = counts.log_generation = 0;
  return counts;
}

}  // namespace

void save_file(const std::string& path, const params& parameters, std::span<const std::uint8_t> payload,
               const key_counts& counts, const create_options& options) {
  format::new_filter_file file(path, options);
  format::write(file.fd(), path, parameters.without_log(), payload, without_log(counts), options.metadata);
  file.publish();
}

void save_file(const std::string& path, const params& parameters, std::span<const std::uint8_t> payload,
               const key_counts& counts, const std::string& metadata) {
  save_file(path, parameters, payload, counts, create_options{.metadata = metadata});
}

bool has_locks(const std::string& path) { return posix::has_locks(path); }

file_version version_of(const std::string& path) {
  file_version version;
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return version;
  const posix::opened opened = posix::open_regular(path, false);
  if (::fstat(opened.file.get(), &status) != 0) posix::fail("read the state of", path);
  version = {status.st_dev, status.st_ino, opened.bytes, 0};
  format::page header{};  // its state slots change whenever a filter is opened or closed for writing
  const std::size_t got = posix::read_at(opened.file.get(), header, 0, path);
  version.header = format::checksum(std::span(header).first(got));
  return version;
}

std::vector<std::uint8_t> file_bytes(const params& parameters, std::span<const std::uint8_t> payload,
                                     const key_counts& counts, const std::string& metadata) {
  const format::extents parts = format::extents_for(parameters.geometry.bits, metadata.size());
  std::vector<std::uint8_t> file;
  try {
    file.reserve(parts.file_bytes);
  } catch (const std::exception&) {
    throw error(errc::too_large, {"not enough memory for the bytes of the file", "", "",
                                  std::to_string(parts.file_bytes) + " bytes", "save it to a file"});
  }
  write_file(parameters.without_log(), payload, without_log(counts), metadata,
             [&](std::span<const std::uint8_t> bytes) { file.insert(file.end(), bytes.begin(), bytes.end()); });
  return file;
}

namespace format {

open_file open(const std::string& path, const open_options& options) {
  if (options.mode == access::read_only) return read_header(path, posix::open_regular(path, false));
  const posix::locking lock = locking_of(options.no_lock);
  const std::string real = posix::behind_links(path);
  for (;;) {
    clean_up(real, lock);
    posix::opened opened = posix::open_locked(path, options.waiting, lock);
    // A process that was killed while this one waited may have left another filter for this name.
    if (!needs_renames(real)) return read_header(path, std::move(opened));
    opened.file = {};
    wait_for_renames(path, options.waiting);
  }
}

loaded_file load(const open_file& file, const std::string& path) {
  ::posix_fadvise(file.file.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  damage found;
  loaded_file loaded = load_payload(bytes_on_disk{file.file.get(), path}, file.fields, path, found);
  if (found.pages > 0) {
    if (!changed_since(file, path)) found.throw_if_any(path);
    loaded.info.clean = false;
  }
  return loaded;
}

}  // namespace format

loaded_file load_file(const std::string& path) { return format::load(format::open(path, {}), path); }

loaded_file load_bytes(std::span<const std::uint8_t> file) {
  const std::string path = "the bytes";  // the location in errors
  const bytes_in_memory from{file};
  damage found;
  loaded_file loaded = load_payload(from, read_fields(from, file.size(), path), path, found);
  found.throw_if_any(path);
  return loaded;
}

}  // namespace bloomery
