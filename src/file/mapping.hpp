// The bytes of a file from its start, as memory.
#pragma once

#include "platform/posix.hpp"

#if defined(__EMSCRIPTEN__)
#include <bloomery/detail/storage.hpp>
#include <bloomery/error.hpp>
#endif

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace bloomery {

#if defined(__EMSCRIPTEN__)

/// WebAssembly has no pages that are read when they are used, so this is a copy of the file, for reading only.
struct mapping {
  static constexpr bool reads_at_once = true;

  heap_storage copy;
  std::uint8_t* at;
  std::uint64_t bytes;

  mapping(int fd, std::uint64_t length, bool writable, const std::string& path)
      : copy(length), at(copy.data()), bytes(length) {
    if (writable) {
      errno = ENOTSUP;
      posix::fail("map for writing", path);
    }
    // In pieces, because each one is also an object of JavaScript.
    constexpr std::uint64_t piece = std::uint64_t{4} << 20;
    for (std::uint64_t done = 0; done < length; done += piece) {
      const auto size = static_cast<std::size_t>(std::min(piece, length - done));
      if (posix::read_at(fd, {at + done, size}, done, path) == size) continue;
      throw error(errc::damaged, {"the file was truncated while it was read", path, "", "", ""});
    }
  }
};

#else

/// An owned memory mapping, shared with other processes. @throws error io
struct mapping {
  static constexpr bool reads_at_once = false;  ///< instead of when bytes are used

  std::uint8_t* at = nullptr;
  std::uint64_t bytes = 0;

  mapping(int fd, std::uint64_t length, bool writable, const std::string& path) : bytes(length) {
    void* mapped = ::mmap(nullptr, length, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED) posix::fail("map", path);
    at = static_cast<std::uint8_t*>(mapped);
    ::madvise(at, bytes, MADV_RANDOM);  // keys are at random positions, so readahead is useless
  }
  mapping(mapping&& other) noexcept : at(std::exchange(other.at, nullptr)), bytes(other.bytes) {}
  mapping& operator=(mapping&&) = delete;
  ~mapping() {
    if (at != nullptr) ::munmap(at, bytes);
  }
};

#endif

}  // namespace bloomery
