// bloomery analyze: fills filters and measures their false-positive rate, beside the expected one.
//
//   $ bloomery analyze -n 100 -p 3% -o chart.svg
//
// The experiment is in experiment.hpp, the charts are in chart.hpp and terminal_chart.hpp, and the audit of other
// programs (--exec) is in audit.hpp.
#include "app/numbers.hpp"
#include "app/signals.hpp"
#include "cli/commands/audit.hpp"
#include "cli/commands/common.hpp"
#include "cli/commands/grammar.hpp"
#include "cli/io/output.hpp"
#include "cli/io/progress.hpp"
#include "cli/io/records.hpp"
#include "cli/io/whole_file.hpp"
#include "cli/text/chart.hpp"
#include "cli/text/terminal_chart.hpp"

#include <bloomery/error.hpp>

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <deque>
#include <string_view>
#include <utility>
#include <vector>

namespace bloomery::cli {
namespace {

struct analyze_options {
  making_options wanted;
  std::vector<std::string> charts;  ///< files to write, .svg or .png
  std::optional<std::uint64_t> runs;
  std::optional<std::uint64_t> queries;  ///< absent keys at each point of each run
  audit_options audit;
  input_options inputs;  ///< files of keys; if none, random email addresses
  common_options common;
};

constexpr std::uint64_t default_runs = 10;
constexpr std::uint64_t most_runs = 1000;
constexpr double enough_false_positives = 100;  // false positives per run: 10% deviation, 3% for the mean of ten runs

void check_charts(const analyze_options& options) {
  if (!options.charts.empty()) require_charts();
  for (const std::string& path : options.charts) {
    if (!path.ends_with(".svg") && !path.ends_with(".png")) {
      throw error(errc::invalid_argument, {"the file name of a chart must end in .svg or .png", "--output",
                                           "NAME.svg or NAME.png", "'" + path + "'", "add .svg or .png to the name"});
    }
    check_not_an_input(path, "--output", options.inputs);
    check_can_write(path);
  }
}

void check_range(const char* option, std::uint64_t number, std::uint64_t most) {
  if (number >= 1 && number <= most) return;
  throw error(errc::invalid_argument, {"invalid value", option, "1 to " + count_text(most), count_text(number), ""});
}

// The distinct keys of the inputs, sorted, so that the order of the inputs does not matter.
class distinct_lines {
 public:
  explicit distinct_lines(const input_options& inputs) {
    if (inputs.files.empty()) return;
    reader source(inputs);
    record_cutter cutter(inputs);
    records found;
    for (chunk piece; source.next(piece);) {
      cutter.cut(piece, found);
      std::string& text = texts_.emplace_back();
      for (const std::string_view key : found.keys) text += key;
      std::size_t at = 0;
      for (const std::string_view key : found.keys) {
        keys_.push_back(std::string_view(text).substr(at, key.size()));
        at += key.size();
      }
      if (stop_signal() != 0) throw interrupted();
    }
    if (stop_signal() != 0) throw interrupted();
    std::sort(keys_.begin(), keys_.end());
    keys_.erase(std::unique(keys_.begin(), keys_.end()), keys_.end());
  }

  const std::vector<std::string_view>& keys() const noexcept { return keys_; }

