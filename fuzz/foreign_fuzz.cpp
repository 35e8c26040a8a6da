// Fuzz target for the readers of filter files of other systems: arbitrary bytes are rejected or give a filter that
// answers from the bits of the file, without undefined behavior, and whose header is written as it was read.
#include <bloomery/any_filter.hpp>
#include <bloomery/error.hpp>
#include <bloomery/filter_handle.hpp>
#include <bloomery/formats.hpp>
#include <bloomery/scheme.hpp>

#include "formats/format_row.hpp"

#include "memory_file.hpp"
#include "mutation.hpp"
#include "require.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace bloomery;
using bloomery_fuzz::memory_file;
using bloomery_fuzz::mutate_field;
using bloomery_fuzz::put;
using bloomery_fuzz::works;

constexpr std::array<std::string_view, 4> keys = {"", "key-1", "Madrid", "a longer key, of more than sixteen bytes"};

// Whether bit `cell` is set in the file, from the description of the format alone.
bool is_set(std::span<const std::uint8_t> file, const formats::format_row& row, std::uint64_t bits_at,
            std::uint64_t cell) {
  const std::uint64_t byte = cell % 64 / 8;
  const std::uint64_t at = row.order == formats::byte_order::big_endian ? 7 - byte : byte;
  return (file[bits_at + cell / 64 * 8 + at] >> (cell % 8) & 1) != 0;
}

void compare(const any_filter& filter, std::span<const std::uint8_t> file, const formats::format_row& row) {
  const params& p = filter.parameters();
  require(formats::has_scheme(row.schemes, p.scheme), "the format has filters of this scheme");
  const bool has_words = row.write_empty == nullptr || file.size() > row.write_empty(p).size();
  require(!has_words || filter.byte_size() <= file.size(), "no more memory than the file is long");
  require(filter.byte_size() == bytes_for(p.geometry.bits), "the number of bytes matches the number of bits");
  require(!filter.is_writable(), "the filter is for reading");
  require(filter.fill_ratio() >= 0 && filter.fill_ratio() <= 1, "the fill ratio is between 0 and 1");
  require(filter.approximate_size() >= 0, "the estimated number of keys is not negative");

  const std::vector<std::uint8_t> head = row.write(p, filter.counts());
  // bits_and_blooms has two lengths, of which the second may count the unused bits of the last word. dcso states a
  // number of keys, which is not kept if it is larger than the number of bits. datasketches states a number of set
  // bits, which is not kept, and an empty filter differs in its first word.
  std::size_t compared = head.size();
  if (row.name == "bits_and_blooms") compared = 16;
  if (row.name == "dcso" && bloomery_fuzz::get<std::uint64_t>(file.data() + 40) > p.geometry.bits) compared = 40;
  if (row.name == "datasketches") compared = 24;
  const std::ptrdiff_t from = has_words ? 0 : 4;
  require(std::equal(head.begin() + from, head.begin() + static_cast<std::ptrdiff_t>(compared), file.begin() + from),
          "the header is written as it was read");
  if (row.write_end != nullptr) {
    const std::vector<std::uint8_t> end = row.write_end(p, filter.counts(), 0);
    require(std::equal(end.rbegin(), end.rend(), file.rbegin()), "the end is written as it was read");
  }

  std::array<std::uint64_t, max_probes> cells;
  for (const std::string_view key : keys) {
    find_scheme(p.scheme)->positions(key, p.geometry, {p.seed, p.salts()}, cells.data());
    const bool expected =
        has_words && std::all_of(cells.begin(), cells.begin() + p.geometry.probes,
                                 [&](std::uint64_t cell) { return is_set(file, row, head.size(), cell); });
    require(filter.may_contain(key) == expected, "a key is found if its bits are set in the file");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // An empty filter of datasketches may have 2^26 words, all clear, which take long to count.
  if (size == 24 && bloomery_fuzz::get<std::uint32_t>(data + 16) > 1 << 20) return 0;
  const memory_file file({data, size});
  const file_format* recognized = nullptr;
  works([&] { recognized = recognize_format(file.path()); });
  std::size_t readers = 0;
  for (const formats::format_row& row : formats::format_rows()) {
    const bool reads = works([&] {
      const any_filter filter = import_filter(file.path(), row.name);
      if (row.read_layers == nullptr) compare(filter, {data, size}, row);  // otherwise see redisbloom_fuzz.cpp
    });
    if (!row.is_recognized) {
      require(recognized == nullptr || recognized->name != row.name, "this format is not recognized");
      continue;
    }
    readers += reads ? 1 : 0;
    if (reads) require(recognized != nullptr, "a file with a reader is recognized");
    if (!reads && row.read_layers == nullptr)
      require(recognized == nullptr || recognized->name != row.name, "a recognized format has a reader");
  }
  require(readers <= 1, "no file is of two formats");
  require(readers == 0 || works([&] { open_filter(file.path()); }), "a file with a reader opens through a handle");
  return 0;
}

// Half of the inputs get the header of a format with a length that fits, since random bytes have none.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  bloomery_fuzz::choices random(seed);
  size = LLVMFuzzerMutate(data, size, max_size);
  if (size >= 64 && random.often(30)) mutate_field(data + random.below(56));
  const auto rows = formats::format_rows();
  if (!random.often(50)) return size;
  const formats::format_row& row = rows[random.below(rows.size())];
  if (row.read_layers != nullptr) return size;
  params p;
  for (const scheme& candidate : schemes()) {
    if (formats::has_scheme(row.schemes, candidate.name) && (p.scheme.empty() || random.often(50)))
      p.scheme = candidate.name;
  }
  std::uint64_t words = 1 + random.below(max_size / 16 + 1);
  if (row.name == "rocksdb") words = 8 * (words / 8 | 1);  // an odd number of lines
  p.geometry = {64 * words, static_cast<std::uint32_t>(1 + random.below(20))};
  p.capacity = 1 + random.below(1000);
  p.target_fpr = 0.01;
  p.seed = random.below(1000);
  const bool is_empty = row.write_empty != nullptr && random.often(20);
  const key_counts counts{.inserted = random.below(1000)};
  const std::vector<std::uint8_t> head = is_empty ? row.write_empty(p) : row.write(p, counts);
  const std::vector<std::uint8_t> end =
      row.write_end == nullptr ? std::vector<std::uint8_t>() : row.write_end(p, counts, 0);
  const std::size_t whole = head.size() + (is_empty ? 0 : 8 * words) + end.size();
  if (whole > max_size) return size;
  if (size < whole) std::fill(data + size, data + whole, random.often(50) ? std::uint8_t{0} : std::uint8_t{0xFF});
  std::copy(head.begin(), head.end(), data);
  std::copy(end.begin(), end.end(), data + whole - end.size());
  return whole + (row.has_metadata && random.often(50) ? std::min<std::size_t>(random.below(20), max_size - whole) : 0);
}
