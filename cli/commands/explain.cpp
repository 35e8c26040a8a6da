// bloomery explain FILTER KEY...: shows why a filter reports a key as present or absent, cell by cell, and with --keys
// which keys set each cell.
//
//   $ bloomery explain cities.bloom Berlin --keys cities.txt
//
// Exit status: 0 some of the keys may be present, 1 none is, 2 an error.
#include "app/numbers.hpp"
#include "app/signals.hpp"
#include "cli/commands/common.hpp"
#include "cli/commands/grammar.hpp"
#include "cli/commands/open_handle.hpp"
#include "cli/commands/window.hpp"
#include "cli/io/key_batch.hpp"
#include "cli/io/output.hpp"
#include "cli/io/times.hpp"
#include "cli/text/color.hpp"

#include <bloomery/error.hpp>
#include <bloomery/filter_handle.hpp>
#include <bloomery/hash.hpp>
#include <bloomery/layered_filter.hpp>
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

struct explain_options {
  std::string filter;
  std::string secret;
  std::optional<std::uint64_t> now;  ///< --now
  std::vector<std::string> keys;
  input_options owners;  ///< files of the inserted keys; may be none
  file_check check = file_check::automatic;
  server_options server;
  bool json = false;
};

using json = nlohmann::ordered_json;

constexpr std::size_t most_named = 3;     // owners of a cell that are named; the others are counted
constexpr std::size_t most_letters = 60;  // shown of a key

// The distinct keys that set a cell.
struct owners {
  std::vector<std::string> named;
  std::set<std::pair<std::uint64_t, std::uint64_t>> all;  // hashes of 128 bits
};
using owners_of_cells = std::unordered_map<std::uint64_t, owners>;

struct explained_key {
  std::string key;
  key_hash identity{};  // hash of the key; 7 and 007 are the same integer
  key_explanation found;
  bool was_inserted = false;  // the file of keys contains it
};

key_hash identity_of(key_kind kind, std::string_view key) {
  return kind == key_kind::u64le ? xxh3{}(parse_integer_key(key, "KEY")) : xxh3{}(key);
}

std::string shortened(std::string_view key) {
  return std::string(key.substr(0, most_letters)) + (key.size() > most_letters ? "..." : "");
}

explained_key explain_key(filter_handle& filter, const std::string& key) {
  const key_kind kind = filter.parameters().keys;
  explained_key e{key, identity_of(kind, key), {}, false};
  if (kind == key_kind::u64le) {
    const std::uint64_t number = parse_integer_key(key, "KEY");
    e.found = filter.explain(std::span<const std::uint64_t>(&number, 1));
  } else {
    const std::string_view text = key;
    e.found = filter.explain(std::span<const std::string_view>(&text, 1));
  }
  return e;
}

// Whether the cells of a filter are set by single keys, which can be listed.
bool cells_have_owners(const key_explanation& e) {
  return e.shards == 0 && e.generations.empty() && !e.fingerprint && !e.slots && e.layers.size() == 1;
}

// Reads the inserted keys and records those that set a cell of an explained key.
void find_owners(filter_handle& filter, const input_options& inputs, std::vector<explained_key>& explained,
                 owners_of_cells& found) {
  const key_kind kind = filter.parameters().keys;
  const bool by_cells = cells_have_owners(explained.front().found);
  if (by_cells) {
    for (const explained_key& e : explained) {
      for (const explained_cell& cell : e.found.layers.front().cells) found[cell.cell];
    }
  }
  const bool whole = for_each_batch(
      filter, inputs, {1, true, "owners"}, [](key_batch&) {},
      [&](key_batch& batch) {
        for (std::size_t i = 0; i < batch.keys.size(); ++i) {
          const key_hash identity = identity_of(kind, batch.keys[i]);
          for (explained_key& e : explained) e.was_inserted |= e.identity == identity;
          if (!by_cells) continue;
          const key_explanation owner = filter.explain(batch.prepared.part(i, 1));
          for (const explained_cell& cell : owner.layers.front().cells) {
            const auto at = found.find(cell.cell);
            if (at == found.end()) continue;
            owners& o = at->second;
            if (o.all.emplace(identity.hash64, identity.high64).second && o.named.size() < most_named) {
              o.named.push_back(shortened(batch.keys[i]));
            }
          }
        }
        return true;
      });
  if (!whole) throw interrupted();
}

