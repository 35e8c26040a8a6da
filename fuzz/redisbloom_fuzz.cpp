// Fuzz target for the readers of filters of RedisBloom and valkey-bloom: arbitrary bytes are rejected or give a filter
// that answers from the bits of the file and survives being written; a changed byte of an accepted dump is noticed.
#include <bloomery/any_filter.hpp>
#include <bloomery/error.hpp>
#include <bloomery/filter_handle.hpp>
#include <bloomery/formats.hpp>
#include <bloomery/scheme.hpp>

#include "formats/format_row.hpp"
#include "formats/rdb.hpp"

#include "memory_file.hpp"
#include "mutation.hpp"
#include "require.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace bloomery;
using bloomery_fuzz::get;
using bloomery_fuzz::memory_file;
using bloomery_fuzz::works;

constexpr std::array<std::string_view, 4> keys = {"", "key-1", "Madrid", "a longer key, of more than sixteen bytes"};
constexpr std::size_t chain_bytes = 20;
constexpr std::size_t layer_bytes = 53;

// From the description of the format alone.
bool chunks_contain(std::span<const std::uint8_t> file, std::string_view key) {
  const std::size_t layers = get<std::uint32_t>(file.data() + 8);
  std::size_t at = chain_bytes + layer_bytes * layers;
  bool found = false;
  for (std::size_t i = 0; i < layers; ++i) {
    const std::uint8_t* row = file.data() + chain_bytes + layer_bytes * i;
    const geometry g{get<std::uint64_t>(row + 8), get<std::uint32_t>(row + 40)};
    std::array<std::uint64_t, max_probes> cells;
    find_scheme("redisbloom")->positions(key, g, {}, cells.data());
    bool all = true;
    for (std::size_t j = 0; j < g.probes; ++j) all = all && (file[at + cells[j] / 8] >> cells[j] % 8 & 1) != 0;
    found = found || all;
    at += get<std::uint64_t>(row);
  }
  require(at == file.size(), "the layers end the file");
  return found;
}

std::vector<std::uint8_t> written(const any_filter& filter, const formats::format_row& row) {
  std::vector<std::uint8_t> bytes = row.write(filter.parameters(), filter.counts());
  const auto words = filter.bytes();
  bytes.insert(bytes.end(), words.begin(), words.end());
  if (row.write_end == nullptr) return bytes;
  const std::vector<std::uint8_t> end = row.write_end(filter.parameters(), filter.counts(), rdb::crc64(0, bytes));
  bytes.insert(bytes.end(), end.begin(), end.end());
  return bytes;
}

void check_opened(filter_handle& handle, const memory_file& file, std::span<const std::uint8_t> bytes) {
  const filter_facts facts = handle.info(info_depth::bits);
  require(facts.bytes <= rdb::most_expansion * bytes.size(), "memory is limited by the length of the file");
  require(facts.fill->current_fpr >= 0 && facts.fill->current_fpr <= 1, "the FPR is between 0 and 1");
  const bool is_dump = facts.file->format != "redisbloom_chunks";
  for (const std::string_view key : keys) {
    const bool found = handle.contains(key);
    if (!is_dump) require(found == chunks_contain(bytes, key), "a key is found if its bits are set in the file");
    require(handle.explain(std::span(&key, 1)).maybe_present == found, "an explanation agrees with the lookup");
  }
  if (facts.layers.empty()) {
    const any_filter filter = import_filter(file.path());
    for (const std::string_view name : {"redisbloom", "redisbloom_chunks", "valkey_bloom"}) {
      const formats::format_row& row = *formats::find_format(name);
      if (row.schemes != filter.parameters().scheme) continue;
      const std::vector<std::uint8_t> again = written(filter, row);
      const memory_file other(again);
      require(import_filter(other.path(), name) == filter, "a written filter is read with the same bits");
    }
  }
  if (!is_dump) return;
  std::vector<std::uint8_t> changed(bytes.begin(), bytes.end());
  changed[rdb::crc64(0, bytes) % bytes.size()] ^= 0x10;
  const memory_file damaged(changed);
  require(!works([&] { open_filter(damaged.path()); }), "a changed byte of a dump is noticed");
}

// ---- files that fit ------------------------------------------------------------------------------------------------

using bytes = std::vector<std::uint8_t>;

// Literals, and runs of zeros as copies.
bytes compressed(const bytes& from) {
  bytes into;
  for (std::size_t at = 0; at < from.size();) {
    std::size_t zeros = 0;
    while (at > 0 && from[at - 1] == 0 && at + zeros < from.size() && from[at + zeros] == 0 && zeros < 264) ++zeros;
    if (zeros >= 9) {
      into.insert(into.end(), {std::uint8_t{7 << 5}, static_cast<std::uint8_t>(zeros - 9), std::uint8_t{0}});
      at += zeros;
    } else {
      into.insert(into.end(), {std::uint8_t{0}, from[at++]});
    }
  }
  return into;
}

// Random bits, or the bits of a filter with few keys.
bytes random_bits(bloomery_fuzz::choices& random, std::size_t size) {
  bytes words(size, random.often(20) ? 0xFF : 0);
  for (std::size_t set = random.below(words.size()); set-- > 0;)
    words[random.below(words.size())] = static_cast<std::uint8_t>(random.below(256));
  return words;
}

