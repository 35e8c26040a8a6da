// bloomery explain FILTER KEY...: why it says yes or no, bit by bit, and with --keys who set each bit.
//
//   $ bloomery explain cities.bloom Berlin --keys cities.txt
//
// Exit status: 0 some of the keys may be there, 1 none is, 2 an error.
#include "app/signals.hpp"
#include "cli/commands/commands.hpp"
#include "cli/commands/counting.hpp"
#include "cli/commands/shared_filter.hpp"
#include "cli/commands/window.hpp"
#include "cli/io/key_batch.hpp"
#include "cli/io/output.hpp"
#include "cli/text/numbers.hpp"

#include <bloomery/bits.hpp>
#include <bloomery/error.hpp>
#include <bloomery/hash.hpp>
#include <bloomery/layouts/counting.hpp>

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace bloomery::cli {
namespace {

constexpr std::size_t most_named = 3;     // owners of a bit that are named; the others are counted
constexpr std::size_t most_letters = 60;  // of a name

// Who set a bit: each key once, however often it comes.
struct owners {
  std::vector<std::string> named;
  std::set<std::pair<std::uint64_t, std::uint64_t>> all;  // hashes of 128 bits
};

struct explanation {
  std::string key;
  key_hash identity{};  // of the key, or of the number: 7 is 007
  key_hash hash{};
  std::vector<std::uint64_t> cells;
  bool maybe_there = false;
  bool was_put_in = false;  // it is in the file of keys
};

using owners_of_cells = std::unordered_map<std::uint64_t, owners>;

key_hash identity_of(const any_filter& filter, std::string_view key) {
  return filter.parameters().keys == key_kind::u64le ? xxh3{}(parse_integer_key(key, "KEY")) : xxh3{}(key);
}

std::string shortened(std::string_view key) {
  return std::string(key.substr(0, most_letters)) + (key.size() > most_letters ? "..." : "");
}

// Of a key as the filter takes it: bytes, or a number.
template <class Key>
void note_bits(const any_filter& filter, const Key& key, explanation& e) {
  e.cells = filter.cells(key);
  if (filter.uses_hashes()) filter.hash(std::span(&key, 1), std::span(&e.hash, 1));
}

explanation explain_key(const any_filter& filter, const std::string& key) {
  explanation e;
  e.key = key;
  e.identity = identity_of(filter, key);
  if (filter.parameters().keys == key_kind::u64le)
    note_bits(filter, parse_integer_key(key, "KEY"), e);
  else
    note_bits(filter, std::string_view(key), e);
  e.maybe_there = std::all_of(e.cells.begin(), e.cells.end(), [&](std::uint64_t cell) {
    return value_of_cell(filter.parameters(), filter.bytes(), cell) != 0;
  });
  return e;
}

// Goes through the keys that were put in and notes those that own a bit of the explained ones.
void find_owners(const any_filter& filter, const input_options& inputs, std::vector<explanation>& explained,
                 owners_of_cells& found) {
  for (const explanation& e : explained) {
    for (const std::uint64_t cell : e.cells) found[cell];
  }
  const bool whole = for_each_batch(
      filter, inputs, {1, true, "owners"}, [](key_batch&) {},
      [&](key_batch& batch) {
        for (std::size_t i = 0; i < batch.keys.size(); ++i) {
          for (const std::uint64_t cell :
               batch.hashes.empty() ? filter.cells(batch.keys[i]) : filter.cells(batch.hashes[i])) {
            const auto at = found.find(cell);
            if (at == found.end()) continue;
            owners& o = at->second;
            const key_hash identity = identity_of(filter, batch.keys[i]);
            if (o.all.emplace(identity.lo, identity.hi).second && o.named.size() < most_named) {
              o.named.push_back(shortened(batch.keys[i]));
            }
            for (explanation& e : explained) e.was_put_in |= e.identity == identity;
          }
        }
        return true;
      });
  if (!whole) throw interrupted();
}

std::string verdict(const explanation& e, bool owners_known, const owners_of_cells& found) {
  const bool explained_by_owners = owners_known && std::all_of(e.cells.begin(), e.cells.end(), [&](std::uint64_t cell) {
                                     return !found.at(cell).all.empty();
                                   });
  if (!e.maybe_there) return "certainly absent";
  if (!owners_known) return "maybe there";
  if (e.was_put_in) return "there: it was put in";
  return explained_by_owners ? "a FALSE POSITIVE: it was never put in, others set all its bits"
                             : "maybe there: it is not among these keys, which do not account for all its bits";
}

std::string shown(const std::string& key) { return key.empty() ? "(the empty key)" : printable(key); }

std::string owners_text(const owners& o) {
  if (o.all.empty()) return "by a key that is not among these";
  std::string text = "by ";
  for (const std::string& name : o.named) text += (&name == &o.named.front() ? "" : ", ") + shown(name);
  if (o.all.size() > o.named.size()) text += fmt::format(" and {} more", count_text(o.all.size() - o.named.size()));
  return text;
}

// "set", or what the counter says: "2 copies, set".
std::string set_text(const params& p, std::uint32_t value) {
  if (family_of(p) != family::counting) return "set";
  if (value == counting::full) return "full, 15 copies or more once, set";
  return value == 1 ? "1 copy, set" : fmt::format("{} copies, set", value);
}

}  // namespace

exit_status explain(const explain_options& options) {
  if (is_shared(options.filter, options.server)) return explain_shared(options);
  const any_filter filter = open_filter(options.filter, options.secret);
  const params& p = filter.parameters();
  if (family_of(p) == family::sealed) return explain_sealed(options, filter);
  say_if_dirty(options.filter, *filter.opened_from());
  if (filter.window()) return explain_in_window(options, filter);
  const bool owners_known = !options.owners.files.empty();
  std::vector<explanation> explained;
  for (const std::string& key : options.keys) explained.push_back(explain_key(filter, key));
  owners_of_cells found;
  if (owners_known) find_owners(filter, options.owners, explained, found);
  const bool any = std::any_of(explained.begin(), explained.end(), [](const explanation& e) { return e.maybe_there; });

  output out(STDOUT_FILENO, "standard output");
  nlohmann::ordered_json keys = nlohmann::ordered_json::array();
  const std::uint64_t block_bits = block_bits_of(p) / cell_bits_of(p);
  const bool counts = family_of(p) == family::counting;
  for (const explanation& e : explained) {
    nlohmann::ordered_json bits = nlohmann::ordered_json::array();
    std::string lines;
    bool proved = false;
    for (std::size_t i = 0; i < e.cells.size(); ++i) {
      const std::uint64_t cell = e.cells[i];
      const std::uint32_t value = value_of_cell(p, filter.bytes(), cell);
      const bool set = value != 0;
      const bool met_before = std::find(e.cells.begin(), e.cells.begin() + static_cast<std::ptrdiff_t>(i), cell) !=
                              e.cells.begin() + static_cast<std::ptrdiff_t>(i);
      std::string what = !set           ? (proved ? "clear" : "clear: this proves that it was never put in")
                         : met_before   ? fmt::format("the same {} again", name_of_cell(p))
                         : owners_known ? set_text(p, value) + " " + owners_text(found.at(cell))
                                        : set_text(p, value);
      proved |= !set;
      lines += counts ? fmt::format("  counter {:<10} {}\n", count_text(cell), what)
                      : fmt::format("  bit {:<14} {}\n", count_text(cell), what);
      nlohmann::ordered_json bit = {{"bit", cell}, {"set", set}};
      if (counts) bit["counter"] = value;
      if (owners_known) {
        bit["owners"] = found.at(cell).named;
        bit["owner_count"] = found.at(cell).all.size();
      }
      bits.push_back(bit);
    }
    const std::string hash = filter.uses_hashes() ? fmt::format("{:016X} {:016X}", e.hash.lo, e.hash.hi) : "";
    if (options.json) {
      nlohmann::ordered_json one = {{"key", e.key}, {"maybe_present", e.maybe_there}};
      if (owners_known) one["put_in"] = e.was_put_in;
      one["hash"] = hash.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(hash);
      one["block"] =
          block_bits == 0 ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(e.cells.front() / block_bits);
      one["bits"] = bits;
      keys.push_back(one);
      continue;
    }
    out.write(fmt::format("{}: {}\n", shown(e.key), verdict(e, owners_known, found)));
    if (!hash.empty()) out.write(fmt::format("  {:<18} {}\n", p.hash, hash));
    if (block_bits != 0) {
      const std::uint64_t block = e.cells.front() / block_bits;
      out.write(fmt::format("  block {:<12} of {}: {}s {} to {}\n", count_text(block),
                            count_text(p.geometry.bits / block_bits_of(p)), name_of_cell(p),
                            count_text(block * block_bits), count_text(block * block_bits + block_bits - 1)));
    }
    out.write(lines);
  }
  if (options.json) out.write(json_line({{"filter", options.filter}, {"keys", keys}}));
  out.flush();
  return any ? exit_status::found : exit_status::nothing;
}

}  // namespace bloomery::cli
