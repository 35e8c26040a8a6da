// mapped_bits: a storage for reading, whose bytes are a part of a mapped file of another system.
#pragma once

#include <bloomery/detail/storage.hpp>

#include "file/mapping.hpp"

#include <cstdint>
#include <string>

namespace bloomery::formats {

class mapped_bits {
 public:
  static constexpr bool tracks_changes = false;

  /// @throws error  io
  mapped_bits(int file, std::uint64_t first, std::uint64_t bytes, const std::string& path)
      : mapping_(file, first + bytes, false, path), first_(first), bytes_(bytes) {}

  std::uint8_t* data() noexcept { return mapping_.at + first_; }  // never written: see any_filter::impl::is_read_only
  const std::uint8_t* data() const noexcept { return mapping_.at + first_; }
  std::uint64_t size() const noexcept { return bytes_; }
  key_counts& counts() noexcept { return counts_; }
  const key_counts& counts() const noexcept { return counts_; }
  void changed(std::uint64_t) noexcept {}

 private:
  mapping mapping_;
  std::uint64_t first_;
  std::uint64_t bytes_;
  key_counts counts_;
};

}  // namespace bloomery::formats
