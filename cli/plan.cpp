// bloomery plan: give two of keys, error rate and size, get the third, for each layout.
//
//   $ bloomery plan -n 1M -p 1%
//   layout       bits a key       size  probes      keys  error at n
//   split_block       10.53   1.26 MiB       8  1,000,000        1 %
//   classic            9.59   1.14 MiB       7  1,000,000        1 %
//   Take split_block: ...
#include "commands.hpp"
#include "numbers.hpp"
#include "output.hpp"

#include <bloomery/error.hpp>
#include <bloomery/layouts/classic.hpp>
#include <bloomery/layouts/split_block.hpp>

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace bloomery::cli {
namespace {

struct row {
  params p;             // complete, if possible
  std::string problem;  // why not, in words

  double bits_a_key() const { return static_cast<double>(p.geometry.bits) / static_cast<double>(p.capacity); }
  double rate() const { return false_positive_rate(p, p.capacity); }
};

// The fewest bits with which classic keeps p at n keys when k is fixed.
std::uint64_t classic_bits(std::uint64_t n, double p, std::uint32_t k) {
  std::uint64_t enough = 1;
  while (classic::false_positive_rate({enough, k}, n) > p) {
    if (enough >= std::uint64_t{1} << 62) {
      throw error(errc::too_large, {"no size keeps this rate with so many probes", "-k", "", std::to_string(k), ""});
    }
    enough *= 2;
  }
  std::uint64_t short_of = enough / 2;
  while (enough - short_of > 1) {
    const std::uint64_t middle = short_of + (enough - short_of) / 2;
    (classic::false_positive_rate({middle, k}, n) <= p ? enough : short_of) = middle;
  }
  return enough;
}

// The k with which m bits hold the most keys at rate p.
params roomiest(params p, double rate, std::optional<std::uint64_t> probes) {
  const auto ideal = static_cast<std::uint32_t>(std::clamp(std::round(-std::log2(rate)), 1.0, 64.0));
  std::uint32_t from = probes ? static_cast<std::uint32_t>(*probes) : std::max(ideal, 2u) - 1;
  const std::uint32_t to = probes ? from : ideal + 1;
  params best = p;
  for (; from <= to; ++from) {
    p.geometry.probes = from;
    p.capacity = keys_within(p, rate);
    if (best.geometry.probes == 0 || p.capacity > best.capacity) best = p;
  }
  return best;
}

params solve(const making_options& wanted, const std::string& layout) {
  making_options w = wanted;
  w.layout = layout;
  const bool blocked = layout == split_block::name;
  if (blocked && w.probes && *w.probes != split_block::lanes) {
    throw error(errc::invalid_argument, {"split_block always has 8 probes", "-k", "8", std::to_string(*w.probes), ""});
  }
  if (w.capacity && w.rate) {
    if (w.probes && !blocked) {
      w.bits = classic_bits(*w.capacity, *w.rate, static_cast<std::uint32_t>(*w.probes));
      w.rate.reset();
    }
    if (blocked) w.probes.reset();
    return params_for(w, *w.capacity, 0);
  }
  if (w.capacity) return params_for(w, *w.capacity, 0);
  // Size and rate: how many keys?
  params p = params_for({.capacity = {},
                         .rate = {},
                         .bits = w.bits,
                         .probes = blocked ? std::nullopt : std::optional<std::uint64_t>(w.probes.value_or(1)),
                         .layout = layout,
                         .scheme = {},
                         .hash = {},
                         .keys = key_kind::bytes,
                         .seed = 0},
                        1, 0);
  p.target_rate = *w.rate;
  if (blocked)
    p.capacity = keys_within(p, *w.rate);
  else {
    p.geometry.probes = 0;
    p.capacity = 0;
    p = roomiest(p, *w.rate, w.probes);
  }
  if (p.capacity == 0)
    throw error(errc::invalid_argument, {"too small for a single key at this rate", "-m", "", "", ""});
  return p;
}

std::string advice(const std::vector<row>& rows) {
  const row& block = rows[0];
  const row& least = rows[1];
  if (!least.problem.empty()) return "No layout does this.";
  if (!block.problem.empty()) return "Take classic: split_block cannot do this.";
  if (block.rate() > 1.5 * least.rate() || least.p.capacity > block.p.capacity * 3 / 2) {
    return "Take classic: in this size split_block is wrong more often; it touches one cache line a key, classic "
           "several.";
  }
  const double more = block.bits_a_key() / least.bits_a_key() - 1;
  if (more > 0.4) {
    return fmt::format(
        "Take classic: split_block would need {:.0f} % more memory; it pays only where time matters more.", more * 100);
  }
  return fmt::format("Take split_block: one cache line a key, for {:.0f} % more memory than classic.",
                     std::max(0.0, more * 100));
}

// A table cell padded to the right.
std::string cell(const std::string& text, std::size_t width) { return fmt::format("{:>{}}", text, width); }

void print_rows(const std::vector<row>& rows, output& out) {
  out.write("layout       bits a key        size  probes             keys  error at that\n");
  for (const row& r : rows) {
    if (!r.problem.empty()) {
      out.write(fmt::format("{:<12} {}\n", r.p.layout, r.problem));
      continue;
    }
    out.write(fmt::format("{:<12} {} {} {} {} {}\n", r.p.layout, cell(fmt::format("{:.2f}", r.bits_a_key()), 10),
                          cell(bytes_text(bytes_for(r.p.geometry.bits)), 11),
                          cell(std::to_string(r.p.geometry.probes), 7), cell(count_text(r.p.capacity), 16),
                          cell(rate_text(r.rate()), 14)));
  }
  out.write(advice(rows) + "\n");
}

nlohmann::ordered_json as_json(const std::vector<row>& rows) {
  nlohmann::ordered_json layouts = nlohmann::ordered_json::array();
  for (const row& r : rows) {
    if (!r.problem.empty()) {
      layouts.push_back({{"layout", r.p.layout}, {"problem", r.problem}});
      continue;
    }
    layouts.push_back({{"layout", r.p.layout},
                       {"bits", r.p.geometry.bits},
                       {"bytes", bytes_for(r.p.geometry.bits)},
                       {"bits_a_key", r.bits_a_key()},
                       {"probes", r.p.geometry.probes},
                       {"capacity", r.p.capacity},
                       {"rate", r.rate()}});
  }
  return {{"layouts", layouts}, {"advice", advice(rows)}};
}

// How large filters are, for a first idea. The sizes are classic's, exact.
struct table_line {
  double rate;
  std::uint64_t keys;
};

constexpr table_line table_lines[] = {{1e-2, 1'000},   {1e-3, 1'000},     {1e-4, 1'000},     {1e-4, 10'000},
                                      {1e-4, 100'000}, {1e-4, 1'000'000}, {1e-5, 1'000'000}, {1e-6, 1'000'000}};

// Thousands of bytes in KiB, millions in MB, as the table has been printed elsewhere.
std::string table_size(std::uint64_t bytes) {
  const auto value = static_cast<double>(bytes);
  return value < 1e6 ? fmt::format("{:.3g} KiB", value / 1024) : fmt::format("{:.2f} MB", value / 1e6);
}

void print_table(bool json, output& out) {
  nlohmann::ordered_json lines = nlohmann::ordered_json::array();
  if (!json) out.write("error rate        keys        size  bytes a key\n");
  for (const table_line& l : table_lines) {
    const std::uint64_t bits = classic::bits_for(l.keys, l.rate);
    const std::uint64_t bytes = bytes_for(bits);
    const double bytes_a_key = static_cast<double>(bits) / 8 / static_cast<double>(l.keys);
    if (json) {
      lines.push_back(
          {{"rate", l.rate}, {"keys", l.keys}, {"bits", bits}, {"bytes", bytes}, {"bytes_a_key", bytes_a_key}});
    } else {
      out.write(fmt::format("{} {} {} {}\n", cell(fmt::format("{:g} %", l.rate * 100), 10),
                            cell(count_text(l.keys), 11), cell(table_size(bytes), 11),
                            cell(fmt::format("{:.2f}", bytes_a_key), 12)));
    }
  }
  if (json) out.write(json_line({{"table", lines}}));
}

}  // namespace

exit_status plan(const plan_options& options) {
  output out(STDOUT_FILENO, "standard output");
  if (options.table) {
    print_table(options.json, out);
    out.flush();
    return exit_status::found;
  }
  const making_options& w = options.wanted;
  check_promise(w);
  if (w.capacity.has_value() + w.rate.has_value() + w.bits.has_value() != 2) {
    throw error(errc::invalid_argument, {"a plan follows from two of keys, error rate and size", "plan",
                                         "two of -n, -p, -m", "", "for example: bloomery plan -n 100M -p 1%"});
  }
  std::vector<row> rows;
  for (const std::string_view layout : {split_block::name, classic::name}) {
    row r;
    r.p.layout = layout;
    try {
      r.p = solve(w, r.p.layout);
    } catch (const error& e) {
      r.problem = e.what();
    }
    rows.push_back(std::move(r));
  }
  if (std::all_of(rows.begin(), rows.end(), [](const row& r) { return !r.problem.empty(); })) {
    throw error(errc::invalid_argument, {"no layout does this: " + rows.back().problem, "plan", "", "", ""});
  }
  if (options.json)
    out.write(json_line(as_json(rows)));
  else
    print_rows(rows, out);
  out.flush();
  return exit_status::found;
}

}  // namespace bloomery::cli