std::string shown(const std::string& key) { return key.empty() ? "(the empty key)" : printable(key); }

std::string owners_text(const owners& o) {
  if (o.all.empty()) return "by a key that is not in the list";
  std::string text = "by ";
  for (const std::string& name : o.named) text += (&name == &o.named.front() ? "" : ", ") + shown(name);
  if (o.all.size() > o.named.size()) text += fmt::format(" and {} more", count_text(o.all.size() - o.named.size()));
  return text;
}

// Text and JSON of explained keys.
class explanation_page {
 public:
  /// @param slices_of  as fix_time() returned it
  explanation_page(const filter_handle& filter, const owners_of_cells* found, std::optional<std::uint64_t> slices_of)
      : params_(filter.parameters()),
        counts_(filter.capabilities().counts_copies),
        found_(found),
        slices_of_(slices_of) {}

  json to_json(const explained_key& e) const {
    const key_explanation& k = e.found;
    json one = {{"key", e.key}, {"maybe_present", k.maybe_present}};
    if (found_ != nullptr) one["put_in"] = e.was_inserted;
    one["hash"] = k.hash ? json(hash_text(*k.hash)) : json(nullptr);
    if (k.shards != 0) {
      one.update({{"shard", k.shard}, {"shards", k.shards}, {"layers", json::array()}});
      for (const explained_layer& layer : k.layers) {
        json shown = {{"layer", layer.number}};
        if (slices_of_) {
          shown["start"] = seconds_json(start_of(layer));
          shown["expires_at"] = seconds_json(expiry_of_slice(params_.window(), start_of(layer)));
        }
        if (!layer.server_key.empty()) shown["key"] = layer.server_key;
        shown.update({{"line", layer.block}, {"lines", layer.blocks}, {"bits", cells_json(layer)}});
        one["layers"].push_back(std::move(shown));
      }
    } else if (k.fingerprint) {
      const bool known = !k.layers.empty();
      one["cells"] = json::array();
      for (const explained_layer& layer : k.layers) {
        for (const explained_cell& cell : layer.cells)
          one["cells"].push_back({{"cell", cell.cell}, {"value", hex(k, cell.value)}});
      }
      one["exclusive_or"] = known ? json(hex(k, k.fingerprint->exclusive_or)) : json(nullptr);
      one["fingerprint"] = known ? json(hex(k, k.fingerprint->expected)) : json(nullptr);
    } else if (k.slots) {
      one.update({{"bucket", k.slots->bucket}, {"remainder", k.slots->remainder}, {"blocks", json::array()}});
      for (const explained_cell& cell : k.layers.front().cells)
        one["blocks"].push_back({{"block", cell.cell}, {"copies", cell.value}});
    } else if (k.layers.size() > 1) {
      one["layers"] = json::array();
      for (const explained_layer& layer : k.layers)
        one["layers"].push_back({{"layer", layer.number}, {"bits", cells_json(layer)}});
    } else {
      const explained_layer& layer = k.layers.front();
      one["block"] = layer.blocks == 0 ? json(nullptr) : json(layer.block);
      if (k.generations.empty()) {
        one["bits"] = cells_json(layer);
      } else {
        one["cells"] = json::array();
        for (const explained_cell& cell : layer.cells) one["cells"].push_back(cell.cell);
        one["generations"] = json::array();
        for (const explained_generation& g : k.generations) {
          one["generations"].push_back(
              {{"epoch", g.epoch}, {"maybe_present", g.maybe_present}, {"cells_set", g.cells_set}});
        }
      }
    }
    return one;
  }

