// params: completion and comparison.
#include <bloomery/params.hpp>

#include <bloomery/error.hpp>
#include <bloomery/hash.hpp>
#include <bloomery/layouts/classic.hpp>
#include <bloomery/scheme.hpp>

#include "registry/choice.hpp"
#include "registry/tables.hpp"
#include "registry/windows.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

namespace bloomery {
namespace {

[[noreturn]] void unknown(const char* table, const std::string& name, const std::string& names) {
  throw error(errc::invalid_argument, {std::string("unknown ") + table, "", "one of " + names, "'" + name + "'", ""});
}

const scheme& scheme_of(const params& p) {
  const scheme* row = find_scheme(p.scheme);
  if (row == nullptr) unknown("scheme", p.scheme, names_of(schemes()));
  if (!p.layout.empty() || !p.hash.empty()) {
    throw error(errc::invalid_argument,
                {"a scheme has its own layout and hash", "scheme", "", "", hint::name_layout_or_scheme});
  }
  if (p.secret) {
    throw error(errc::invalid_argument, {"a scheme has its own hashes, which do not use a secret", "secret", "",
                                         "scheme " + p.scheme, hint::use_a_layout});
  }
  if (p.keys != key_kind::bytes) {
    throw error(errc::invalid_argument,
                {"a scheme cannot hash integer keys", "scheme", "", "integer keys", hint::use_a_layout});
  }
  return *row;
}

// Salts replace the hashes that a seed selects, so there is no seed. Requires a geometry.
void check_salts(const params& p) {
  const auto salts = p.salts();
  if (!std::holds_alternative<salt_list>(p.extra)) return;
  const auto refuse = [](std::string what, std::string expected, std::string found) {
    throw error(errc::invalid_argument, {std::move(what), "salts", std::move(expected), std::move(found), hint::none});
  };
  const scheme* const row = find_scheme(p.scheme);
  if (row == nullptr || row->salt_for == nullptr)
    refuse("these hashes have no salts", "a scheme with salts: perl or valkey_bloom", "'" + p.layout + p.scheme + "'");
  const auto [fixed_count, length] = row->salts;
  const std::uint32_t count = fixed_count == 0 ? p.geometry.probes : fixed_count;
  if (salts.size() != count)
    refuse("number of salts of scheme " + p.scheme,
           std::to_string(count) + (fixed_count == 0 ? ", one for each probe" : ""), std::to_string(salts.size()));
  if (p.seed != 0) refuse("salts replace a seed", "seed 0", std::to_string(p.seed));
  std::size_t bytes = 0;
  for (const std::string& salt : salts) {
    if (length != 0 && salt.size() != length)
      refuse("length of a salt of scheme " + p.scheme, std::to_string(length) + " bytes", std::to_string(salt.size()));
    if (salt.size() > salt_list::longest)
      refuse("a salt is too long", "at most 255 bytes", std::to_string(salt.size()));
    bytes += 1 + salt.size();
  }
  if (bytes > salt_list::most_bytes) {
    refuse("the salts are too long for the header of a file", "at most 3008 bytes, with one more for each salt",
           std::to_string(bytes));
  }
}

const layout_row& layout_of(const params& p) {
  const layout_row* row = find_layout(p.layout);
  if (row == nullptr) unknown("layout", p.layout, names_of(layout_rows()));
  return *row;
}

std::string_view default_hash_name(const params& p) {
  if (p.keys == key_kind::u64le) return default_hash<std::uint64_t>::type::name;
  const layout_row* row = find_layout(p.layout);
  return row != nullptr && row->hash_bits == 64 ? default_hash<std::string_view, 64>::type::name
                                                : default_hash<std::string_view>::type::name;
}

void complete_hash(params& p) {
  if (p.hash.empty()) p.hash = p.secret ? siphash::name : default_hash_name(p);
  const hash_row* row = find_hash(p.hash);
  if (row == nullptr) unknown("hash", p.hash, names_of(hash_rows()));
  if (p.keys == key_kind::bytes && !row->takes_bytes) {
    throw error(errc::invalid_argument, {"this hash is for integer keys", p.hash, "", "", hint::use_hash_for_bytes});
  }
  if (p.seed > row->most_seed) {
    throw error(errc::invalid_argument, {"seed out of range for hash " + p.hash, "seed",
                                         "at most " + std::to_string(row->most_seed), std::to_string(p.seed), ""});
  }
  if (row->keyed && !p.secret) {
    throw error(errc::invalid_argument, {"this hash needs a secret key", p.hash, "", "", hint::give_a_secret});
  }
  if (!row->keyed && p.secret) {
    throw error(errc::invalid_argument,
                {"this hash does not use a secret", p.hash, "hash siphash", "", hint::leave_out_secret_or_hash});
  }
  const std::uint64_t check = p.secret ? key_check(*p.secret) : 0;
  if (p.key_check != 0 && p.key_check != check) {
    throw error(errc::incompatible,
                {"wrong secret", "secret", "the key with check value " + key_check_text(p.key_check),
                 key_check_text(check), hint::give_the_secret});
  }
  p.key_check = check;
}

geometry geometry_for(const scheme& row, const params& p) { return row.geometry_for(p.capacity, p.target_fpr); }

geometry geometry_for(const layout_row& row, const params& p) {
  if (row.window == nullptr || !p.has_window()) return row.geometry_for(p.capacity, p.target_fpr);
  return row.window->geometry_for(fullest_generations(p.window(), p.capacity), p.target_fpr);
}

// Common to layouts and schemes: both have rows with functions for size, check and FPR.
template <class Row>
void complete_size(params& p, const Row& row) {
  if (p.geometry == geometry{}) p.geometry = geometry_for(row, p);
  row.check(p.geometry);
  if (!(p.target_fpr >= 0 && p.target_fpr <= 1)) {
    throw error(errc::invalid_argument, {"the target FPR is not a probability", "rate", "at most 1, or 0 for unknown",
                                         std::to_string(p.target_fpr), ""});
  }
  if (p.target_fpr == 0 && p.capacity > 0) p.target_fpr = expected_fpr(p, p.capacity);
}

// Only classic accepts any number of bits.
void choose(params& p, preference prefer) {
  if (p.geometry != geometry{}) {
    p.layout = layouts::classic::name;
    return;
  }
  const choice chosen = choose_layout(p.capacity, p.target_fpr, prefer);
  p.layout = chosen.layout;
  p.geometry = chosen.geometry;
}

// The width with the fewest bits.
std::string_view smallest_quotient(const params& p) {
  if (p.geometry != geometry{})
    throw error(errc::invalid_argument, {"with a given size, a quotient filter needs a width", "layout",
                                         "quotient4 to quotient24", "quotient", ""});
  std::string_view best;
  std::uint64_t fewest = 0;
  std::optional<error> problem;
  for (const layout_facts& facts : layouts_of(family::quotient)) {
    try {
      const layout_row& row = *find_layout(facts.name);
      const geometry g = row.geometry_for(p.capacity, p.target_fpr);
      // If even the widest slots are more than half empty, the slots do not suit the FPR.
      if (g.bits > 3 * row.block_bits && row.slots->keys_for(g) / 2 > p.capacity) continue;
      if (!best.empty() && g.bits >= fewest) continue;
      best = facts.name;
      fewest = g.bits;
    } catch (const error& e) {
      if (e.code() != errc::too_large) throw;
      problem = e;
    }
  }
  if (!best.empty()) return best;
  if (problem) throw error(*problem);
  throw error(errc::too_large, {"no quotient filter suits this FPR", "rate", "about 1e-8 or more",
                                std::to_string(p.target_fpr), hint::use_higher_rate});
}

constexpr std::string_view quotient_growing = "quotient_growing";

// A filter that grows has as few blocks at first as this permits. The number for its capacity is rounded up to a
// multiple of a power of two, by less than 1/64.
constexpr std::uint64_t least_blocks_at_first = 64;

// The size at first of the smallest quotient filter with this capacity and target FPR.
void start_small(params& p) {
  p.layout = smallest_quotient(p);
  const layout_row* row = find_layout(p.layout);
  std::uint64_t blocks = row->geometry_for(p.capacity, p.target_fpr).bits / row->block_bits;
  while (blocks >= 2 * least_blocks_at_first) {
    const layout_row* const wider = find_layout(name_of(family::quotient) + std::to_string(row->fingerprint_bits + 1));
    if (wider == nullptr) break;
    row = wider;
    blocks = (blocks + 1) / 2;
  }
  p.layout = row->name;
  p.geometry = {blocks * row->block_bits, row->fixed_probes};
}

}  // namespace

const char* name_of(bloomery::family f) noexcept {
  constexpr const char* names[] = {"plain", "counting", "windowed", "sealed", "quotient"};
  return names[static_cast<std::size_t>(f)];
}

unsigned doublings_left(const params& p) noexcept {
  unsigned doublings = 0;
  geometry g = p.geometry;
  for (const slot_calls* slots = slots_of(find_layout(p.layout));
       slots != nullptr && slots->doubled_layout != nullptr && slots->keys_for(g) < p.capacity;
       slots = slots_of(find_layout(slots->doubled_layout))) {
    g.bits *= 2;
    ++doublings;
  }
  return doublings;
}

family family_of(const params& p) noexcept {
  const layout_row* row = find_layout(p.layout);
  if (row != nullptr) return row->family;
  return p.layout == name_of(family::quotient) || p.layout == quotient_growing ? family::quotient : family::plain;
}

std::uint32_t cell_bits_of(const params& p) noexcept {
  const layout_row* row = find_layout(p.layout);
  return row == nullptr ? 1 : row->cell_bits;
}

const char* name_of(key_kind kind) noexcept { return kind == key_kind::bytes ? "bytes" : "u64"; }

params complete(params wanted, preference prefer) {
  params p = std::move(wanted);
  if (!p.scheme.empty()) {
    check_window_length(p);
    complete_size(p, scheme_of(p));
    check_salts(p);
    return p;
  }
  if (p.layout.empty()) choose(p, prefer);
  if (p.layout == name_of(family::quotient)) p.layout = smallest_quotient(p);
  if (p.layout == quotient_growing) start_small(p);
  check_window_length(p);
  if (p.geometry == geometry{} && p.capacity == 0) p.capacity = p.window().keys();
  complete_hash(p);
  complete_size(p, layout_of(p));
  check_salts(p);
  return p;
}

std::string layout_names() { return names_of(layout_rows()); }
std::string hash_names() { return names_of(hash_rows()); }
std::string scheme_names() { return names_of(schemes()); }

std::uint64_t block_bits_of(const params& p) { return p.scheme.empty() ? layout_of(p).block_bits : 0; }

double expected_fpr(const params& p, std::uint64_t keys) {
  if (!p.scheme.empty()) return scheme_of(p).expected_fpr(p.geometry, keys);
  const layout_row& row = layout_of(p);
  if (row.window == nullptr || !p.has_window()) return row.expected_fpr(p.geometry, keys);
  return row.window->rate_of(p.geometry, fullest_generations(p.window(), keys));
}

namespace {

// A salt may have any bytes: 'a\x00'.
std::string quoted(std::string_view bytes) {
  static constexpr char digits[] = "0123456789ABCDEF";
  std::string text = "'";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7F && c != '\'' && c != '\\')
      text += c;
    else
      text += std::string("\\x") + digits[byte >> 4] + digits[byte & 15];
  }
  return text + "'";
}

}  // namespace

