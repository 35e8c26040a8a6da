// Explanation of a lookup on servers: the cells of a key and their values.
#include "platform/machine.hpp"
#include "redis/filter/impl.hpp"

#include <bloomery/detail/bits.hpp>
#include <bloomery/error.hpp>
#include <bloomery/layouts/counting.hpp>

#include <array>
#include <cstring>
#include <string>

namespace bloomery {
namespace {

using line_of_bytes = std::array<std::uint8_t, cache_line_bytes>;

// Bytes beyond the end of a string count as 0.
line_of_bytes read_line(redis::router& router, const redis_address& address, const std::string& key,
                        std::uint64_t first_byte) {
  line_of_bytes line{};
  redis::batch one;
  one.begin(redis::slot_of(key), redis::mode::read);
  one.command({"GETRANGE", key, std::to_string(first_byte), std::to_string(first_byte + cache_line_bytes - 1)});
  router.run(one, [&](std::size_t, redis::reply r) {
    redis::throw_if_error(r, address, "explain a key");
    const std::string_view bytes = r.text();
    std::memcpy(line.data(), bytes.data(), std::min(bytes.size(), line.size()));
  });
  return line;
}

// On the server, the first bit of a byte is its highest one, and the first counter of a byte is its upper half.
std::uint64_t offset_of(std::uint64_t cell, std::uint64_t cell_bits) {
  return cell_bits == 1 ? cell ^ 7 : (cell ^ 1) * cell_bits;
}

}  // namespace

key_explanation redis_filter::impl::explain(key_span one_key) {
  be_current();
  const params& p = description.parameters.filter;
  key_hash hash_of_key{};
  hash(one_key, &hash_of_key);

  key_explanation result;
  result.hash = hash_of_key;
  result.shards = description.shards();
  result.shard = shard_of(hash_of_key.hash64);
  refresh({&result.shard, 1});
  const redis::shard_view& shard = view(result.shard);
  const std::uint64_t cell_bits = cell_bits_of(p);
  const std::uint64_t cells_of_line = 8 * cache_line_bytes / cell_bits;
  for (std::size_t i = shard.layers.size(); i-- > 0;) {
    const redis_layer& layer = shard.layers[i];
    std::vector<std::uint64_t> cells(layer.probes);
    layout->cells(layer.whole(result.shards), hash_of_key, cells.data());
    explained_layer& shown = result.layers.emplace_back();
    shown.number = shard.numbers[i];
    shown.server_key = redis::layer_key(description, result.shard, shard, i);
    shown.blocks = layer.lines;
    shown.bytes = cache_line_bytes;
    shown.block = cells.front() / cells_of_line - result.shard * layer.lines;
    shown.first_byte = shown.block * cache_line_bytes;
    const line_of_bytes line = read_line(router, address, shown.server_key, shown.first_byte);
    for (std::uint64_t cell : cells) {
      cell -= result.shard * layer.lines * cells_of_line;
      const std::uint64_t in_line = cell % cells_of_line;
      const std::uint32_t value = cell_bits == 1 ? std::uint32_t{test_bit(line.data(), in_line)}
                                                 : layouts::counting::counter(line.data(), in_line);
      shown.cells.push_back({cell, value, offset_of(cell, cell_bits)});
    }
  }
  return result;
}

key_explanation redis_filter::explain(key_span one_key) {
  if (one_key.empty()) throw error(errc::invalid_argument, {"no key to explain", "keys", "1", "0", hint::none});
  const key_span key = one_key.part(0, 1);
  std::uint64_t maybe_present = 0;
  may_contain(key, std::span(&maybe_present, 1));
  key_explanation result = impl_->explain(key);
  result.maybe_present = maybe_present != 0;
  return result;
}

key_explanation redis_filter::explain(std::string_view key) {
  return explain(std::span<const std::string_view>(&key, 1));
}

key_explanation redis_filter::explain(std::uint64_t key) { return explain(std::span<const std::uint64_t>(&key, 1)); }

}  // namespace bloomery
