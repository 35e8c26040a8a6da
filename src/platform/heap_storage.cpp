// heap_storage: zeroed memory, in huge pages if it is large.
#include <bloomery/detail/storage.hpp>
#include "platform/memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <new>
#include <utility>

namespace bloomery {
namespace {

constexpr std::uint64_t huge_page = std::uint64_t{2} << 20;
#if defined(__EMSCRIPTEN__)
constexpr std::uint64_t mapped_from = ~std::uint64_t{0};  // its mmap cannot unmap a part
#else
constexpr std::uint64_t mapped_from = std::uint64_t{256} << 10;
#endif
constexpr std::align_val_t cache_line{64};

constexpr const char* what = "a filter in memory";

// Small allocations come from the C++ heap, where sanitizers check them. Larger ones are anonymous pages, which are
// zeroed on first access; zeroing takes about a millisecond per MiB.
std::uint8_t* take(std::uint64_t bytes) {
  check_memory_capacity(what, bytes);
  if (bytes < mapped_from) {
    void* at = ::operator new(bytes, cache_line, std::nothrow);
    if (at == nullptr) refuse_memory(what, bytes);
    std::memset(at, 0, bytes);
    return static_cast<std::uint8_t*>(at);
  }
  // Huge pages start at multiples of 2 MiB: map 2 MiB more than needed and unmap the ends.
  void* taken = mmap(nullptr, bytes + huge_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (taken == MAP_FAILED) refuse_memory(what, bytes + huge_page);
  auto* begin = static_cast<std::uint8_t*>(taken);
  const std::uint64_t skip = (huge_page - reinterpret_cast<std::uintptr_t>(begin) % huge_page) % huge_page;
  if (skip > 0) munmap(begin, skip);
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const std::uint64_t kept = (bytes + page - 1) / page * page;
  if (skip < huge_page) munmap(begin + skip + kept, huge_page - skip);
  if (bytes >= huge_page) madvise(begin + skip, bytes, MADV_HUGEPAGE);
  return begin + skip;
}

}  // namespace

heap_storage::heap_storage(std::uint64_t bytes) : data_(take(bytes)), size_(bytes) {}

heap_storage::heap_storage(const heap_storage& other) : heap_storage(other.size_) {
  std::memcpy(data_, other.data_, size_);
  counts_ = other.counts_;
}

heap_storage::heap_storage(heap_storage&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      counts_(std::exchange(other.counts_, {})) {}

heap_storage& heap_storage::operator=(heap_storage other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(counts_, other.counts_);
  return *this;
}

heap_storage::~heap_storage() {
  if (data_ == nullptr) return;
  if (size_ < mapped_from)
    ::operator delete(data_, cache_line);
  else
    munmap(data_, size_);
}

}  // namespace bloomery
