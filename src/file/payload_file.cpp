#include "file/payload_file.hpp"

#include "file/format.hpp"
#include "platform/posix.hpp"

#include <algorithm>
#include <vector>

namespace bloomery::format {
namespace {

constexpr std::uint64_t pages_of_piece = 256;  // 1 MiB

// Bytes after the end of the file are zero: it may end before the last page of the payload does.
void read_padded(int fd, std::span<std::uint8_t> to, std::uint64_t offset, const std::string& path) {
  const std::size_t got = posix::read_at(fd, to, offset, path);
  std::fill(to.begin() + static_cast<std::ptrdiff_t>(got), to.end(), std::uint8_t{0});
}

}  // namespace

payload_file::payload_file(const std::string& path, const create_options& options)
    : path_(path), options_(options), file_(path, options) {}

void payload_file::write(std::span<const std::uint8_t> bytes, std::uint64_t offset) {
  posix::write_at(file_.fd(), bytes, header_bytes + offset, path_);
}

void payload_file::publish(const params& parameters, const key_counts& counts) {
  complete(parameters, counts);
  file_.publish();
}

void payload_file::complete(const params& parameters, const key_counts& counts) {
  const page first = encode(parameters, {1, true, counts}, options_.metadata);
  const extents parts = extents_for(parameters.geometry.bits, options_.metadata.size());
  std::vector<std::uint8_t> piece(std::min(parts.pages, pages_of_piece) * page_bytes);
  std::vector<std::uint64_t> checksums;
  checksums.reserve(parts.pages);
  for (std::uint64_t begin = 0; begin < parts.pages; begin += pages_of_piece) {
    const std::uint64_t pages = std::min(parts.pages - begin, pages_of_piece);
    read_padded(file_.fd(), std::span(piece).first(pages * page_bytes), header_bytes + begin * page_bytes, path_);
    for (std::uint64_t i = 0; i < pages; ++i) {
      checksums.push_back(page_checksum(std::span(piece).subspan(i * page_bytes).first<page_bytes>()));
    }
  }
  posix::write_at(file_.fd(),
                  {reinterpret_cast<const std::uint8_t*>(checksums.data()), checksums.size() * checksum_bytes},
                  parts.checksums_at, path_);
  posix::write_at(file_.fd(),
                  {reinterpret_cast<const std::uint8_t*>(options_.metadata.data()), options_.metadata.size()},
                  parts.metadata_at, path_);
  posix::write_at(file_.fd(), first, 0, path_);
}

}  // namespace bloomery::format