  std::string to_text(const explained_key& e, const std::optional<window_facts>& window) const {
    const key_explanation& k = e.found;
    std::string text = fmt::format("{}: {}\n", shown(e.key), verdict(e));
    if (k.hash) text += line(params_.hash, hash_text(*k.hash));
    if (slices_of_) text += line("as of", moment_text(*slices_of_) + (k.layers.empty() ? ": no slice is left" : ""));
    for (const explained_layer& layer : k.layers) text += place_text(k, layer) + cells_text(k, layer);
    const std::uint64_t newest = k.generations.empty() ? 0 : k.generations.front().epoch;
    for (const explained_generation& g : k.generations) {
      text += fmt::format("  {:<8} {}: {}, {} of {} cells\n",
                          g.epoch == newest ? "newest" : fmt::format("{} ago", newest - g.epoch),
                          generation_text(*window, g.epoch), g.maybe_present ? "maybe present" : "certainly absent",
                          g.cells_set, k.layers.front().cells.size());
    }
    if (k.fingerprint) text += fingerprint_text(k);
    if (k.slots) text += slots_text(k);
    return text;
  }

 private:
  static std::string line(const std::string& name, const std::string& value) {
    return fmt::format("  {:<18} {}\n", name, value);
  }

  static std::string hash_text(key_hash hash) { return fmt::format("{:016X} {:016X}", hash.hash64, hash.high64); }

  static std::string hex(const key_explanation& k, std::uint32_t value) {
    return fmt::format("{:0{}X}", value, (k.fingerprint->width + 3) / 4);
  }

  const char* noun() const { return counts_ ? "counter" : "bit"; }

  static std::string painted_false_positive() { return "a " + painted("FALSE POSITIVE", tone::warning, STDOUT_FILENO); }

  std::string verdict(const explained_key& e) const {
    const key_explanation& k = e.found;
    if (!k.generations.empty() || slices_of_)
      return k.maybe_present ? "maybe seen in the window" : "certainly not seen in the window";
    if (!k.maybe_present) return "certainly absent";
    if (found_ == nullptr) return "maybe present";
    if (e.was_inserted) return "present: it was inserted";
    if (k.fingerprint || k.slots) return painted_false_positive() + ": it is not in the list of keys";
    const auto& cells = k.layers.front().cells;
    const bool all_owned = std::all_of(cells.begin(), cells.end(),
                                       [&](const explained_cell& cell) { return !found_->at(cell.cell).all.empty(); });
    return all_owned ? painted_false_positive() + ": it was never inserted, and other keys set all its bits"
                     : "maybe present: it is not in the list of keys, but the listed keys do not set all its bits";
  }

  std::string place_text(const key_explanation& k, const explained_layer& layer) const {
    const std::string block = count_text(layer.block), blocks = count_text(layer.blocks);
    if (k.shards != 0 && layer.server_key.empty()) {
      const std::string of =
          slices_of_ ? "the slice from " + moment_text(start_of(layer)) : fmt::format("layer {}", layer.number);
      return line("shard " + count_text(k.shard), fmt::format("block {} of {} of {}", block, blocks, of));
    }
    if (k.shards != 0) {
      return line("shard " + count_text(k.shard),
                  fmt::format("block {} of {}, bytes {} to {} of key {}", block, blocks, layer.first_byte,
                              layer.first_byte + layer.bytes - 1, printable(layer.server_key)));
    }
    if (k.layers.size() > 1) return fmt::format("  layer {}\n", layer.number);
    if (layer.blocks == 0 || k.slots) return "";
    if (!k.generations.empty()) {
      return fmt::format("  block {:<12} of {}: bytes {} to {}\n", block, blocks, count_text(layer.first_byte),
                         count_text(layer.first_byte + layer.bytes - 1));
    }
    const std::uint64_t cells = layer.bytes * 8 / cell_bits_of(params_);
    return fmt::format("  block {:<12} of {}: {}s {} to {}\n", block, blocks, noun(), count_text(layer.block * cells),
                       count_text(layer.block * cells + cells - 1));
  }

