// Verification of a file's pages against the checksum table: all at once, or each page before its first use.
#pragma once

#include <bloomery/detail/function_ref.hpp>
#include <bloomery/mapped_storage.hpp>

#include "file/format.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>

namespace bloomery::format {

struct open_file;

inline std::span<const std::uint8_t, page_bytes> page_of(const std::uint8_t* payload, std::uint64_t number) {
  return std::span<const std::uint8_t, page_bytes>(payload + number * page_bytes, page_bytes);
}

/// Pages that do not match their checksums: their number, and the first of them.
struct damage {
  std::uint64_t pages = 0;
  std::uint64_t first = 0;
  std::uint64_t stored = 0;  ///< checksum of the first in the table
  std::uint64_t found = 0;   ///< checksum of its bytes

  /// Compares a page with its checksum.
  void compare(std::uint64_t number, std::span<const std::uint8_t, page_bytes> bytes, std::uint64_t checksum);
  /// "page 17 (bytes 73728 to 77823) does not match its checksum".
  std::string in_words() const;
  /// @throws error  damaged, if there is any damaged page
  void throw_if_any(const std::string& path) const;
};

/// Whether a writer has changed the file since its header was read: then pages and checksums are from different times
/// and do not prove damage.
bool changed_since(const open_file& file, const std::string& path);

/// Verification of a clean file that is mapped for reading: each page is verified before its first use. Several threads
/// may call all functions at the same time; a page that two threads use first at the same time is verified twice.
///
/// A lookup verifies the pages of its key. After one lookup per four pages, all other pages are verified in one pass,
/// which reads the file sequentially and is shared by the threads that look up keys. Later lookups have no additional
/// cost.
class page_check {
 public:
  /// @param payload  the mapped pages; they and `file` outlive this
  /// @param notes    called at most once, if another process starts to write, so that pages can no longer be verified
  page_check(const open_file& file, const std::uint8_t* payload, std::string path,
             callback<void(const std::string&)> notes);
  page_check(const page_check&) = delete;
  page_check& operator=(const page_check&) = delete;
  ~page_check();

  /// Whether no page remains to be verified, also because that is no longer possible.
  bool is_done() const noexcept { return left_.load(std::memory_order_acquire) == 0; }

  /// Called before `keys` keys are looked up. Returns whether the caller must verify their pages.
  /// @throws error damaged
  bool wants_pages_of(std::uint64_t keys);

  /// Verifies the pages of these bytes of the payload. @throws error damaged
  void verify(std::uint64_t first_byte, std::uint64_t count);

  /// Verifies all pages. @param go_on  called occasionally with the fraction done; false stops early
  /// @throws error damaged
  void verify_all(const function_ref<bool(double share)>& go_on = {});

 private:
  void verify_page(std::uint64_t number);
  void give_up();

  const open_file& file_;
  const std::uint8_t* payload_;
  std::string path_;
  callback<void(const std::string&)> notes_;
  std::once_flag noted_;
  void* table_at_ = nullptr;  // the whole file, mapped for its table
  const std::uint64_t* table_ = nullptr;
  std::uint64_t pages_;
  std::unique_ptr<std::atomic<std::uint64_t>[]> verified_;  // a bit per page
  std::atomic<std::uint64_t> left_;
  std::atomic<std::uint64_t> looked_up_{0};
  std::atomic<std::uint64_t> next_{0};  // the first page that no thread has claimed in verify_all()
};

}  // namespace bloomery::format