 private:
  std::deque<std::string> texts_;  // where the keys are; a deque, since they must not move
  std::vector<std::string_view> keys_;
};

std::uint64_t capacity_for(const analyze_options& options, std::size_t lines) {
  if (options.wanted.capacity) return *options.wanted.capacity;
  if (options.inputs.files.empty()) {
    throw error(errc::invalid_argument,
                {"the number of keys is missing", "--capacity", "a number of keys, or files of keys", "",
                 "for example: bloomery analyze -n 100 -p 3%"});
  }
  return std::max<std::uint64_t>(lines / 3, 1);
}

// Absent lines are the lines that are not inserted. At p a run should see at least one false positive.
std::uint64_t queries_of_lines(const analyze_options& options, const experiment& e, std::uint64_t usual) {
  const std::uint64_t most = inserted_by(e);
  const std::uint64_t absent = e.lines.size() > most ? e.lines.size() - most : 0;
  const std::uint64_t needed = options.queries.value_or(queries_for(e.filter.target_fpr, 1));
  if (absent < needed) {
    throw error(
        errc::invalid_argument,
        {fmt::format("too few distinct lines: the input has {}, {} are inserted, and only the others can be looked up",
                     count_text(e.lines.size()), count_text(most)),
         "INPUT", "at least " + count_text(needed) + " left", count_text(absent),
         options.queries ? "give more lines, a smaller --capacity or fewer --queries"
                         : "give more lines, a smaller --capacity or a higher --rate"});
  }
  return options.queries.value_or(std::min(absent, usual));
}

experiment experiment_for(const analyze_options& options, const distinct_lines& lines) {
  experiment e;
  making_options wanted = options.wanted;
  if (!wanted.scheme.empty()) wanted.seed = 0;  // schemes have their own hashes: the seed only chooses the keys
  const std::uint64_t capacity = capacity_for(options, lines.keys().size());
  const bool is_audit = options.audit.is_wanted();
  e.filter = is_audit ? expected_of_audit(wanted, capacity, default_fpr) : params_for(wanted, capacity, default_fpr);
  e.runs = options.runs.value_or(is_audit ? 1 : default_runs);
  e.seed = options.wanted.seed;
  e.lines = lines.keys();
  e.threads = options.common.threads;
  const std::uint64_t enough = queries_for(e.filter.target_fpr, enough_false_positives);
  if (is_audit) e.points = quarters_of(capacity);
  const std::uint64_t usual = is_audit ? queries_of_audit(e) : std::min(enough, sane_queries(e));
  e.queries = !options.inputs.files.empty() ? queries_of_lines(options, e, usual) : options.queries.value_or(usual);
  if (e.queries < enough && !options.queries && !options.common.quiet && !is_audit) {
    say(fmt::format(
        "note: at {} each run expects about {:.2g} false positives among {} absent keys; {} would give {:.0f}",
        rate_text(e.filter.target_fpr), e.filter.target_fpr * static_cast<double>(e.queries), count_text(e.queries),
        count_text(enough), enough_false_positives));
  }
  return e;
}

std::vector<measured_point> carry_out_watched(const experiment& e, bool show_progress) {
  progress bar(show_progress, "analyze");
  const std::uint64_t total = work_of(e);
  std::uint64_t done = 0;
  return carry_out(e, [&](std::uint64_t keys) {
    if (stop_signal() != 0) throw interrupted();
    done += keys;
    if (bar.due()) bar.show({.keys = done, .bytes_read = done, .bytes_total = total});
  });
}

// The expected FPR between the points as well, for a smooth curve.
std::vector<theory_point> theory_of(const experiment& e, const std::vector<measured_point>& points) {
  std::vector<theory_point> curve = {{0, 0}};
  constexpr std::size_t smooth = 60;
  const std::uint64_t between = std::max<std::uint64_t>(1, smooth / points.size());
  std::uint64_t from = 0;
  for (const measured_point& p : points) {
    for (std::uint64_t i = 1; i < between; ++i) {
      const std::uint64_t keys = from + (p.keys - from) * i / between;
      if (keys > curve.back().keys) curve.push_back({keys, expected_fpr(e.filter, keys)});
    }
    curve.push_back({p.keys, p.predicted});
    from = p.keys;
  }
  return curve;
}

chart chart_of(const experiment& e, std::vector<measured_point> points) {
  const params& p = e.filter;
  chart c;
  c.title = fmt::format("{}, {}, {}: n = {}, p = {}", kind_text(p), counted(p.geometry.bits, "bit"),
                        counted(p.geometry.probes, "probe"), count_text(p.capacity), rate_text(p.target_fpr));
  c.subtitle = fmt::format("{} filled with {}; at each point {} looked up in each", counted(e.runs, "filter"),
                           e.lines.empty() ? "random email addresses" : "lines of the input",
                           e.queries == 1 ? "1 absent one is" : count_text(e.queries) + " absent ones are");
  c.capacity = p.capacity;
  c.target_fpr = p.target_fpr;
  c.runs = e.runs;
  c.theory = theory_of(e, points);
  c.points = std::move(points);
  return c;
}

std::string table_of(const experiment& e, const std::vector<measured_point>& points) {
  std::string text =
      fmt::format("{:>13}  {:>5}  {:>9}  {:>9}  {:>9}\n", "keys", "of n", "expected", "measured", "deviation");
  std::uint64_t before = 0;
  for (std::uint64_t quarters = 1; quarters <= 6; ++quarters) {
    const std::uint64_t keys = e.filter.capacity * quarters / 4;
    if (keys == before) continue;  // there are fewer than four
    before = keys;
    const auto p =
        std::find_if(points.begin(), points.end(), [&](const measured_point& point) { return point.keys == keys; });
    text += fmt::format("{:>13}  {:>3}%  {:>9}  {:>9}  {:>9}\n", count_text(keys), quarters * 25,
                        rate_text(p->predicted), rate_text(p->mean), rate_text(p->deviation));
  }
  return text;
}

nlohmann::ordered_json as_json(const experiment& e, const std::vector<measured_point>& points) {
  const params& p = e.filter;
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const measured_point& point : points) {
    list.push_back({{"keys", point.keys},
                    {"predicted", point.predicted},
                    {"mean", point.mean},
                    {"deviation", point.deviation},
                    {"rates", point.rates}});
  }
  return {{"layout", p.layout},
          {"scheme", p.scheme},
          {"hash", p.hash},
          {"bits", p.geometry.bits},
          {"probes", p.geometry.probes},
          {"capacity", p.capacity},
          {"target_rate", p.target_fpr},
          {"source", e.lines.empty() ? "addresses" : "lines"},
          {"runs", e.runs},
          {"queries", e.queries},
          {"seed", e.seed},
          {"points", list}};
}

exit_status analyze(const analyze_options& options) {
  check_target_fpr(options.wanted);
  if (options.runs) check_range("--runs", *options.runs, most_runs);
  if (options.queries) check_range("--queries", *options.queries, most_queries);
  check_charts(options);
  const distinct_lines lines(options.inputs);
  experiment e = experiment_for(options, lines);
  const bool show_progress = options.common.progress && !options.common.quiet;
  if (options.audit.is_wanted()) {
    return audit(options.audit, options.wanted, options.common, e,
                 [&](const experiment& prepared) { return carry_out_watched(prepared, show_progress); });
  }
  const std::vector<measured_point> points = carry_out_watched(e, show_progress);
  const chart c = chart_of(e, points);
  for (const std::string& path : options.charts) {
    if (stop_signal() != 0) throw interrupted();
    write_whole(path, path.ends_with(".svg") ? svg_of(c) : png_of(c));
  }
  output out(STDOUT_FILENO, "standard output");
  if (options.common.json)
    out.write(json_line(as_json(e, points)));
  else if (!options.common.quiet)
    out.write(c.title + "\n" + c.subtitle + "\n\n" + terminal_chart(c, look_of_standard_output()) + "\n" +
              table_of(e, points));
  out.flush();
  return exit_status::found;
}

}  // namespace