  std::string cells_text(const key_explanation& k, const explained_layer& layer) const {
    std::string text;
    bool proved = false;
    for (std::size_t i = 0; k.generations.empty() && i < layer.cells.size(); ++i) {
      const explained_cell& cell = layer.cells[i];
      const std::string number = count_text(cell.cell);
      if (k.slots) {
        text += line("block " + number, copies_of_fingerprint(cell.value));
      } else if (k.fingerprint) {
        text += fmt::format("  cell {:<13} {}\n", number, hex(k, cell.value));
      } else if (k.shards != 0 && layer.server_key.empty()) {
        text += line(fmt::format("{} {}", noun(), number), cell.value != 0 ? "set" : "clear");
      } else if (k.shards != 0) {
        text += line(fmt::format("{} {}", noun(), number),
                     counts_ ? fmt::format("{}; BITFIELD offset {}", cell.value, cell.offset)
                             : fmt::format("{}; SETBIT offset {}", cell.value != 0 ? "set" : "clear", cell.offset));
      } else {
        text += fmt::format("  {} {:<{}} {}\n", noun(), number, counts_ ? 10 : 14,
                            state_text(layer, i, proved, k.layers.size() > 1));
        proved |= cell.value == 0;
      }
    }
    return text;
  }

  std::string state_text(const explained_layer& layer, std::size_t i, bool proved, bool one_of_several) const {
    const explained_cell& cell = layer.cells[i];
    if (cell.value == 0) {
      return proved           ? "clear"
             : one_of_several ? "clear: this proves that the key is not in this layer"
             : counts_        ? "clear: this proves that the key is absent"
                              : "clear: this proves that the key was never inserted";
    }
    const auto here = layer.cells.begin() + static_cast<std::ptrdiff_t>(i);
    const bool met_before =
        std::any_of(layer.cells.begin(), here, [&](const explained_cell& other) { return other.cell == cell.cell; });
    if (met_before) return fmt::format("the same {} again", noun());
    return copies_text(cell.value) + "set" + (found_ == nullptr ? "" : " " + owners_text(found_->at(cell.cell)));
  }

  static std::string copies_of_fingerprint(std::uint32_t copies) {
    if (copies == 0) return "not there";
    return copies == 1 ? "there" : fmt::format("there {} times", copies);
  }

  static std::string slots_text(const key_explanation& k) {
    const bool one_block = k.layers.front().cells.size() == 1;
    return line("fingerprint", fmt::format("bucket {}, remainder {:0{}X}{}", k.slots->bucket, k.slots->remainder,
                                           (k.slots->width + 3) / 4,
                                           k.maybe_present ? ""
                                           : one_block     ? ": not in its block, so the key is absent"
                                                           : ": in neither block, so the key is absent"));
  }

  // "2 copies, "
  std::string copies_text(std::uint32_t value) const {
    if (!counts_) return "";
    if (value == layouts::counting::full) return "full (15 copies or more), ";
    return value == 1 ? "1 copy, " : fmt::format("{} copies, ", value);
  }

  static std::string fingerprint_text(const key_explanation& k) {
    if (k.layers.empty()) return "  the filter has no keys in this segment\n";
    const std::string found = hex(k, k.fingerprint->exclusive_or);
    return line("exclusive or", k.maybe_present
                                    ? found + ": equal to the key's fingerprint"
                                    : fmt::format("{}, but the key's fingerprint is {}: this proves that the key "
                                                  "was never inserted",
                                                  found, hex(k, k.fingerprint->expected)));
  }

  json cells_json(const explained_layer& layer) const {
    json cells = json::array();
    const bool on_server = !layer.server_key.empty();
    for (const explained_cell& cell : layer.cells) {
      json one = {{on_server ? noun() : "bit", cell.cell}};
      if (on_server) one["offset"] = cell.offset;
      one["set"] = cell.value != 0;
      if (counts_) one[on_server ? "value" : "counter"] = cell.value;
      if (found_ != nullptr) {
        const owners& o = found_->at(cell.cell);
        one.update({{"owners", o.named}, {"owner_count", o.all.size()}});
      }
      cells.push_back(one);
    }
    return cells;
  }

