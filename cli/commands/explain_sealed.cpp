// bloomery explain of a sealed filter: a key's three cells, whose exclusive or is its fingerprint or is not.
//
//   $ bloomery explain sealed.bloom Berlin
//   Berlin: certainly absent
//     xxh3               5FC239A7E5ECD77B 1951C1D260462712
//     cell 1,234         3A
//     ...
#include "app/signals.hpp"
#include "cli/commands/commands.hpp"
#include "cli/io/key_batch.hpp"
#include "cli/io/output.hpp"
#include "cli/text/numbers.hpp"

#include <bloomery/error.hpp>
#include <bloomery/fuse.hpp>

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <span>
#include <string>
#include <string_view>
#include <unordered_set>

namespace bloomery::cli {
namespace {

key_hash hash_of_key(const any_filter& filter, const std::string& key) {
  key_hash hash{};
  if (filter.parameters().keys == key_kind::u64le) {
    const std::uint64_t number = parse_integer_key(key, "KEY");
    filter.hash(std::span(&number, 1), std::span(&hash, 1));
  } else {
    const std::string_view text = key;
    filter.hash(std::span(&text, 1), std::span(&hash, 1));
  }
  return hash;
}

// Which of these hashes are among the keys that were put in. (The filter itself tells keys apart by lo alone.)
std::unordered_set<std::uint64_t> put_in(const any_filter& filter, const input_options& inputs,
                                         const std::unordered_set<std::uint64_t>& asked) {
  std::unordered_set<std::uint64_t> found;
  const bool whole = for_each_batch(
      filter, inputs, {1, true, "owners"}, [](key_batch&) {},
      [&](key_batch& batch) {
        for (const key_hash& hash : batch.hashes) {
          if (asked.contains(hash.lo)) found.insert(hash.lo);
        }
        return true;
      });
  if (!whole) throw interrupted();
  return found;
}

}  // namespace

exit_status explain_sealed(const explain_options& options, const any_filter& filter) {
  const params& p = filter.parameters();
  const unsigned width = cell_bits_of(p);
  const bool owners_known = !options.owners.files.empty();
  std::unordered_set<std::uint64_t> asked;
  for (const std::string& key : options.keys) asked.insert(hash_of_key(filter, key).lo);
  const std::unordered_set<std::uint64_t> owned =
      owners_known ? put_in(filter, options.owners, asked) : std::unordered_set<std::uint64_t>{};

  output out(STDOUT_FILENO, "standard output");
  nlohmann::ordered_json keys = nlohmann::ordered_json::array();
  const auto hex = [&](std::uint32_t value) { return fmt::format("{:0{}X}", value, width / 4); };
  bool any = false;
  for (const std::string& key : options.keys) {
    const key_hash hash = hash_of_key(filter, key);
    const fuse_place place = fuse_place_of(width, filter.bytes(), hash.lo);
    nlohmann::ordered_json cells = nlohmann::ordered_json::array();
    std::string lines;
    std::uint32_t all = 0;
    for (const std::uint64_t cell : place.cells) {
      if (!place.somewhere) break;
      const std::uint32_t value = fuse_cell(width, filter.bytes(), cell);
      all ^= value;
      cells.push_back({{"cell", cell}, {"value", hex(value)}});
      lines += fmt::format("  cell {:<13} {}\n", count_text(cell), hex(value));
    }
    const bool there = place.somewhere && all == place.fingerprint;
    any |= there;
    const bool known = owned.contains(hash.lo);
    if (options.json) {
      nlohmann::ordered_json one = {{"key", key}, {"maybe_present", there}};
      if (owners_known) one["put_in"] = known;
      one["hash"] = fmt::format("{:016X} {:016X}", hash.lo, hash.hi);
      one["cells"] = cells;
      one["exclusive_or"] = place.somewhere ? nlohmann::ordered_json(hex(all)) : nlohmann::ordered_json(nullptr);
      one["fingerprint"] =
          place.somewhere ? nlohmann::ordered_json(hex(place.fingerprint)) : nlohmann::ordered_json(nullptr);
      keys.push_back(one);
      continue;
    }
    out.write(fmt::format("{}: {}\n", key.empty() ? "(the empty key)" : printable(key),
                          !there          ? "certainly absent"
                          : !owners_known ? "maybe there"
                          : known         ? "there: it was put in"
                                          : "a FALSE POSITIVE: it is not among these keys"));
    out.write(fmt::format("  {:<18} {:016X} {:016X}\n", p.hash, hash.lo, hash.hi));
    out.write(lines);
    out.write(
        !place.somewhere ? "  the filter has no keys near it\n"
        : there          ? fmt::format("  exclusive or       {}: the key's fingerprint\n", hex(all))
                : fmt::format("  exclusive or       {}, and the key's fingerprint is {}: this proves that it was never "
                              "put in\n",
                              hex(all), hex(place.fingerprint)));
  }
  if (options.json) out.write(json_line({{"filter", options.filter}, {"keys", keys}}));
  out.flush();
  return any ? exit_status::found : exit_status::nothing;
}

}  // namespace bloomery::cli
