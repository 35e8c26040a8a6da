#include "cli/commands/audit.hpp"

#include "app/fpr_cause.hpp"
#include "app/numbers.hpp"
#include "cli/commands/common.hpp"
#include "cli/commands/fpr_watch.hpp"
#include "cli/commands/grammar.hpp"
#include "cli/io/answering_program.hpp"
#include "cli/io/output.hpp"
#include "cli/text/color.hpp"

#include <bloomery/judgement.hpp>
#include <bloomery/layouts/classic.hpp>
#include <bloomery/measure.hpp>

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <utility>

namespace bloomery::cli {
namespace {

constexpr std::uint64_t default_timeout = 60'000;        // milliseconds
constexpr double usual_false_positives = 4000;           // 1.6% deviation
constexpr std::uint64_t most_usual_queries = 1'000'000;  // slow programs answer 100,000 lines per second
constexpr double four_sigmas = 3.2e-5;                   // the probability that chance exceeds four deviations

// ---- the verdict ----------------------------------------------------------------------------------------------------

struct audit_findings {
  std::vector<fill_level> levels;
  std::vector<double> expected;  // FPR per level
  std::uint64_t looked_up = 0;   // inserted keys
  false_negatives missing;
  fpr_judgement judgement;
  std::vector<fpr_cause> causes;

