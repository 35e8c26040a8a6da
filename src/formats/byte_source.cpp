#include "formats/byte_source.hpp"

#include <bloomery/error.hpp>

namespace bloomery::formats {

void byte_source::read_all(std::uint64_t offset, std::span<std::uint8_t> into) const {
  const std::size_t got = read(offset, into);
  if (got == into.size()) return;
  throw error(errc::damaged,
              {"the file was truncated while it was read", path, std::to_string(offset + into.size()) + " bytes",
               std::to_string(offset + got), hint::restore_file});
}

byte_source source_of(const posix::opened& file, const std::string& path) {
  return {path, file.bytes, [fd = file.file.get(), path](std::uint64_t offset, std::span<std::uint8_t> into) {
            return posix::read_at(fd, into, offset, path);
          }};
}

}  // namespace bloomery::formats
