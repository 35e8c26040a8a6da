// parquet_patch: replaces a Bloom filter of a Parquet file by one of bloomery's, for tests with other readers.
//
//   parquet_patch FILE COLUMN ROW_GROUP insert < keys    clear the filter, insert the lines, write it in place
//   parquet_patch FILE COLUMN ROW_GROUP lookup < keys    print 1 for each line that may be present, otherwise 0
#include <bloomery/error.hpp>
#include <bloomery/layouts/split_block.hpp>

#include "formats/parquet_footer.hpp"
#include "formats/parquet_value.hpp"
#include "platform/posix.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace bloomery;
using namespace bloomery::formats;

void patch(const std::string& path, std::string_view column, std::uint64_t row_group, bool inserts) {
  const posix::opened file = posix::open_regular(path, inserts);
  const byte_source source = source_of(file, path);
  const parquet_footer footer = read_parquet_footer(source);
  for (const parquet_chunk& chunk : footer.chunks) {
    if (chunk.column != column || chunk.row_group != row_group) continue;
    const parquet_bitset place = read_filter_header(source, footer, chunk);
    std::vector<std::uint8_t> bits(place.bytes);
    if (!inserts) source.read_all(place.offset, bits);
    for (std::string key; std::getline(std::cin, key);) {
      std::array<std::uint8_t, plain_number_bytes> buffer{};
      const auto value = plain_value(chunk, key, buffer);
      layouts::split_block::cells cells({8 * place.bytes, 8}, {XXH64(value.data(), value.size(), 0), 0});
      bool is_present = true;
      for (std::uint32_t probe = 0; probe < layouts::split_block::cells::count(); ++probe) {
        const std::uint64_t cell = cells.next();
        is_present = is_present && (bits[cell / 8] >> (cell % 8) & 1) != 0;
        if (inserts) bits[cell / 8] = static_cast<std::uint8_t>(bits[cell / 8] | 1 << (cell % 8));
      }
      if (!inserts) std::putchar(is_present ? '1' : '0');
    }
    if (inserts) posix::write_at(file.file.get(), bits, place.offset, path);
    return;
  }
  throw error(errc::not_found, {"no such column in this row group", path, "", std::string(column), ""});
}

}  // namespace

int main(int count, char** words) {
  const std::string_view verb = count == 5 ? words[4] : "";
  if (verb != "insert" && verb != "lookup") {
    std::fputs("parquet_patch FILE COLUMN ROW_GROUP insert|lookup < keys\n", stderr);
    return 2;
  }
  try {
    patch(words[1], words[2], std::stoull(words[3]), verb == "insert");
  } catch (const std::exception& e) {
    std::fprintf(stderr, "parquet_patch: %s\n", e.what());
    return 1;
  }
}
