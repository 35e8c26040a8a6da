// Verification of pages against their checksums.
#include "file/page_check.hpp"

#include <bloomery/error.hpp>

#include "file/open_file.hpp"
#include "platform/posix.hpp"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace bloomery::format {
namespace {

constexpr std::uint64_t pages_per_lookup = 4;  // fewer lookups than pages / 4 verify their own pages only
constexpr std::uint64_t run = 256;             // pages that a thread claims: 1 MiB

std::string hexadecimal(std::uint64_t number) {
  char text[20];
  std::snprintf(text, sizeof text, "0x%016llx", static_cast<unsigned long long>(number));
  return text;
}

}  // namespace

void damage::compare(std::uint64_t number, std::span<const std::uint8_t, page_bytes> bytes, std::uint64_t checksum) {
  const std::uint64_t now = page_checksum(bytes);
  if (now == checksum) [[likely]]
    return;
  if (pages++ > 0) return;
  first = number;
  stored = checksum;
  found = now;
}

std::string damage::in_words() const {
  const std::uint64_t begin = header_bytes + first * page_bytes;
  const std::string which = "page " + std::to_string(first) + " (bytes " + std::to_string(begin) + " to " +
                            std::to_string(begin + page_bytes - 1) + ")";
  if (pages <= 1) return which + " does not match its checksum";
  return which + " and " + std::to_string(pages - 1) + (pages == 2 ? " other page" : " other pages") +
         " do not match their checksums";
}

void damage::throw_if_any(const std::string& path) const {
  if (pages == 0) return;
  throw error(errc::damaged, {in_words(), path, hexadecimal(stored), hexadecimal(found), hint::restore_file});
}

bool changed_since(const open_file& file, const std::string& path) {
  page bytes{};
  const std::size_t got = posix::read_at(file.file.get(), bytes, 0, path);
  const decoded now = decode(std::span(bytes).first(got), file.fields.info.file_bytes, path);
  return now.current.sequence != file.fields.current.sequence;
}

page_check::page_check(const open_file& file, const std::uint8_t* payload, std::string path,
                       callback<void(const std::string&)> notes)
    : file_(file),
      payload_(payload),
      path_(std::move(path)),
      notes_(std::move(notes)),
      pages_(file.fields.parts.pages),
      verified_(std::make_unique<std::atomic<std::uint64_t>[]>(pages_ / 64 + 1)),
      left_(pages_) {
  table_at_ = ::mmap(nullptr, file.fields.parts.file_bytes, PROT_READ, MAP_SHARED, file.file.get(), 0);
  if (table_at_ == MAP_FAILED) posix::fail("map", path_);
  const auto* const bytes = static_cast<const std::uint8_t*>(table_at_);
  table_ = reinterpret_cast<const std::uint64_t*>(bytes + file.fields.parts.checksums_at);
}

page_check::~page_check() { ::munmap(table_at_, file_.fields.parts.file_bytes); }

bool page_check::wants_pages_of(std::uint64_t keys) {
  if (is_done()) return false;
  if (looked_up_.fetch_add(keys, std::memory_order_relaxed) + keys < pages_ / pages_per_lookup) return true;
  verify_all();
  return false;
}

void page_check::verify(std::uint64_t first_byte, std::uint64_t count) {
  const std::uint64_t last = (first_byte + count - 1) / page_bytes;
  for (std::uint64_t number = first_byte / page_bytes; number <= last; ++number) verify_page(number);
}

void page_check::verify_page(std::uint64_t number) {
  const std::uint64_t bit = std::uint64_t{1} << (number & 63);
  std::atomic<std::uint64_t>& word = verified_[number >> 6];
  if ((word.load(std::memory_order_relaxed) & bit) != 0) return;
  damage seen;
  seen.compare(number, page_of(payload_, number), table_[number]);
  if (seen.pages > 0) {
    if (!changed_since(file_, path_)) seen.throw_if_any(path_);
    return give_up();
  }
  if ((word.fetch_or(bit, std::memory_order_relaxed) & bit) == 0) {
    // Never below 0, in case give_up() was called in between.
    std::uint64_t left = left_.load(std::memory_order_relaxed);
    while (left > 0 && !left_.compare_exchange_weak(left, left - 1, std::memory_order_acq_rel)) {
    }
  }
}

void page_check::verify_all(const function_ref<bool(double share)>& go_on) {
  if (is_done()) return;
  auto* const mapped = const_cast<std::uint8_t*>(payload_) - header_bytes;
  const std::uint64_t bytes = header_bytes + pages_ * page_bytes;
  ::posix_fadvise(file_.file.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  ::madvise(mapped, bytes, MADV_SEQUENTIAL);
  bool goes_on = true;
  for (std::uint64_t first; goes_on && !is_done() && (first = next_.fetch_add(run)) < pages_;) {
    const std::uint64_t end = std::min(first + run, pages_);
    for (std::uint64_t number = first; number < end; ++number) verify_page(number);
    goes_on = !go_on || go_on(static_cast<double>(end) / static_cast<double>(pages_));
  }
  // Pages that other threads have claimed but not verified yet, or will not verify because of an error.
  for (std::uint64_t number = 0; goes_on && number < pages_ && !is_done(); ++number) verify_page(number);
  ::madvise(mapped, bytes, MADV_RANDOM);
  ::posix_fadvise(file_.file.get(), 0, 0, POSIX_FADV_RANDOM);
}

void page_check::give_up() {
  left_.store(0, std::memory_order_release);
  if (notes_) {
    std::call_once(noted_, [&] {
      notes_(path_ + ": warning: another process has started to write the file; its pages are no longer verified");
    });
  }
}

}  // namespace bloomery::format
