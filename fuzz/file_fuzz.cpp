// Fuzz target for inspect, open and load: arbitrary bytes are rejected or give a filter that works, without undefined
// behavior.
//
// Random bytes never pass the header's checksum, so half of the mutations also correct the checksums of the header, the
// slots, the metadata and the pages.
#include <bloomery/any_filter.hpp>
#include <bloomery/error.hpp>
#include <bloomery/filter.hpp>
#include <bloomery/mapped_storage.hpp>

#include "file/format.hpp"

#include "memory_file.hpp"
#include "mutation.hpp"
#include "require.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace bloomery;
using bloomery_fuzz::get;
using bloomery_fuzz::memory_file;
using bloomery_fuzz::mutate_field;
using bloomery_fuzz::put;
using bloomery_fuzz::works;

// Offsets from docs/format.md.
constexpr std::size_t page_bytes = format::page_bytes;
constexpr std::size_t at_bits = 128;
constexpr std::size_t at_metadata_bytes = 160;
constexpr std::size_t at_metadata_checksum = 168;
constexpr std::size_t at_file_bytes = 176;
constexpr std::size_t at_checksum = 504;

void ask(const any_filter& filter) {
  constexpr std::array<std::string_view, 3> texts = {"", "key-1", "a longer key, of more than sixteen bytes"};
  constexpr std::array<std::uint64_t, 3> numbers = {0, 42, ~std::uint64_t{0}};
  std::uint64_t answers = 0;
  if (filter.parameters().keys == key_kind::bytes)
    filter.may_contain(std::span(texts), std::span(&answers, 1));
  else
    filter.may_contain(std::span(numbers), std::span(&answers, 1));
  require(answers < 8, "unused bits of the bitmap are 0");
  require(filter.fill_ratio() >= 0 && filter.fill_ratio() <= 1, "the fill ratio is between 0 and 1");
  require(filter.approximate_size() >= 0, "the estimated number of keys is not negative");
  require(filter.byte_size() == bytes_for(filter.bit_size()), "the number of bytes matches the number of bits");
}

void add(any_filter& filter) {
  if (filter.parameters().keys == key_kind::bytes) {
    filter.insert("key-1");
    require(filter.may_contain("key-1"), "an inserted key is found");
  } else {
    filter.insert(std::uint64_t{42});
    require(filter.may_contain(std::uint64_t{42}), "an inserted key is found");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const memory_file file({data, size});
  const inspection seen = inspect(file.path(), file_check::payload);
  require(seen.usable || !seen.problems.empty(), "an unusable file has a problem");

  // Keyed inputs derive from the golden files, which have this key.
  const secret_key golden{0x0706050403020100, 0x0F0E0D0C0B0A0908};
  std::optional<secret_key> secret;
  if (seen.info.parameters.key_check != 0) secret = golden;
  const auto open = [&](bloomery::access mode, file_check what) {
    return any_filter::open(file.path(), {.mode = mode, .check = what, .secret = secret});
  };

  bool opens = works([&] { ask(open(access::read_only, file_check::header)); });
  const bool is_whole = works([&] { ask(open(access::read_only, file_check::payload)); });
  const bool loads = works([&] { ask(any_filter::load(file.path(), {.secret = secret})); });
  works([&] { filter<std::string_view, layouts::classic>::load(file.path()); });
  works([&] { filter<std::uint64_t, layouts::split_block, mix, mapped_storage>::open(file.path()); });
  require(!opens || seen.usable, "a file that opens is usable");
  require(!is_whole || opens, "a file that opens with a check opens without it");
  require(is_whole == loads, "load and open agree on the payload");
  const bool sealed = family_of(seen.info.parameters) == family::static_set;
  const bool has_slots = family_of(seen.info.parameters) == family::quotient;
  if (loads && !sealed) {
    any_filter filter = any_filter::load(file.path(), {.secret = secret});
    if (has_slots)
      works([&] { add(filter); });  // it may be full
    else
      add(filter);
  }

  // Static filters accept no keys; a filter with a key log accepts keys only together with the log, and a quotient
  // filter only in memory.
  const bool takes_keys = !sealed && !has_slots && seen.info.parameters.log_id() == 0;
  const bool adds = works([&] {
    any_filter filter = open(access::read_write, file_check::header);
    add(filter);
    filter.close();
  });
  require(adds == (opens && takes_keys),
          "a file that opens for reading opens for writing, unless it is static, has slots or has a log");
  if (adds) {
    const inspection after = inspect(file.path(), file_check::payload);
    require(after.usable && after.info.clean && !after.info.slot_damaged, "a writer leaves a clean file");
    if (is_whole) require(after.problems.empty(), "a writer keeps the checksums of an undamaged file correct");
  }
  return 0;
}

// Corrects the checksums of the file or of parts of it, as far as its length allows.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  bloomery_fuzz::choices random(seed);
  if (size >= page_bytes && random.often(50)) {
    // Mutates a header field: plain mutation rarely hits the 180 bytes of the header.
    const std::size_t at = 4 * random.below(47);
    mutate_field(data + at);
  } else {
    size = LLVMFuzzerMutate(data, size, max_size);
  }
  if (size < page_bytes || random.often(10)) return size;

  std::memcpy(data,
              "\x89"
              "BLMR\r\n\x1A\1\0\0\0\0\x10\0\0",
              16);
  if (random.often(50)) put(data + at_bits, get<std::uint64_t>(data + at_bits) % (std::uint64_t{8} * max_size));
  if (random.often(50)) put(data + at_metadata_bytes, get<std::uint64_t>(data + at_metadata_bytes) % 64);
  for (const std::size_t slot : format::slot_at) {
    if (random.often(90)) put(data + slot + 56, format::checksum({data + slot, 56}));
  }
  const std::uint64_t metadata_bytes = get<std::uint64_t>(data + at_metadata_bytes);
  const format::extents parts = format::extents_for(get<std::uint64_t>(data + at_bits), metadata_bytes);
  put(data + at_file_bytes, parts.file_bytes);
  if (metadata_bytes <= max_size && parts.file_bytes <= max_size && random.often(90)) {
    if (size < parts.file_bytes) std::fill(data + size, data + parts.file_bytes, std::uint8_t{0});
    size = parts.file_bytes;
    put(data + at_metadata_checksum, format::checksum({data + parts.metadata_at, metadata_bytes}));
    for (std::uint64_t number = 0; number < parts.pages && random.often(98); ++number) {
      const std::span<const std::uint8_t, page_bytes> content(data + page_bytes * (number + 1), page_bytes);
      put(data + parts.checksums_at + 8 * number, format::page_checksum(content));
    }
  }
  put(data + at_checksum, format::checksum({data, at_checksum}));
  return size;
}
