// bloomery explain of a filter that many machines share: where a key's bits are, and what they say.
//
//   $ bloomery explain redis://cache/users alice
//   alice: maybe there
//     xxh3               5FC239A7E5ECD77B 1951C1D260462712
//     shard 3            of 16, line 101 of 1,023: key {users:3}:0, bytes 6,464 to 6,527
//     bit 51,719         set, SETBIT offset 51712
//     ...
#include "cli/commands/shared_filter.hpp"

#include "cli/commands/counting.hpp"
#include "cli/io/output.hpp"
#include "cli/text/numbers.hpp"

#include <bloomery/error.hpp>
#include <bloomery/key_hash.hpp>

#include "redis/filter/meta.hpp"
#include "redis/net/batch.hpp"
#include "redis/net/router.hpp"
#include "registry/tables.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bloomery::cli {
namespace {

// Hashes as the filter does; its size does not matter for that.
key_hash hash_of_key(const params& p, const std::string& key) {
  params small = p;
  small.geometry = {block_bits_of(p), p.geometry.probes};
  small.window_milliseconds = 0;
  const any_filter hasher(small);
  key_hash hash{};
  if (p.keys == key_kind::u64le) {
    const std::uint64_t number = parse_integer_key(key, "KEY");
    hasher.hash(std::span(&number, 1), std::span(&hash, 1));
  } else {
    const std::string_view text = key;
    hasher.hash(std::span(&text, 1), std::span(&hash, 1));
  }
  return hash;
}

class explainer {
 public:
  explainer(const redis_address& address, const server_options& server)
      : address_(address), servers_(address, connection_of(server)) {
    std::optional<redis::meta> found = redis::read_meta(servers_);
    if (!found) throw error(errc::not_found, {"there is no such filter any more", address_.text(), "", "", ""});
    meta_ = *std::move(found);
  }

  const redis::meta& meta() const { return meta_; }

  // The layers of a shard, as its header says.
  redis::shard_view view(std::uint64_t shard) {
    const std::string key = redis::header_key(meta_, shard);
    std::optional<redis::shard_view> found;
    ask(key, {"HGETALL", key}, [&](redis::reply r) { found = redis::view_of(meta_, r, address_.text()); });
    if (found) return *std::move(found);
    throw error(errc::damaged, {"a part of the filter is gone: " + key, address_.text(), "", "", "build it again"});
  }

  std::string line(const std::string& key, std::uint64_t first_byte) {
    std::string bytes;
    ask(key, {"GETRANGE", key, std::to_string(first_byte), std::to_string(first_byte + 63)},
        [&](redis::reply r) { bytes = std::string(r.text()); });
    bytes.resize(64, '\0');
    return bytes;
  }

 private:
  template <class Take>
  void ask(const std::string& key, std::initializer_list<std::string_view> words, Take take) {
    redis::batch one;
    one.begin(redis::slot_of(key), redis::mode::read);
    one.command(words);
    servers_.run(one, [&](std::size_t, redis::reply r) {
      redis::throw_if_error(r, address_, "explain a key");
      take(r);
    });
  }

  const redis_address& address_;
  redis::router servers_;
  redis::meta meta_;
};

}  // namespace

exit_status explain_shared(const explain_options& options) {
  if (!options.owners.files.empty()) {
    throw error(errc::invalid_argument,
                {"who set a bit is told of files only", "--keys", "", "", "leave it out, or pull the filter first"});
  }
  const redis_address address = redis_address::parse(options.filter);
  redis_filter filter = open_shared(address, options.server, options.secret);
  const params p = filter.parameters().filter;
  explainer servers(address, options.server);
  const redis::meta& meta = servers.meta();
  const layout_row& layout = *find_layout(p.layout);
  const std::uint64_t cell_bits = cell_bits_of(p);
  const std::uint64_t cells_of_line = 512 / cell_bits;
  const char* const noun = name_of_cell(p);

  output out(STDOUT_FILENO, "standard output");
  nlohmann::ordered_json explained = nlohmann::ordered_json::array();
  bool any = false;
  for (const std::string& key : options.keys) {
    const key_hash hash = hash_of_key(p, key);
    const std::uint64_t shard = multiply_high(hash.lo, meta.shards());
    const redis::shard_view view = servers.view(shard);
    const bool maybe = p.keys == key_kind::u64le ? filter.may_contain(parse_integer_key(key, "KEY"))
                                                 : filter.may_contain(std::string_view(key));
    any |= maybe;
    nlohmann::ordered_json layers = nlohmann::ordered_json::array();
    std::string lines;
    for (std::size_t i = view.layers.size(); i-- > 0;) {  // the newest first
      const redis_layer& layer = view.layers[i];
      const std::string name = redis::layer_key(meta, shard, view.numbers[i]);
      std::vector<std::uint64_t> cells(layer.probes);
      layout.cells(layer.whole(meta.shards()), hash, cells.data());
      for (std::uint64_t& cell : cells) cell -= shard * layer.lines * cells_of_line;
      const std::uint64_t line = cells.front() / cells_of_line;
      const std::string bytes = servers.line(name, 64 * line);
      const std::span<const std::uint8_t> view_of_bytes(reinterpret_cast<const std::uint8_t*>(bytes.data()), 64);
      lines += fmt::format("  {:<18} line {} of {}, bytes {} to {} of key {}\n", "shard " + count_text(shard),
                           count_text(line), count_text(layer.lines), 64 * line, 64 * line + 63, printable(name));
      nlohmann::ordered_json bits = nlohmann::ordered_json::array();
      for (const std::uint64_t cell : cells) {
        const std::uint32_t value = value_of_cell(p, view_of_bytes, cell % cells_of_line);
        // On the server the first bit of a byte is its highest.
        const std::uint64_t offset = cell_bits == 1 ? cell ^ 7 : (cell ^ 1) * cell_bits;
        lines += cell_bits == 1
                     ? fmt::format("  {:<18} {}; SETBIT offset {}\n", "bit " + count_text(cell),
                                   value ? "set" : "clear", offset)
                     : fmt::format("  {:<18} {}; BITFIELD offset {}\n", "counter " + count_text(cell), value, offset);
        nlohmann::ordered_json bit = {{noun, cell}, {"offset", offset}, {"set", value != 0}};
        if (cell_bits != 1) bit["value"] = value;
        bits.push_back(bit);
      }
      layers.push_back(
          {{"layer", view.numbers[i]}, {"key", name}, {"line", line}, {"lines", layer.lines}, {"bits", bits}});
    }
    const std::string hash_text = fmt::format("{:016X} {:016X}", hash.lo, hash.hi);
    if (options.json) {
      explained.push_back({{"key", key},
                           {"maybe_present", maybe},
                           {"hash", hash_text},
                           {"shard", shard},
                           {"shards", meta.shards()},
                           {"layers", layers}});
      continue;
    }
    out.write(fmt::format("{}: {}\n", key.empty() ? "(the empty key)" : printable(key),
                          maybe ? "maybe there" : "certainly absent"));
    out.write(fmt::format("  {:<18} {}\n", p.hash, hash_text));
    out.write(lines);
  }
  if (options.json) out.write(json_line({{"filter", address.text()}, {"keys", explained}}));
  out.flush();
  return any ? exit_status::found : exit_status::nothing;
}

}  // namespace bloomery::cli