void append_bytes(bytes& into, const bytes& part) {
  into.push_back(5);
  const bytes small = compressed(part);
  if (small.size() < part.size()) {
    into.push_back(0xC3);
    rdb::append_length(into, small.size());
  }
  rdb::append_length(into, part.size());
  const bytes& stored = small.size() < part.size() ? small : part;
  into.insert(into.end(), stored.begin(), stored.end());
}

void spoil_and_seal(bytes& dump, bloomery_fuzz::choices& random) {
  dump.insert(dump.end(), {0, 10, 0});
  if (random.often(30)) dump[random.below(std::min<std::size_t>(dump.size(), 200))] ^= 1u << random.below(8);
  formats::append(dump, rdb::crc64(0, dump));
}

bytes made_for_valkey(bloomery_fuzz::choices& random, std::size_t max_size) {
  bytes dump = {7, 0x81, 0x6E, 0x5A, 0x28, 0x99, 0xF9, 0x6D, 0xAC, 0x01};
  const auto integer = [&](std::uint64_t number) {
    dump.push_back(2);
    rdb::append_length(dump, number);
  };
  const std::size_t layers = random.often(60) ? 1 : 2 + random.below(3);
  integer(layers);
  integer(random.below(4));
  for (const double number : {std::exp2(-1.0 - static_cast<double>(random.below(15))), 0.5}) {
    dump.push_back(4);
    formats::append(dump, number);
  }
  integer(1);
  for (std::size_t i = 0; i < layers; ++i) {
    const bytes bits = random_bits(random, 1 + random.below(max_size / 8));
    bytes layer = {1};
    formats::append(layer, std::uint64_t{bits.size()});
    formats::append(layer, static_cast<std::uint32_t>(1 + random.below(20)));
    for (int j = 0; j < 32; ++j) layer.push_back(static_cast<std::uint8_t>(random.below(256)));
    layer.insert(layer.end(), bits.begin(), bits.end());
    append_bytes(dump, layer);
    integer(1 + random.below(1000));
  }
  integer(1);
  spoil_and_seal(dump, random);
  return dump;
}

bytes made(bloomery_fuzz::choices& random, std::size_t max_size) {
  const bool is_dump = random.often(60);
  const std::size_t layers = random.often(60) ? 1 : 2 + random.below(3);
  bytes head, bits;
  const auto integer = [&](std::uint64_t number) {
    head.push_back(2);
    rdb::append_length(head, number);
  };
  const auto floating = [&](double number) {
    head.push_back(4);
    formats::append(head, number);
  };
  const std::uint64_t options = 5 | random.below(2) << 3;
  if (is_dump) {
    head = {7, 0x81, 0x30, 0x16, 0xE5, 0xA2, 0x89, 0xBE, 0xF8, 0x04};
    for (const std::uint64_t number : {std::uint64_t{layers}, std::uint64_t{layers}, options, std::uint64_t{2}})
      integer(number);
  } else {
    formats::append(head, std::uint64_t{layers});
    for (const std::uint64_t number : {std::uint64_t{layers}, options, std::uint64_t{2}})
      formats::append(head, static_cast<std::uint32_t>(number));
  }
  for (std::size_t i = 0; i < layers; ++i) {
    const std::uint64_t capacity = 1 + random.below(1000);
    const double target = std::exp2(-1.0 - static_cast<double>(random.below(15)));
    const double bits_per_key = -std::log(target) / 0.480453013918201;
    const auto probes = static_cast<std::uint32_t>(std::ceil(0.693147180559945 * bits_per_key));
    const bytes words = random_bits(random, 8 * (1 + random.below(max_size / 64)));
    if (is_dump) {
      integer(capacity);
      floating(target);
      integer(probes);
      floating(bits_per_key);
      integer(8 * words.size());
      integer(0);
      append_bytes(head, words);
      integer(1);
    } else {
      for (const std::uint64_t number : {words.size(), 8 * words.size(), std::size_t{1}}) formats::append(head, number);
      formats::append(head, target);
      formats::append(head, bits_per_key);
      formats::append(head, probes);
      formats::append(head, capacity);
      head.push_back(0);
      bits.insert(bits.end(), words.begin(), words.end());
    }
  }
  head.insert(head.end(), bits.begin(), bits.end());
  if (is_dump)
    spoil_and_seal(head, random);
  else if (random.often(30))
    head[random.below(std::min<std::size_t>(head.size(), 200))] ^= 1u << random.below(8);
  return head;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const memory_file file({data, size});
  const file_format* recognized = nullptr;
  works([&] { recognized = recognize_format(file.path()); });
  if (recognized == nullptr) return 0;
  if (!recognized->name.starts_with("redisbloom") && recognized->name != "valkey_bloom") return 0;
  std::unique_ptr<filter_handle> handle;
  if (works([&] { handle = open_filter(file.path()); })) check_opened(*handle, file, {data, size});
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  bloomery_fuzz::choices random(seed);
  if (random.often(50)) {
    const auto make = random.often(40) ? made_for_valkey : made;
    const bytes whole = make(random, std::min<std::size_t>(max_size, 4096));
    if (whole.size() <= max_size) {
      std::copy(whole.begin(), whole.end(), data);
      return whole.size();
    }
  }
  size = LLVMFuzzerMutate(data, size, max_size);
  if (size > 20 && data[0] == 7) bloomery_fuzz::put(data + size - 8, rdb::crc64(0, {data, size - 8}));
  return size;
}
