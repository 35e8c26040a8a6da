// Memory between two inaccessible pages, for tests of code that must stay within its bounds.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>

namespace bloomery_tests {

/// The fence that is adjacent to the array; the other fence may be up to a page away.
enum class fence { before, behind };

/// `count` zeroed words or bytes. An access beyond the adjacent fence ends the process.
template <class T>
class fenced {
 public:
  explicit fenced(std::size_t count, fence side = fence::behind) : count_(count) {
    const auto page_bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const std::size_t inner = (std::max<std::size_t>(count, 1) * sizeof(T) + page_bytes - 1) / page_bytes * page_bytes;
    taken_ = inner + 2 * page_bytes;
    begin_ = ::mmap(nullptr, taken_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (begin_ == MAP_FAILED) throw std::runtime_error("cannot map memory for the test");
    auto* const first = static_cast<std::uint8_t*>(begin_) + page_bytes;
    if (::mprotect(first, inner, PROT_READ | PROT_WRITE) != 0) throw std::runtime_error("cannot open the fence");
    data_ = reinterpret_cast<T*>(side == fence::before ? first : first + inner - count * sizeof(T));
  }
  fenced(const fenced&) = delete;
  fenced& operator=(const fenced&) = delete;
  ~fenced() { ::munmap(begin_, taken_); }

  T* data() const { return data_; }
  std::size_t size() const { return count_; }
  std::span<T> all() const { return {data_, count_}; }
  T& operator[](std::size_t i) const { return data_[i]; }

 private:
  std::size_t count_;
  std::size_t taken_;
  void* begin_;
  T* data_;
};

}  // namespace bloomery_tests