  const measured_rate& measured() const { return levels.back().measured; }
  bool is_sound() const { return !judgement.is_broken() && missing.keys == 0; }
};

std::vector<fill_level> levels_of(const experiment& e, const std::vector<measured_point>& points) {
  std::vector<fill_level> levels;
  for (const measured_point& point : points) {
    fill_level level{point.keys, {e.runs * e.queries, 0}};
    for (const double rate : point.rates) {
      level.measured.hits += static_cast<std::uint64_t>(std::llround(rate * static_cast<double>(e.queries)));
    }
    levels.push_back(level);
  }
  return levels;
}

// A filter that keeps the target FPR. Its FPR varies by chance like that of the audited filter.
params keeps_target(const experiment& e, const making_options& wanted) {
  if (wanted.bits && !wanted.rate) return e.filter;  // the target FPR is that of the given size
  params p;
  p.layout = wanted.layout.empty() ? std::string(layouts::classic::name) : wanted.layout;
  p.capacity = e.filter.capacity;
  p.target_fpr = e.filter.target_fpr;
  return complete(std::move(p));
}

// The rule for our own filters, applied to a measured FPR: broken only if the limit of judge_fpr() is exceeded by more
// than the chance of the lookups explains. The mean of several filters varies less.
fpr_judgement judge(const params& keeps, std::uint64_t runs, const measured_rate& measured) {
  fpr_judgement result = judge_fpr(keeps, measured.rate());
  if (result.verdict == fpr_verdict::no_target) return result;
  result.limit = result.target * std::pow(result.limit / result.target, 1 / std::sqrt(static_cast<double>(runs)));
  const bool exceeds =
      measured.rate() > result.limit && chance_of(measured.hits, measured.queries, result.limit) < four_sigmas;
  if (result.verdict != fpr_verdict::kept) result.verdict = exceeds ? fpr_verdict::broken : fpr_verdict::within_chance;
  return result;
}

// ---- the report -----------------------------------------------------------------------------------------------------

std::string table_of(const experiment& e, const audit_findings& f) {
  std::string text =
      fmt::format("{:>13}  {:>5}  {:>9}  {:>9}  {}\n", "keys", "of n", "expected", "measured", "95% interval");
  for (std::size_t i = 0; i < f.levels.size(); ++i) {
    const fill_level& level = f.levels[i];
    const interval range = level.measured.within();
    text += fmt::format("{:>13}  {:>4.0f}%  {:>9}  {:>9}  {} to {}\n", count_text(level.keys),
                        100 * static_cast<double>(level.keys) / static_cast<double>(e.filter.capacity),
                        rate_text(f.expected[i]), rate_text(level.measured.rate()), rate_text(range.low),
                        rate_text(range.high));
  }
  return text;
}

std::string verdict_of(const audit_findings& f) {
  const fpr_judgement& j = f.judgement;
  if (j.is_broken()) {
    return painted("above target", tone::bad, STDOUT_FILENO) +
           fmt::format(": measured FPR {}, target {}", rate_with_interval(f.measured()), rate_text(j.target));
  }
  if (j.verdict == fpr_verdict::no_target || j.target >= 1) return "no target FPR";
  if (j.verdict == fpr_verdict::within_chance && f.measured().within().low > j.target) {
    return fmt::format("inconclusive: above target, but perhaps by chance; use --runs: measured FPR {}, target {}",
                       rate_with_interval(f.measured()), rate_text(j.target));
  }
  // With fewer expected false positives, only a gross excess would be noticed.
  constexpr double enough = 10;
  if (j.target * static_cast<double>(f.measured().queries) < enough) {
    return fmt::format("no excess found, but few lookups: measured FPR {}, target {}", rate_with_interval(f.measured()),
                       rate_text(j.target));
  }
  return painted("target kept", tone::good, STDOUT_FILENO) +
         fmt::format("{}: measured FPR {}, target {}", j.verdict == fpr_verdict::within_chance ? " within chance" : "",
                     rate_with_interval(f.measured()), rate_text(j.target));
}

std::string text_of(const audit_options& options, const making_options& wanted, const experiment& e,
                    const audit_findings& f) {
  std::string text;
  const auto line = [&](const char* name, const std::string& value) { text += fmt::format("{:<14}{}\n", name, value); };
  line("program", printable(options.command));
  std::string size =
      fmt::format("capacity {} at {}", counted(e.filter.capacity, "key"), rate_text(e.filter.target_fpr));
  if (wanted.bits) size += ", " + counted(*wanted.bits, "bit");
  if (wanted.probes) size += ", " + counted(*wanted.probes, "probe");
  line("filter", size);
  if (e.runs > 1) line("runs", count_text(e.runs));
  text += "\n" + table_of(e, f) + "\n";
  line("present",
       f.missing.keys == 0
           ? fmt::format("{}, all found", counted(f.looked_up, "inserted key"))
           : fmt::format("{}, {} {}, the first: '{}'", counted(f.looked_up, "inserted key"), count_text(f.missing.keys),
                         painted("MISSING", tone::bad, STDOUT_FILENO), printable(f.missing.first)));
  line("verdict", verdict_of(f));
  for (const fpr_cause& cause : f.causes) {
    line(&cause == &f.causes.front() ? "likely cause" : "or",
         fmt::format("{} (FPR {})", cause.text, rate_text(cause.fpr)));
  }
  if (f.judgement.is_broken() && f.causes.empty())
    line("likely cause", "none found; docs/audit.md lists the known causes");
  return text;
}

nlohmann::ordered_json as_json(const audit_options& options, const making_options& wanted, const experiment& e,
                               const audit_findings& f) {
  using json = nlohmann::ordered_json;
  json points = json::array(), causes = json::array();
  for (std::size_t i = 0; i < f.levels.size(); ++i) {
    json point = {{"keys", f.levels[i].keys}, {"predicted", f.expected[i]}};
    point.update(json_of(f.levels[i].measured));
    points.push_back(point);
  }
  for (const fpr_cause& cause : f.causes)
    causes.push_back({{"cause", cause.code}, {"text", cause.text}, {"rate", cause.fpr}});
  json result = {{"program", options.command},
                 {"capacity", e.filter.capacity},
                 {"target_rate", e.filter.target_fpr},
                 {"bits", wanted.bits ? json(*wanted.bits) : json()},
                 {"probes", wanted.probes ? json(*wanted.probes) : json()},
                 {"source", e.lines.empty() ? "addresses" : "lines"},
                 {"runs", e.runs},
                 {"queries", e.queries},
                 {"seed", e.seed},
                 {"points", points},
                 {"present", {{"keys", f.looked_up}, {"missing", f.missing.keys}, {"first_missing", nullptr}}},
                 {"measured", json_of(f.measured())},
                 {"causes", causes}};
  if (f.missing.keys > 0) result["present"]["first_missing"] = f.missing.first;
  add_verdict(result, f.judgement);
  return result;
}

}  // namespace

void add_audit(command& c, audit_options& o) {
  argument& exec =
      c.option("--exec", o.command, "COMMAND", "audit a program that answers 'add KEY' and 'has KEY' with 0 or 1")
          .not_empty();
  for (const char* name : {"--output", "--hash", "--prefer"}) exec.excludes(*c.find(name));
  parsed(c, "--timeout", o.milliseconds, parse_duration, "DURATION",
         "stop if the program makes no progress for this long; default: 60s")
      .needs(exec);
}

params expected_of_audit(making_options wanted, std::uint64_t capacity, double default_rate) {
  const std::optional<double> target = wanted.rate;
  if (wanted.layout.empty() && wanted.scheme.empty()) wanted.layout = layouts::classic::name;
  if (wanted.bits) wanted.rate.reset();
  params result = params_for(wanted, capacity, default_rate);
  if (target) result.target_fpr = *target;
  return result;
}

std::uint64_t queries_of_audit(const experiment& e) {
  return std::clamp<std::uint64_t>(
      most_usual_queries / e.runs, 1,
      queries_for(e.filter.target_fpr, usual_false_positives / static_cast<double>(e.runs)));
}

exit_status audit(const audit_options& options, const making_options& wanted, const common_options& common,
                  experiment& e, const std::function<std::vector<measured_point>(const experiment&)>& carry_out) {
  const params keeps = keeps_target(e, wanted);
  audit_findings f;
  const std::chrono::milliseconds patience(options.milliseconds.value_or(default_timeout));
  e.threads = 1;  // one program at a time
  e.make_remote = [&] { return std::make_unique<answering_program>(options.command, patience, f.missing); };
  const std::vector<measured_point> points = carry_out(e);
  f.levels = levels_of(e, points);
  for (const measured_point& point : points) f.expected.push_back(point.predicted);
  f.looked_up = e.runs * inserted_by(e);
  f.judgement = judge(keeps, e.runs, f.measured());
  if (f.judgement.is_broken()) {
    f.causes = likely_causes({e.filter, wanted.bits.has_value(), wanted.probes.has_value()}, f.levels);
  }
  if (common.json || !common.quiet) {
    output out(STDOUT_FILENO, "standard output");
    out.write(common.json ? json_line(as_json(options, wanted, e, f)) : text_of(options, wanted, e, f));
    out.flush();
  }
  return f.is_sound() ? exit_status::found : exit_status::nothing;
}

}  // namespace bloomery::cli
