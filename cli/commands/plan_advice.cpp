// bloomery plan with requirements: chooses the kind of filter.
//
//   $ bloomery plan -n 1M -p 1% --deletes
//   choice    quotient7: 10.45 bits per key; 1.25 MiB
//   FPR       0.952% with 1,000,000 keys
//   memory    1.56 times the lower bound of 6.71 bits per key
//   lookup    2 cache lines at most
//   reason    ...
//   command   bloomery build --quotient -n 1000000 -p 1% -o FILTER INPUT
//
// The library makes the choice (bloomery/advice.hpp). This file prints it with the commands that create the filter.
#include "app/advice_text.hpp"
#include "app/numbers.hpp"
#include "cli/commands/common.hpp"
#include "cli/commands/plan.hpp"
#include "cli/commands/window.hpp"
#include "cli/io/output.hpp"

#include <bloomery/advice.hpp>
#include <bloomery/detail/static_payload.hpp>
#include <bloomery/error.hpp>
#include <bloomery/layouts/sliding.hpp>
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

requirements requirements_of(const plan_options& o) {
  const making_options& w = o.wanted;
  requirements r;
  r.keys = w.capacity.value_or(0);
  r.most_keys = o.most_keys.value_or(0);
  // If all keys that will be looked up are known, the rate of other keys does not matter.
  r.rate = w.rate.value_or(o.never_for ? 0.5 : default_fpr);
  r.grows = w.growing;
  r.deletes = o.deletes;
  r.sealed = o.sealed;
  r.never_for = o.never_for.value_or(0);
  r.window = w.window.length.value_or(window_length{});
  r.log = o.log.value_or(false);
  r.memory_bytes = o.memory ? bytes_for(*o.memory) : 0;
  r.threat = o.threat;
  r.prefer = w.prefer.value_or(preference::speed);
  return r;
}

void check_needs(const plan_options& o) {
  const auto refuse = [](const char* option, const char* hint) {
    throw error(errc::invalid_argument, {"cannot be combined with requirements", option, "", "", hint});
  };
  if (o.wanted.bits) refuse("--bits", "use --memory for the maximum memory");
  if (o.wanted.probes) refuse("--probes", "leave it out");
  if (o.table) refuse("--table", "leave it out");
  const auto refuse_zero = [](const std::optional<std::uint64_t>& number, const char* option) {
    if (number && *number == 0) throw error(errc::invalid_argument, {"invalid value", option, "1 or more", "0", ""});
  };
  refuse_zero(o.wanted.capacity, "--capacity");
  refuse_zero(o.most_keys, "--max-keys");
  refuse_zero(o.never_for, "--never-for");
  refuse_zero(o.memory, "--memory");
  if (o.wanted.window.length) refuse_zero(o.wanted.window.length->count, "--window-keys");
}

// ---- commands that create the filter

// The options for a layout that the command would not choose by default.
std::string layout_option(const params& p, preference prefer) {
  params unnamed = p;
  unnamed.layout.clear();
  unnamed.geometry = {};
  if (complete(unnamed, prefer).layout != p.layout) return " --layout " + p.layout;
  return prefer == preference::memory ? " --prefer memory" : "";
}

std::string seal_command(const params& p) {
  const unsigned width = find_layout_facts(p.layout)->fingerprint_bits;
  const bool is_ribbon = p.layout == static_layout_name(static_structure::ribbon, width);
  return fmt::format("bloomery seal --width {}{}", width, is_ribbon ? " --ribbon" : "");
}

std::vector<std::string> commands_for(const requirements& r, const advice& a) {
  const option& o = a.taken;
  std::vector<std::string> commands;
  if (a.needs_secret) commands.emplace_back("bloomery keygen -o KEY");
  const std::string secret = a.needs_secret ? " --secret KEY" : "";
  const std::string keys = fmt::format(" -n {}", o.for_keys);
  const std::string rate = rate_option(r.rate);
  const std::string rest = secret + " -o FILTER INPUT";
  params plain = o.parameters;
  if (a.needs_secret) plain.hash.clear();
  switch (o.take) {
    case structure::plain:
      // A filter for the maximum number of keys can be halved if there are fewer.
      commands.push_back("bloomery build" + keys + rate + layout_option(plain, r.prefer) +
                         (r.keys != 0 && r.keys < o.for_keys ? " --foldable" : "") + rest);
      break;
    case structure::counting: commands.push_back("bloomery build --counting" + keys + rate + rest); break;
    case structure::quotient:
      commands.push_back(std::string("bloomery build --quotient") + (o.doubles ? " --grow" : "") + keys + rate + rest);
      break;
    case structure::sliding_window:
      commands.push_back(
          "bloomery build" + window_option(o.parameters) + (o.parameters.window().by_time() ? keys : "") + rate +
          (o.parameters.layout == layouts::sliding::name ? "" : " --layout " + o.parameters.layout) + rest);
      break;
    case structure::static_set:
      commands.push_back(seal_command(o.parameters) + (r.never_for != 0 ? " --never-for ABSENT" : "") + rest);
      break;
    case structure::scalable: commands.push_back("bloomery dedup --grow" + rate + secret + " INPUT"); break;
    case structure::rebuilding: commands.push_back("bloomery build --grow" + rate + rest); break;
  }
  return commands;
}

