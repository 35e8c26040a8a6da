// Fuzz target for key_log: arbitrary bytes are rejected or give the same keys for every way of reading, without
// undefined behavior.
//
// Random bytes never pass a checksum, so most mutations also correct some checksums.
#include <bloomery/detail/key_log.hpp>
#include <bloomery/error.hpp>

#define XXH_INLINE_ALL
#include "memory_file.hpp"
#include "mutation.hpp"
#include "require.hpp"

#include <xxhash.h>

#include <algorithm>
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
using bloomery_fuzz::put;
using bloomery_fuzz::works;

// Offsets from docs/format.md.
constexpr std::size_t header_bytes = key_log::header_bytes;
constexpr std::size_t record_header_bytes = key_log::record_header_bytes;
constexpr std::size_t at_id = 16;
constexpr std::size_t at_checksum = 248;

std::vector<std::uint64_t> keys_of(const key_log& log, log_reading& seen, std::uint64_t to = key_log::all) {
  std::vector<std::uint64_t> keys;
  seen = log.read(
      0, [&](std::span<const std::uint64_t> hash64s) { keys.insert(keys.end(), hash64s.begin(), hash64s.end()); }, to);
  return keys;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const memory_file file({data, size});
  const std::string& path = file.path();
  works([&] {
    log_reading seen;
    std::vector<std::uint64_t> keys;
    {
      const key_log log = key_log::open(path);
      keys = keys_of(log, seen);
      require(log.bytes() + log.torn_bytes() == size, "every byte is valid or torn");
      require(seen.keys == keys.size() && 8 * keys.size() <= size, "no more keys than the bytes can hold");
      require(!seen.whole() || keys.size() == log.keys(), "an undamaged log has the number of keys in its records");
      require(seen.whole() || seen.first_damage >= header_bytes, "damage is after the header");
      require(log.estimate_distinct() <= keys.size(), "no more distinct keys than keys");
    }
    if (keys.size() > 1 && seen.keys + seen.lost_keys > (std::uint64_t{1} << 62)) {
      return;  // its count is at the maximum
    }
    key_log log = key_log::open(path, {.mode = access::read_write});
    const std::vector<std::uint64_t> more = {1, 2, 3};
    if (log.keys() < key_log::all - more.size()) {
      log.append(more);
      log_reading after;
      std::vector<std::uint64_t> now = keys_of(log, after);
      // Not guaranteed for damaged logs: with knowledge of the log's number, an attacker can leave a partial record
      // that these keys complete.
      require(!seen.whole() ||
                  (now.size() == keys.size() + more.size() && std::equal(keys.begin(), keys.end(), now.begin())),
              "keys stay after more are appended");
      require((!seen.whole() || after.whole()) && after.torn_bytes == 0, "a writer leaves no torn record");
    }
  });
  return 0;
}

// Corrects the checksums of the header and of consecutive records.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  bloomery_fuzz::choices random(seed);
  size = LLVMFuzzerMutate(data, size, max_size);
  if (size < header_bytes || random.often(10)) return size;
  std::memcpy(data,
              "\x89"
              "BLML\r\n\x1A\1\0\0\0\0\1\0\0",
              16);
  if (get<std::uint64_t>(data + at_id) == 0) put<std::uint64_t>(data + at_id, 7);
  if (random.often(90)) {
    constexpr std::string_view hash = "xxh3";
    constexpr std::string_view layout = "split_block512";
    std::fill(data + 24, data + at_checksum, std::uint8_t{0});
    put<std::uint64_t>(data + 24, 1);
    std::copy(hash.begin(), hash.end(), data + 32);
    std::copy(layout.begin(), layout.end(), data + 64);
  }
  put<std::uint64_t>(data + at_checksum, XXH3_64bits(data, at_checksum));
  const auto id = get<std::uint64_t>(data + at_id);
  std::uint64_t before = 0;
  for (std::size_t at = header_bytes; at + record_header_bytes + 8 <= size;) {
    if (random.often(5)) {
      at += 8;
      continue;
    }
    const std::size_t room = (size - at - record_header_bytes) / 8;
    const auto count = static_cast<std::uint32_t>(1 + random.below(std::min<std::size_t>(room, 9)));
    put<std::uint32_t>(data + at, 0x52474F4C);
    put<std::uint32_t>(data + at + 4, count);
    if (random.often(95)) put<std::uint64_t>(data + at + 8, before);
    put<std::uint64_t>(data + at + 16, id);
    const std::size_t length = record_header_bytes + 8 * std::size_t{count};
    const std::uint64_t sum = XXH3_64bits(data + at, length);
    put<std::uint64_t>(data + at + 16, random.often(95) ? sum : sum + 1);
    before += count + (random.often(5) ? 3 : 0);
    at += length;
  }
  return size;
}
