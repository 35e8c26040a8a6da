// Page allocation with a chosen page size, for the machine's limits and for peers with an allocator parameter.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <new>

namespace bench {

inline constexpr std::size_t huge_page = std::size_t{2} << 20;

/// Zeroed pages of 2 MiB, if the system supports them, or of 4 KiB.
inline std::uint8_t* take_pages(std::size_t bytes, bool huge) {
  const std::size_t all = bytes + huge_page;  // for alignment to 2 MiB; the excess is never touched
  void* const taken = mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (taken == MAP_FAILED) throw std::bad_alloc();
  madvise(taken, all, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  const auto address = reinterpret_cast<std::uintptr_t>(taken);
  auto* const begin = static_cast<std::uint8_t*>(taken) + (huge_page - address % huge_page) % huge_page;
  return begin;
}

/// A standard allocator of huge pages.
template <class T>
struct huge_allocator {
  using value_type = T;
  huge_allocator() = default;
  template <class U>
  huge_allocator(const huge_allocator<U>&) {}
  T* allocate(std::size_t count) { return reinterpret_cast<T*>(take_pages(count * sizeof(T), true)); }
  void deallocate(T* at, std::size_t count) { munmap(at, count * sizeof(T)); }
  template <class U>
  bool operator==(const huge_allocator<U>&) const {
    return true;
  }
};

}  // namespace bench
