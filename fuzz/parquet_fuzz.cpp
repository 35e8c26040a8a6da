// Fuzz target for Parquet files: arbitrary bytes are rejected, or give filters within the file, the same ones every
// time, and in memory that is proportional to the footer.
//
// Random mutations rarely keep the length of the footer, so most mutations change the footer alone and correct it.
#include <bloomery/error.hpp>

#include "formats/parquet_footer.hpp"
#include "formats/parquet_value.hpp"
#include "memory_file.hpp"
#include "mutation.hpp"
#include "platform/posix.hpp"
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
using namespace bloomery::formats;
using bloomery_fuzz::get;
using bloomery_fuzz::put;
using bloomery_fuzz::works;

constexpr std::size_t tail_bytes = 8;  // the length of the footer, and PAR1

// All that a reader learns from a file.
struct listing {
  parquet_footer footer;
  std::vector<std::string> bits;  // of each chunk: the place of its bitset, or the error
};

bool is_same(const parquet_chunk& a, const parquet_chunk& b) {
  return a.row_group == b.row_group && a.column_number == b.column_number && a.column == b.column && a.type == b.type &&
         a.value_bytes == b.value_bytes && a.annotation == b.annotation && a.is_unsigned == b.is_unsigned &&
         a.rows == b.rows && a.values == b.values && a.is_encrypted == b.is_encrypted &&
         a.in_another_file == b.in_another_file && a.filter.has_value() == b.filter.has_value() &&
         (!a.filter || (a.filter->offset == b.filter->offset && a.filter->length == b.filter->length));
}

listing list(const byte_source& source) {
  listing seen;
  seen.footer = read_parquet_footer(source);
  for (const parquet_chunk& chunk : seen.footer.chunks) {
    try {
      const parquet_bitset bits = read_filter_header(source, seen.footer, chunk);
      require(chunk.filter && bits.offset > chunk.filter->offset, "a bitset follows the header of a filter");
      require(bits.bytes >= 32 && bits.bytes % 32 == 0, "a bitset has whole blocks");
      require(bits.bytes <= seen.footer.offset && bits.offset <= seen.footer.offset - bits.bytes,
              "a bitset ends before the footer");
      require(!chunk.filter->length || bits.offset + bits.bytes == chunk.filter->offset + *chunk.filter->length,
              "a bitset ends where the footer states");
      seen.bits.push_back(std::to_string(bits.offset) + " " + std::to_string(bits.bytes));
    } catch (const error& e) {
      seen.bits.emplace_back(e.what());
    }
  }
  return seen;
}

void check(const listing& seen, std::uint64_t size) {
  const parquet_footer& footer = seen.footer;
  require(footer.offset >= 4 && footer.offset < size - tail_bytes, "the footer is within the file");
  require(footer.chunks.size() == footer.row_groups * footer.columns, "each row group has all columns");
  const std::uint64_t length = size - tail_bytes - footer.offset;
  std::uint64_t memory = footer.chunks.capacity() * sizeof(parquet_chunk) + footer.created_by.capacity();
  for (std::size_t i = 0; i < footer.chunks.size(); ++i) {
    const parquet_chunk& chunk = footer.chunks[i];
    memory += chunk.column.size();
    require(chunk.row_group == i / footer.columns && chunk.column_number == i % footer.columns, "chunks are in order");
    require(static_cast<unsigned>(chunk.type) < 8, "a type is known");
    if (!chunk.filter) continue;
    require(chunk.filter->offset >= 4 && chunk.filter->offset < footer.offset, "a filter is before the footer");
    require(!chunk.filter->length || *chunk.filter->length <= footer.offset - chunk.filter->offset,
            "a filter ends before the footer");
  }
  require(memory <= 30 * length, "memory is proportional to the footer");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::uint64_t read = 0;
  const byte_source source{"fuzz", size, [&](std::uint64_t offset, std::span<std::uint8_t> into) {
                             require(offset <= size && into.size() <= size - offset, "reads are within the file");
                             std::copy_n(data + offset, into.size(), into.begin());
                             read += into.size();
                             return into.size();
                           }};
  std::optional<listing> seen;
  if (!works([&] { seen = list(source); })) return 0;
  check(*seen, size);
  require(read <= size + 4 + 1024 * seen->footer.chunks.size(), "only the footer and the headers are read");

  const bloomery_fuzz::memory_file file({data, size});
  const posix::opened opened = posix::open_regular(file.path(), false);
  const listing again = list(source_of(opened, "fuzz"));
  require(std::equal(seen->footer.chunks.begin(), seen->footer.chunks.end(), again.footer.chunks.begin(),
                     again.footer.chunks.end(), is_same),
          "a file has the same columns every time");
  require(seen->bits == again.bits, "a file has the same filters every time");

  const std::string_view text(reinterpret_cast<const char*>(data) + 4, std::min<std::size_t>(size - 4, data[4] % 32));
  for (const parquet_chunk& chunk : seen->footer.chunks) {
    for (const std::string_view key : {text, std::string_view("1"), std::string_view("-0")}) {
      works([&] {
        std::array<std::uint8_t, plain_number_bytes> buffer{};
        const std::size_t length = plain_value(chunk, key, buffer).size();
        require(length == key.size() || length <= plain_number_bytes, "a number has at most 8 bytes");
        flip_zero(chunk, buffer);
      });
    }
  }
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  bloomery_fuzz::choices random(seed);
  constexpr std::size_t least = 4 + tail_bytes;
  const std::size_t length = size >= least ? get<std::uint32_t>(data + size - tail_bytes) : 0;
  if (size < least || length > size - least || random.often(10)) {
    size = LLVMFuzzerMutate(data, size, max_size);
  } else {
    const std::size_t at = size - tail_bytes - length;
    std::vector<std::uint8_t> footer(max_size - at - tail_bytes);
    std::copy_n(data + at, length, footer.begin());
    std::size_t mutated = length;
    if (at > 4 && random.often(20)) {
      LLVMFuzzerMutate(data + 4, at - 4, at - 4);  // headers and bitsets
    } else {
      mutated = LLVMFuzzerMutate(footer.data(), length, footer.size());
    }
    std::copy_n(footer.begin(), mutated, data + at);
    put(data + at + mutated, static_cast<std::uint32_t>(mutated));
    size = at + mutated + tail_bytes;
  }
  if (size < least || random.often(5)) return size;
  std::copy(parquet_magic.begin(), parquet_magic.end(), data);
  std::copy(parquet_magic.begin(), parquet_magic.end(), data + size - parquet_magic.size());
  return size;
}