  std::uint64_t start_of(const explained_layer& slice) const {
    return static_cast<std::uint64_t>(slice.number) * params_.window().slice_length();
  }

  const params& params_;
  bool counts_;
  const owners_of_cells* found_;            // null: not requested
  std::optional<std::uint64_t> slices_of_;  // for a copy of a shared sliding-window filter: the time
};

exit_status explain(const explain_options& options) {
  const std::unique_ptr<filter_handle> filter = open_handle({.name = options.filter,
                                                             .secret = options.secret,
                                                             .now = options.now,
                                                             .server = options.server,
                                                             .check = options.check,
                                                             .takes_layers = true});
  const std::optional<std::uint64_t> slices_of = fix_time(*filter, options.now);
  if (options.now && !slices_of) {
    throw error(errc::invalid_argument,
                {"this filter is always explained as of its newest generation", "--now",
                 "a pulled copy of a sliding-window filter", shown_name(options.filter), "leave it out"});
  }
  if (!filter->capabilities().has_cells) {
    throw error(errc::incompatible, {"the cells of a key cannot be shown for this kind of filter",
                                     shown_name(options.filter), "", "", "use 'bloomery check'"});
  }
  std::vector<explained_key> explained;
  for (const std::string& key : options.keys) explained.push_back(explain_key(*filter, key));
  const bool owners_known = !options.owners.files.empty();
  owners_of_cells found;
  if (owners_known) {
    const key_explanation& any = explained.front().found;
    if (!cells_have_owners(any) && !any.fingerprint && !any.slots) {
      throw error(errc::invalid_argument,
                  {"the keys that set a cell can be listed only for filters in files without a window",
                   shown_name(options.filter), "", "", "leave out --keys"});
    }
    find_owners(*filter, options.owners, explained, found);
  }

  const explanation_page page(*filter, owners_known ? &found : nullptr, slices_of);
  const std::optional<window_facts> window =
      explained.front().found.generations.empty() ? std::nullopt : filter->summary().window;
  output out(STDOUT_FILENO, "standard output");
  json keys = json::array();
  for (const explained_key& e : explained) {
    if (options.json)
      keys.push_back(page.to_json(e));
    else
      out.write(page.to_text(e, window));
  }
  if (options.json) {
    json result = {{"filter", shown_name(options.filter)}};
    if (slices_of) result["time"] = seconds_json(*slices_of);
    result["keys"] = std::move(keys);
    out.write(json_line(result));
  }
  out.flush();
  const bool any =
      std::any_of(explained.begin(), explained.end(), [](const explained_key& e) { return e.found.maybe_present; });
  return any ? exit_status::found : exit_status::nothing;
}

}  // namespace

void add_explain(command_line& line) {
  command& c = line.root.subcommand("explain", "show why a filter reports a key as present or absent");
  auto& o = line.options_of(c, explain);
  c.positional("FILTER", o.filter, file_or_address).required().file();
  c.positional("KEY", o.keys, "keys to explain").required();
  add_key_shape(line, c, o.owners);
  c.option("--keys", o.owners.files, "FILE", "file of inserted keys; for each bit, list the keys that set it").file();
  add_secret(c, o.secret);
  add_now(c, o.now);
  add_no_verify(c, o.check);
  c.flag("--json", o.json, "print the result as one JSON object").group(of_all_verbs);
  add_from_replicas(c, o.server);
  add_server(c, o.server);
  c.example("bloomery explain cities.bloom Berlin");
  c.example("bloomery explain cities.bloom Berlin --keys cities.txt");
  c.footer(
      "Blocks, bits and counters are numbered from 0. The page of the playground numbers bits from 1.\n"
      "Exit status: 0 if at least one of the keys may be present, 1 if none is, 2 on error.");
}

}  // namespace bloomery::cli
