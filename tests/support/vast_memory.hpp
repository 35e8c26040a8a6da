// Address space for tests of filters that are larger than the memory.
#pragma once

#include <sys/mman.h>

#include <cstdint>

namespace bloomery_tests {

/// Zeroed bytes that take memory only where they are written.
class vast_memory {
 public:
  explicit vast_memory(std::uint64_t size)
      : size_(size),
        begin_(::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    if (granted()) ::madvise(begin_, size_, MADV_NOHUGEPAGE);
  }
  vast_memory(const vast_memory&) = delete;
  vast_memory& operator=(const vast_memory&) = delete;
  ~vast_memory() {
    if (granted()) ::munmap(begin_, size_);
  }

  bool granted() const { return begin_ != MAP_FAILED; }
  std::uint8_t* data() const { return static_cast<std::uint8_t*>(begin_); }

 private:
  std::uint64_t size_;
  void* begin_;
};

}  // namespace bloomery_tests