void add_analyze(command_line& line) {
  command& c = line.root.subcommand("analyze", "chart measured and expected false-positive rates of test filters");
  auto& o = line.options_of(c, analyze);
  add_size(c, o.wanted, true);
  add_kind(c, o.wanted);
  c.option("--scheme", o.wanted.scheme, "NAME", "analyze filters of another system, such as guava")
      .suggest(scheme_names())
      .not_empty()
      .group(of_size);
  c.option("-o,--output", o.charts, "FILE",
           "write the chart to this .svg or .png file; may be given twice")
      .file();  // the next argument is INPUT
  parsed(c, "--runs", o.runs, parse_count, "N",
         "filters to fill, each with different keys; default: 10, with --exec 1");
  parsed(c, "--queries", o.queries, parse_count, "N", "number of lookups at each point; default: depends on the rate");
  add_audit(c, o.audit);
  add_inputs(line, c, o.inputs);
  c.find("INPUT")->describe("files of keys to use instead of random email addresses; -: stdin");
  c.find("--seed")->describe("seed for the addresses and the hash functions (not a secret)");
  add_common(c, o.common, "print neither chart nor table");
  c.example("bloomery analyze -n 100 -p 3% -o chart.svg");
  c.example("bloomery analyze -n 1M -p 1% --scheme pharo");
  c.example("bloomery analyze -n 100k -p 1% --exec 'perl bloom_filter.pl 100000 0.01'");
  c.footer(
      "Without INPUT, -n is required. With INPUT, -n defaults to a third of the number of distinct lines.\n"
      "If neither -p nor -m is given, the rate is 1%.\n"
      "Exit status with --exec: 0 if the filter keeps its target FPR; 1 if it exceeds the target FPR by more than "
      "chance "
      "explains, or reports an inserted key as absent; 2 on error.");
}

}  // namespace bloomery::cli
