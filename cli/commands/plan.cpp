// bloomery plan: computes the third of capacity, FPR and size from the other two, for each layout.
//
//   $ bloomery plan -n 1M -p 1%
//   layout         bits per key  x bound      size probes        capacity        FPR
//   split_block           10.53     1.58  1.26 MiB      8       1,000,000         1%  chosen
//   split_block512        10.10     1.52   1.2 MiB      8       1,000,000         1%  slower than split_block
//   ...
//   Choose split_block: the fastest of 5 within 25% of the least memory (classic, 9.59 bits per key).
//   x bound: bits per key divided by log2(1/FPR), the lower bound for filters of any kind
#include "cli/commands/plan.hpp"
#include "app/advice_text.hpp"
#include "app/layout_choice.hpp"
#include "app/numbers.hpp"
#include "cli/commands/common.hpp"
#include "cli/commands/grammar.hpp"
#include "cli/commands/shared_filter.hpp"
#include "cli/io/output.hpp"

#include <bloomery/advice.hpp>
#include <bloomery/error.hpp>
#include <bloomery/layouts/classic.hpp>
#include <bloomery/sizing.hpp>

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace bloomery::cli {
namespace {

std::string recommendation(const std::vector<layout_plan>& plans) {
  const layout_plan& chosen = chosen_of(plans);
  return "Choose " + chosen.p.layout + ": " + chosen.reason + ".";
}

// A table cell padded to the right.
std::string cell(const std::string& text, std::size_t width) { return fmt::format("{:>{}}", text, width); }

void print_plans(const std::vector<layout_plan>& plans, output& out) {
  out.write("layout         bits per key  x bound      size probes        capacity        FPR\n");
  for (const layout_plan& plan : plans) {
    const params& p = plan.p;
    if (!plan.possible()) {
      out.write(fmt::format("{:<14} {}\n", p.layout, plan.problem));
      continue;
    }
    out.write(fmt::format(
        "{:<14} {} {} {} {} {} {}  {}\n", p.layout, cell(fmt::format("{:.2f}", plan.bits_per_key()), 12),
        cell(times_lower_bound_text(plan.bits_per_key(), lower_bound_bits_per_key(plan.rate)), 8),
        cell(bytes_text(bytes_for(p.geometry.bits)), 9), cell(std::to_string(p.geometry.probes), 6),
        cell(count_text(p.capacity), 15), cell(rate_text(plan.rate), 10), plan.chosen ? "chosen" : plan.reason));
  }
  out.write(recommendation(plans) + "\n");
  out.write("x bound: bits per key divided by log2(1/FPR), the lower bound for filters of any kind\n");
}

nlohmann::ordered_json as_json(const std::vector<layout_plan>& plans, preference prefer) {
  nlohmann::ordered_json layouts = nlohmann::ordered_json::array();
  for (const layout_plan& plan : plans) {
    const params& p = plan.p;
    if (!plan.possible()) {
      layouts.push_back({{"layout", p.layout}, {"problem", plan.problem}, {"ok", false}, {"within", false}});
      continue;
    }
    layouts.push_back({{"layout", p.layout},
                       {"bits", p.geometry.bits},
                       {"bytes", bytes_for(p.geometry.bits)},
                       {"bits_a_key", plan.bits_per_key()},
                       {"lower_bound_bits_a_key", lower_bound_bits_per_key(plan.rate)},
                       {"probes", p.geometry.probes},
                       {"capacity", p.capacity},
                       {"rate", plan.rate},
                       {"ok", true},
                       {"within", plan.within},
                       {"reason", plan.reason}});
  }
  const layout_plan& chosen = chosen_of(plans);
  return {{"layouts", layouts},
          {"advice", recommendation(plans)},
          {"prefer", name_of(prefer)},
          {"chosen", chosen.p.layout},
          {"reason", chosen.reason}};
}

// Typical filter sizes. The sizes are those of the classic layout.
struct table_line {
  double rate;
  std::uint64_t keys;
};

constexpr table_line table_lines[] = {{1e-2, 1'000},   {1e-3, 1'000},     {1e-4, 1'000},     {1e-4, 10'000},
                                      {1e-4, 100'000}, {1e-4, 1'000'000}, {1e-5, 1'000'000}, {1e-6, 1'000'000}};

// All sizes in KiB, so that they can be compared.
std::string table_size(std::uint64_t bytes) {
  const double kib = static_cast<double>(bytes) / 1024;
  return (kib < 100 ? fmt::format("{:.3g}", kib) : count_text(static_cast<std::uint64_t>(std::llround(kib)))) + " KiB";
}

// [M. Ceglowski, "Using Bloom Filters", perl.com 2004] has this table: "1.87 K" for 1% and 1,000 keys, and so on.
constexpr const char* note_on_the_article =
    "Sizes of the layout classic. The table in the article \"Using Bloom Filters\" (perl.com, 2004) contradicts its "
    "own\n"
    "formula: its sizes are 1.56 times as large.\n";

void print_table(bool json, output& out) {
  nlohmann::ordered_json lines = nlohmann::ordered_json::array();
  if (!json) out.write("target FPR        keys        size  bytes per key\n");
  for (const table_line& l : table_lines) {
    const std::uint64_t bits = layouts::classic::bits_for(l.keys, l.rate);
    const std::uint64_t bytes = bytes_for(bits);
    const double bytes_a_key = static_cast<double>(bits) / 8 / static_cast<double>(l.keys);
    if (json) {
      lines.push_back(
          {{"rate", l.rate}, {"keys", l.keys}, {"bits", bits}, {"bytes", bytes}, {"bytes_a_key", bytes_a_key}});
    } else {
      out.write(fmt::format("{} {} {} {}\n", cell(fmt::format("{:g}%", l.rate * 100), 10), cell(count_text(l.keys), 11),
                            cell(table_size(bytes), 11), cell(fmt::format("{:.2f}", bytes_a_key), 14)));
    }
  }
  out.write(json ? json_line({{"table", lines}}) : note_on_the_article);
}

// The layout chosen at each rate, for docs/choice.md.
constexpr double choice_rates[] = {0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 1e-3, 5e-4, 1e-4, 1e-5, 1e-6};
constexpr std::uint64_t choice_keys = 1'000'000;

void print_choices(std::uint64_t keys, preference prefer, bool json, output& out) {
  nlohmann::ordered_json lines = nlohmann::ordered_json::array();
  if (!json) out.write("target FPR  layout          bits per key  probes  more than the least\n");
  for (const double rate : choice_rates) {
    const std::vector<candidate> all = layout_candidates(keys, rate, prefer);
    const auto chosen = std::find_if(all.begin(), all.end(), [](const candidate& c) { return c.chosen; });
    const candidate* least = nullptr;
    for (const candidate& c : all) {
      if (c.possible() && (least == nullptr || c.geometry.bits < least->geometry.bits)) least = &c;
    }
    if (chosen == all.end()) {
      throw error(errc::too_large,
                  {"no layout is possible: " + reason_text(all.back()), "--capacity", "", std::to_string(keys), ""});
    }
    if (json) {
      lines.push_back({{"rate", rate},
                       {"layout", chosen->layout},
                       {"bits", chosen->geometry.bits},
                       {"bits_a_key", chosen->bits_per_key},
                       {"probes", chosen->geometry.probes},
                       {"least_layout", least->layout},
                       {"least_bits", least->geometry.bits},
                       {"least_bits_a_key", least->bits_per_key}});
      continue;
    }
    const double more = 100 * (chosen->bits_per_key / least->bits_per_key - 1);
    out.write(fmt::format("{}  {:<15} {} {}  {}\n", cell(rate_text(rate), 10), chosen->layout,
                          cell(fmt::format("{:.2f}", chosen->bits_per_key), 12),
                          cell(std::to_string(chosen->geometry.probes), 7),
                          chosen == all.begin() + (least - all.data())
                              ? "the least"
                              : fmt::format("{:.1f}% ({}, {:.2f})", more, least->layout, least->bits_per_key)));
  }
  if (json) out.write(json_line({{"prefer", name_of(prefer)}, {"keys", keys}, {"choices", lines}}));
}

exit_status plan(const plan_options& options) {
  if (!options.wanted.scheme.empty()) return plan_scheme(options);
  if (options.redis) return plan_shared(options);
  if (options.advised()) return plan_advice(options);
  output out(STDOUT_FILENO, "standard output");
  const making_options& w = options.wanted;
  check_target_fpr(w);
  const preference prefer = w.prefer.value_or(preference::speed);
  if (options.table) {
    if (w.prefer)
      print_choices(w.capacity.value_or(choice_keys), prefer, options.json, out);
    else
      print_table(options.json, out);
    out.flush();
    return exit_status::found;
  }
  if (w.capacity.has_value() + w.rate.has_value() + w.bits.has_value() != 2) {
    throw error(errc::invalid_argument,
                {"a plan needs two of capacity, false-positive rate and size", "plan",
                 "two of --capacity, --rate and --bits", "", "for example: bloomery plan -n 100M -p 1%"});
  }
  const std::vector<layout_plan> plans = plan_layouts(w);
  if (options.json)
    out.write(json_line(as_json(plans, prefer)));
  else
    print_plans(plans, out);
  out.flush();
  return exit_status::found;
}

// Requirements of a filter.
void add_needs(command& c, plan_options& o) {
  c.flag("--deletes", o.deletes, "keys will be removed").group("Requirements");
  const argument& grow = c.flag("--grow", o.wanted.growing, "the number of keys is unknown; -n is the initial capacity")
                             .group("Requirements");
  c.option(
       "--max-keys", [&o](const std::string& text) { o.most_keys = parse_count(text, "--max-keys"); }, "N",
       "maximum number of keys; -n is the minimum")
      .excludes(grow)
      .group("Requirements");
  const argument& time = c.option(
                              "--window",
                              [&o](const std::string& text) {
                                o.wanted.window.length = window_of_milliseconds(parse_duration(text, "--window"));
                              },
                              "DURATION", "forget keys older than this, such as 24h; -n keys arrive in this time")
                             .group("Requirements");
  c.option(
       "--window-keys",
       [&o](const std::string& text) { o.wanted.window.length = window_of_keys(parse_count(text, "--window-keys")); },
       "N", "forget all but the last N keys")
      .excludes(time)
      .group("Requirements");
  c.flag("--sealed", o.sealed, "all keys are known in advance and never change").group("Requirements");
  parsed(c, "--never-for", o.never_for, parse_count, "N", "number of known absent keys, of which none is reported")
      .group("Requirements");
  const argument& log = c.flag(
                             "--log", [&o] { o.log = true; }, "a log of 8 bytes per key on disk is allowed")
                            .group("Requirements");
  c.flag(
       "--no-log", [&o] { o.log = false; }, "no log on disk is allowed (default)")
      .excludes(log)
      .group("Requirements");
  parsed(c, "--memory", o.memory, parse_bits, "SIZE", "maximum memory of the filter: 64MiB").group("Requirements");
  c.flag("--threat", o.threat, "attackers choose keys and benefit from false positives").group("Requirements");
}

}  // namespace

std::string figure_text(double figure) {
  if (figure >= 999.5) return count_text(static_cast<std::uint64_t>(std::round(figure)));
  return figure < 0.995 ? fmt::format("{:.3g}", figure) : fmt::format("{:.2f}", figure);
}

std::string times_lower_bound_text(double bits_per_key, double bound) {
  return bound == 0 ? "-" : figure_text(bits_per_key / bound);
}

std::string lower_bound_text(double bits_per_key, double bound) {
  return fmt::format("{} times the lower bound of {} bits per key", times_lower_bound_text(bits_per_key, bound),
                     figure_text(bound));
}

void add_plan(command_line& line) {
  command& c = line.root.subcommand("plan", "choose the kind, size and false-positive rate of a filter");
  auto& o = line.options_of(c, plan);
  add_size(c, o.wanted, true);
  add_preference(c, o.wanted);
  c.option("--scheme", o.wanted.scheme, "NAME", "parameters of another system ('info --build' lists them)")
      .suggest(scheme_names())
      .not_empty();
  c.flag("--table", o.table, "print typical sizes or, with --prefer, layouts for typical rates");
  add_needs(c, o);
  const argument& redis =
      c.flag("--redis", o.redis, "plan a filter on Redis that many machines share").group("Filters on Redis");
  c.option("--nodes", o.nodes, {1, 1000}, "N", "number of servers in the cluster across which to spread the filter")
      .needs(redis)
      .group("Filters on Redis");
  c.flag("--json", o.json, "print the result as one JSON object").group(of_all_verbs);
  c.example("bloomery plan -n 100M -p 1%");
  c.example("bloomery plan --window 24h -n 10M -p 0.1%");
  c.example("bloomery plan --redis --nodes 6 -n 10G -p 1%");
  c.footer(
      "Given two of -n, -p and -m, plan calculates the third for each layout. If a requirement is given, plan compares "
      "all kinds of filters instead. Then -p defaults to 1%, and without -n the number of keys counts as unknown.");
}

}  // namespace bloomery::cli
