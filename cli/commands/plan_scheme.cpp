// bloomery plan --scheme: the parameters that another library would choose.
//
//   $ bloomery plan --scheme guava -n 1M -p 1%
//   scheme        guava
//   size          1.14 MiB (9,585,058 bits), 9.59 bits per key
//   probes        7 per key
//   capacity      1,000,000 keys
//   expected FPR  1%
//   memory        1.44 times the lower bound of 6.64 bits per key
//
// build --scheme creates filters with the same parameters, because both use params_for().
#include "app/numbers.hpp"
#include "cli/commands/common.hpp"
#include "cli/commands/plan.hpp"
#include "cli/io/output.hpp"

#include <bloomery/error.hpp>
#include <bloomery/judgement.hpp>
#include <bloomery/params.hpp>
#include <bloomery/sizing.hpp>

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

namespace bloomery::cli {
namespace {

void check_options(const plan_options& o) {
  const auto refuse = [](const char* option) {
    throw error(errc::invalid_argument,
                {"cannot be combined with --scheme", option, "", "", "leave out one of the two"});
  };
  if (o.redis) refuse("--redis");
  if (o.table) refuse("--table");
  if (o.advised()) {
    throw error(errc::invalid_argument,
                {"a scheme cannot be combined with requirements", "--scheme", "", "", "leave out --scheme"});
  }
  check_target_fpr(o.wanted);
  if (o.wanted.capacity && (o.wanted.rate || o.wanted.bits)) return;
  throw error(errc::invalid_argument, {"a plan for a scheme needs the capacity and the false-positive rate or the size",
                                       "plan", "--capacity and one of --rate and --bits", "",
                                       "for example: bloomery plan --scheme guava -n 100M -p 1%"});
}

}  // namespace

exit_status plan_scheme(const plan_options& options) {
  check_options(options);
  const params p = params_for(options.wanted, *options.wanted.capacity, options.wanted.rate.value_or(0.01));
  const double fpr = expected_fpr(p, p.capacity);
  const std::uint64_t bytes = bytes_for(p.geometry.bits);
  const double bits_per_key = static_cast<double>(p.geometry.bits) / static_cast<double>(p.capacity);
  const bool misses_target = judge_size(p).is_broken();
  output out(STDOUT_FILENO, "standard output");
  if (options.json) {
    out.write(json_line({{"scheme", p.scheme},
                         {"bits", p.geometry.bits},
                         {"bytes", bytes},
                         {"bits_a_key", bits_per_key},
                         {"lower_bound_bits_a_key", lower_bound_bits_per_key(fpr)},
                         {"probes", p.geometry.probes},
                         {"capacity", p.capacity},
                         {"target_rate", p.target_fpr},
                         {"rate", fpr},
                         {"ok", !misses_target}}));
  } else {
    const auto line = [&](const char* name, const std::string& text) {
      out.write(fmt::format("{:<14}{}\n", name, text));
    };
    line("scheme", p.scheme);
    line("size",
         fmt::format("{} ({}), {:.2f} bits per key", bytes_text(bytes), counted(p.geometry.bits, "bit"), bits_per_key));
    line("probes", fmt::format("{} per key", p.geometry.probes));
    line("capacity", counted(p.capacity, "key"));
    line("expected FPR", rate_text(fpr) + (misses_target ? ", above the target of " + rate_text(p.target_fpr) : ""));
    line("memory", lower_bound_text(bits_per_key, lower_bound_bits_per_key(fpr)));
  }
  out.flush();
  return exit_status::found;
}

}  // namespace bloomery::cli