// ---- text

std::string lines_text(std::uint32_t lines) { return counted(lines, "cache line") + (lines == 1 ? "" : " at most"); }

std::string taken_text(const option& o) {
  const std::string layout = o.layout();
  std::string s = layout.starts_with(name_of(o.take)) ? layout : name_of(o.take) + (" (" + layout + ")");
  s += fmt::format(": {} bits per key", figure_text(o.bits_per_key));
  if (o.worst_bits_per_key != o.bits_per_key) s += ", " + figure_text(o.worst_bits_per_key) + " in the worst case";
  s += "; " + bytes_text(o.bytes);
  if (o.worst_bits_per_key != o.bits_per_key) s += " at most";
  if (o.disk_bytes != 0) s += ", and a log on disk of " + bytes_text(o.disk_bytes);
  return s;
}

bool grows(const option& o) { return o.take == structure::scalable || o.take == structure::rebuilding; }

void print(const requirements& r, const advice& a, output& out) {
  const option& o = a.taken;
  const auto line = [&](const char* name, const std::string& text) {
    out.write(fmt::format("{:<8}  {}\n", name, text));
  };
  line("choice", taken_text(o));
  std::string error = fmt::format("{} with {}", rate_text(o.rate), counted(o.for_keys, "key"));
  if (r.never_for != 0) error += fmt::format(", but 0 for {}", counted(r.never_for, "known absent key"));
  if (grows(o)) error += fmt::format(", never more than {}", rate_text(r.rate));
  line("FPR", error);
  if (grows(o) && r.keys == 0 && r.most_keys == 0) {
    line("", fmt::format("(the number of keys is unknown; the figures are for {})", count_text(o.for_keys)));
  }
  line("memory", lower_bound_text(o.bits_per_key, o.lower_bound_bits_per_key));
  line("lookup", lines_text(o.lines));
  line("reason", taken_reason(r, a));
  for (const std::string& command : commands_for(r, a)) line("command", command);
  for (const caution c : a.cautions) line("warning", caution_text(a, c));
  out.write("alternatives\n");
  for (const change& c : a.changes) out.write("  " + change_text(r, a, c) + "\n");
  out.write("rejected\n");
  for (const option& passed : a.passed_over) {
    out.write(fmt::format("  {:<9}  {}\n", name_of(passed.take), passed_reason(r, a, passed)));
  };
}

nlohmann::ordered_json as_json(const option& o, const std::string& reason) {
  nlohmann::ordered_json j = {{"take", name_of(o.take)}, {"ok", o.possible()}};
  if (o.possible()) {
    j["layout"] = o.layout();
    j["bits_a_key"] = o.bits_per_key;
    j["worst_bits_a_key"] = o.worst_bits_per_key;
    j["lower_bound_bits_a_key"] = o.lower_bound_bits_per_key;
    j["keys"] = o.for_keys;
    j["bytes"] = o.bytes;
    j["disk_bytes"] = o.disk_bytes;
    j["rate"] = o.rate;
    j["lines"] = o.lines;
  }
  j["reason"] = reason;
  return j;
}

nlohmann::ordered_json as_json(const requirements& r, const advice& a) {
  nlohmann::ordered_json changes = nlohmann::ordered_json::array();
  for (const change& c : a.changes) {
    changes.push_back({{"what", phrase_of(r, c.what)},
                       {"take", name_of(c.then.take)},
                       {"layout", c.then.layout()},
                       {"bits_a_key", c.then.bits_per_key},
                       {"worst_bits_a_key", c.then.worst_bits_per_key},
                       {"text", change_text(r, a, c)}});
  }
  nlohmann::ordered_json room;  // null: no limit, or the number of keys is known
  if (a.most_keys_in_memory != 0) room = a.most_keys_in_memory;
  nlohmann::ordered_json passed = nlohmann::ordered_json::array();
  for (const option& o : a.passed_over) passed.push_back(as_json(o, passed_reason(r, a, o)));
  nlohmann::ordered_json warnings = nlohmann::ordered_json::array();
  for (const caution c : a.cautions) warnings.push_back(caution_text(a, c));
  return {{"taken", as_json(a.taken, taken_reason(r, a))},
          {"hash", a.taken.parameters.hash},
          {"needs_secret", a.needs_secret},
          {"most_keys_in_memory", room},
          {"commands", commands_for(r, a)},
          {"warnings", warnings},
          {"changes", changes},
          {"passed_over", passed}};
}

}  // namespace

exit_status plan_advice(const plan_options& options) {
  check_needs(options);
  const requirements r = requirements_of(options);
  const advice a = advise(r);
  output out(STDOUT_FILENO, "standard output");
  if (options.json)
    out.write(json_line(as_json(r, a)));
  else
    print(r, a, out);
  out.flush();
  return exit_status::found;
}

}  // namespace bloomery::cli
