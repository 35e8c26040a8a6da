// Zeroed memory, in huge pages if it is large enough and the system supports them.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <new>
#include <utility>

namespace bloomery::cli {

/// For large tables that are read at random places: a page fault per 4 KiB and misses of the page tables would take
/// longer than the work itself.
class page_memory {
 public:
  page_memory() = default;

  /// @throws std::bad_alloc
  explicit page_memory(std::size_t bytes) : bytes_(bytes) {
    if (bytes < huge_page) {
      start_ = static_cast<char*>(std::calloc(bytes, 1));
      if (start_ == nullptr) throw std::bad_alloc();
      return;
    }
    void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
    start_ = static_cast<char*>(at);
    ::madvise(at, bytes, MADV_HUGEPAGE);  // small pages if refused
  }

  page_memory(page_memory&& other) noexcept
      : start_(std::exchange(other.start_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

  page_memory& operator=(page_memory&& other) noexcept {
    std::swap(start_, other.start_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  ~page_memory() {
    if (bytes_ < huge_page)
      std::free(start_);
    else
      ::munmap(start_, bytes_);
  }

  char* data() const noexcept { return start_; }
  std::size_t size() const noexcept { return bytes_; }

 private:
  static constexpr std::size_t huge_page = std::size_t{2} << 20;

  char* start_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace bloomery::cli