std::string difference(const params& a, const params& b) {
  const auto differ = [](const char* field, const std::string& x, const std::string& y) {
    return std::string(field) + ": " + (x.empty() ? "none" : x) + " and " + (y.empty() ? "none" : y);
  };
  if (a.scheme != b.scheme) return differ("scheme", a.scheme, b.scheme);
  if (a.layout != b.layout) return differ("layout", a.layout, b.layout);
  if (family_of(a) == family::static_set) return "layout: " + a.layout + ", a static filter, which cannot be merged";
  if (a.hash != b.hash) return differ("hash", a.hash, b.hash);
  if (a.keys != b.keys) return differ("keys", name_of(a.keys), name_of(b.keys));
  if (a.seed != b.seed) return differ("seed", std::to_string(a.seed), std::to_string(b.seed));
  if (a.key_check != b.key_check) return differ("secret", key_check_text(a.key_check), key_check_text(b.key_check));
  if (a.window() != b.window()) return differ("window", a.window().text(), b.window().text());
  if (a.geometry.bits != b.geometry.bits) {
    return differ("bits", std::to_string(a.geometry.bits), std::to_string(b.geometry.bits));
  }
  if (a.geometry.probes != b.geometry.probes) {
    return differ("probes", std::to_string(a.geometry.probes), std::to_string(b.geometry.probes));
  }
  const auto x = a.salts(), y = b.salts();
  for (std::size_t i = 0; i < std::max(x.size(), y.size()); ++i) {
    const std::string of_a = i < x.size() ? quoted(x[i]) : "", of_b = i < y.size() ? quoted(y[i]) : "";
    if (of_a != of_b) return differ(("salt " + std::to_string(i + 1)).c_str(), of_a, of_b);
  }
  return {};
}

}  // namespace bloomery
