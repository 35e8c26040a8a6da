// bloomery overlap A B: estimates from the bits how many keys two filters have in common.
//
//   $ bloomery overlap mon.bloom tue.bloom
//   keys in A     30,035 +- 114
//   ...
#include "app/numbers.hpp"
#include "cli/commands/common.hpp"
#include "cli/commands/grammar.hpp"
#include "cli/commands/open_handle.hpp"
#include "cli/commands/shared_filter.hpp"
#include "cli/io/output.hpp"

#include <bloomery/measure.hpp>

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <memory>

namespace bloomery::cli {
namespace {

struct overlap_options {
  std::string a;
  std::string b;
  file_check check = file_check::payload;
  bool json = false;
};

nlohmann::ordered_json json_of(const estimate& e) {
  return {{"value", number_or_null(e.value)}, {"sigma", number_or_null(e.sigma)}, {"noise", e.is_noise()}};
}

exit_status overlap_of(const overlap_options& options) {
  refuse_shared(options.a, "overlap");
  refuse_shared(options.b, "overlap");
  const std::unique_ptr<filter_handle> a = open_handle({.name = options.a, .facts_only = true, .check = options.check});
  const std::unique_ptr<filter_handle> b = open_handle({.name = options.b, .facts_only = true, .check = options.check});
  const params& p = a->parameters();
  check_compatible(options.a, p, options.b, b->parameters());
  refuse_unless_plain(p, options.a, "overlap", "compare plain filters of their keys");
  const shared_ones ones = count_shared(a->local()->bytes(), b->local()->bytes());
  const overlap o = estimate_overlap(p, ones);
  const bool full = !std::isfinite(o.keys_either.value);
  const bool empty = ones.a == 0 || ones.b == 0;
  const bool tells = !full && !empty && !o.keys_both.is_noise();

  output out(STDOUT_FILENO, "standard output");
  if (options.json) {
    out.write(json_line({{"a", options.a},
                         {"b", options.b},
                         {"bits", p.geometry.bits},
                         {"ones_a", ones.a},
                         {"ones_b", ones.b},
                         {"ones_shared", ones.both},
                         {"ones_shared_by_chance", o.shared_by_chance},
                         {"keys_a", json_of(o.keys_a)},
                         {"keys_b", json_of(o.keys_b)},
                         {"keys_either", json_of(o.keys_either)},
                         {"keys_both", json_of(o.keys_both)},
                         {"jaccard", json_of(o.jaccard)}}));
  } else {
    const auto line = [&](const char* name, const std::string& value) {
      out.write(fmt::format("{:<14}{}\n", name, value));
    };
    const auto keys = [&](const estimate& e) {
      return std::isfinite(e.value) ? keys_text(e, "key") : "unknown: all bits are set";
    };
    line("A", fmt::format("{}: {}", options.a, keys(o.keys_a)));
    line("B", fmt::format("{}: {}", options.b, keys(o.keys_b)));
    line("either", keys(o.keys_either));
    line("shared bits", fmt::format("{}; expected without common keys: {}", count_text(ones.both),
                                    count_text(static_cast<std::uint64_t>(std::llround(o.shared_by_chance)))));
    if (full) {
      line("both", "unknown: all bits are set");
    } else if (empty) {
      line("both", std::string("none: ") +
                       (ones.a == 0 && ones.b == 0 ? "both filters are"
                        : ones.a == 0              ? "A is"
                                                   : "B is") +
                       " empty");
    } else if (tells) {
      line("both", keys(o.keys_both));
      line("Jaccard", fmt::format("{:.4f} +- {:.4f}", o.jaccard.value, o.jaccard.margin()));
    } else {
      line("both",
           fmt::format("not detectable: fewer than {} are within chance",
                       counted(static_cast<std::uint64_t>(std::ceil(3 * o.keys_both.sigma)) + 1, "common key")));
    }
  }
  out.flush();
  return tells ? exit_status::found : exit_status::nothing;
}

}  // namespace

void add_overlap(command_line& line) {
  command& c = line.root.subcommand("overlap", "estimate how many keys two filters have in common");
  auto& o = line.options_of(c, overlap_of);
  c.positional("A", o.a, "file of the first filter").required().file();
  c.positional("B", o.b, "file of the second filter, of the same kind and size").required().file();
  add_no_verify(c, o.check);
  c.flag("--json", o.json, "print the result as one JSON object").group(of_all_verbs);
  c.example("bloomery overlap mon.bloom tue.bloom");
  c.footer("Exit status: 0 if the filters have keys in common, 1 if no overlap can be shown, 2 on error.");
}

}  // namespace bloomery::cli
