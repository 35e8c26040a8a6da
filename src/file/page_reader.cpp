// Reading of a filter file in slices and in pages.
#include "file/page_reader.hpp"

#include <bloomery/error.hpp>

#include "platform/posix.hpp"

#include <algorithm>
#include <utility>

namespace bloomery::format {

page_reader::page_reader(open_file file, std::string path, bool compares, std::uint64_t slice_bytes)
    : file_(std::move(file)), path_(std::move(path)), compares_(compares && info().clean), slice_bytes_(slice_bytes) {}

void page_reader::read(std::span<std::uint8_t> into, std::uint64_t offset) const {
  if (posix::read_at(file_.file.get(), into, offset, path_) == into.size()) return;
  throw error(errc::damaged, {"the file was truncated while it was read", path_, "", "", ""});
}

std::uint64_t page_reader::checksum_of(std::uint64_t page_number) {
  constexpr std::uint64_t run = 4096;
  const std::uint64_t first = page_number / run * run;
  if (table_.empty() || table_first_ != first) {
    table_.clear();
    std::vector<std::uint64_t> some(std::min(run, file_.fields.parts.pages - first));
    read({reinterpret_cast<std::uint8_t*>(some.data()), some.size() * checksum_bytes},
         file_.fields.parts.checksums_at + first * checksum_bytes);
    table_ = std::move(some);
    table_first_ = first;
  }
  return table_[page_number - first];
}

damage page_reader::each_slice(
    const function_ref<void(std::uint64_t first, std::span<const std::uint8_t> bytes)>& work) {
  const extents& parts = file_.fields.parts;
  const std::uint64_t padded = parts.pages * page_bytes;
  heap_storage slice(std::min(slice_bytes_, padded));
  damage found;
  for (std::uint64_t first = 0; first < padded; first += slice_bytes_) {
    const std::uint64_t size = std::min(slice_bytes_, padded - first);
    read({slice.data(), size}, header_bytes + first);
    for (std::uint64_t at = 0; info().clean && at < size; at += page_bytes) {
      const std::uint64_t number = (first + at) / page_bytes;
      found.compare(number, page_of(slice.data(), at / page_bytes), checksum_of(number));
    }
    work(first, {slice.data(), std::min(size, parts.payload_bytes - first)});
  }
  if (found.pages > 0 && changed_since(file_, path_)) return {};
  return found;
}

std::span<const std::uint8_t> page_reader::page(std::uint64_t number) {
  if (number_ == number) return page_;
  number_.reset();
  read(page_, header_bytes + number * page_bytes);
  if (compares_) {
    damage found;
    found.compare(number, page_, checksum_of(number));
    if (found.pages > 0 && !changed_since(file_, path_)) found.throw_if_any(path_);
  }
  number_ = number;
  return page_;
}

}  // namespace bloomery::format
