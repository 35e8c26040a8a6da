// Reports of dedup at the start and at the end.
#include "app/numbers.hpp"
#include "cli/commands/dedup.hpp"
#include "cli/commands/open_handle.hpp"
#include "cli/io/key_table.hpp"

#include <bloomery/redis/address.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

namespace bloomery::cli {
namespace {

std::string losses_text(double lines) {
  return lines < 100 ? fmt::format("{:.3g}", lines) : count_text(static_cast<std::uint64_t>(std::llround(lines)));
}

// The 95% interval of the number of false drops, which is Poisson distributed around the expected number.
struct loss_interval {
  double least = 0;
  double most = 0;
};

loss_interval interval_of(double expected) {
  if (expected > 1e6) {
    const double two_sided = 1.96 * std::sqrt(expected);
    return {std::floor(expected - two_sided), std::ceil(expected + two_sided)};
  }
  loss_interval result;
  double log_probability = -expected;
  double sum = 0;
  bool below = true;
  for (double lost = 0;; ++lost) {
    sum += std::exp(log_probability);
    if (below && sum >= 0.025) {
      result.least = lost;
      below = false;
    }
    if (sum >= 0.975 || lost > 2e6) {
      result.most = lost;
      return result;
    }
    log_probability += std::log(expected / (lost + 1));
  }
}

// Above 50%, too few lines are certainly new to estimate the others.
bool losses_are_known(const dedup_result& r) { return r.mode == dedup_mode::exact || (r.rate && *r.rate <= 0.5); }

std::string text_of_losses(const dedup_result& r, double dropped) {
  if (r.mode == dedup_mode::exact) {
    return "no false drops";
  }
  if (!r.rate) return "the number of false drops is unknown, because the filter's bits were not counted";
  if (!losses_are_known(r)) {
    return fmt::format(
        "the number of false drops is unknown, because the filter is far too small (current FPR {}); give a larger "
        "--capacity",
        rate_text(*r.rate));
  }
  if (r.expected_losses < 0.01) return "expected false drops: fewer than 0.01 lines";
  const double distinct = static_cast<double>(r.lines_out) + r.expected_losses;
  const std::string share =
      r.lines_out == 0 ? "" : fmt::format(", {} of the distinct lines", share_text(r.expected_losses, distinct));
  const std::string lines = losses_text(r.expected_losses);
  if (r.losses_are_at_most) return fmt::format("expected false drops: at most {} lines{}", lines, share);
  const loss_interval range = interval_of(r.expected_losses);
  return fmt::format("expected false drops: {} lines ({} to {} in 95% of runs{})", lines,
                     losses_text(std::min(range.least, dropped)), losses_text(std::min(range.most, dropped)), share);
}

std::string json_of(const dedup_result& r, double dropped, bool kept) {
  const auto known = [&](double value) {
    return losses_are_known(r) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
  };
  const loss_interval range = interval_of(r.expected_losses);
  nlohmann::ordered_json report = {
      {"lines_in", r.lines_in},
      {"lines_out", r.lines_out},
      {"dropped", r.lines_in - r.lines_out},
      {"expected_wrongly_dropped", known(r.expected_losses)},
      {"wrongly_dropped_interval", {known(std::min(range.least, dropped)), known(std::min(range.most, dropped))}},
      {"rate", r.rate ? nlohmann::ordered_json(*r.rate) : nlohmann::ordered_json(nullptr)},
      {"rescued", r.rescued},
      {"exact", r.mode == dedup_mode::exact},
      {"kept", kept},
      {"complete", r.finished}};
  if (r.losses_are_at_most) report["maybe_repeated"] = r.uncertain_lines;
  if (r.layers > 0) {
    report["bytes"] = r.bytes;
    report["layers"] = r.layers;
  }
  return json_line(report);
}

// Why the run misses its target; empty if it does not.
std::string broken_promise(const dedup_result& r) {
  const auto lines = [](double count) { return losses_text(count) + (count == 1 ? " line" : " lines"); };
  if (r.overfull) return "the filter has more keys than its capacity, so it exceeds its target FPR";
  if (!r.rate || r.mode == dedup_mode::exact) return "";
  if (!losses_are_known(r))
    return fmt::format("at the current FPR of {}, most new lines are dropped by mistake", rate_text(*r.rate));
  if (r.max_loss) {
    const double distinct = static_cast<double>(r.lines_out) + r.expected_losses;
    if (r.expected_losses <= 1.01 * *r.max_loss * distinct) return "";
    return fmt::format("{} of the distinct lines are expected to be false drops, and --max-loss allows {}",
                       share_text(r.expected_losses, distinct), rate_text(*r.max_loss));
  }
  if (r.expected_losses < 1 || r.expected_losses <= 2 * r.stated_losses) return "";
  return fmt::format("{} are expected to be false drops, but at most {} expected at the start",
                     lines(r.expected_losses), r.stated_losses == 1 ? "1 was" : losses_text(r.stated_losses) + " were");
}

}  // namespace

void say_before(const dedup_options& options, const dedup_filter& made, std::uint64_t before) {
  if (options.common.quiet || options.common.json) return;
  const capabilities can = made.filter->capabilities();
  const params& p = made.filter->parameters();
  const std::string rate = rate_text(p.target_fpr);
  if (can.is_remote) return say(fmt::format("{}: {}; shared filter", shown_name(options.state), made.size));
  if (can.has_window) {
    return say(
        fmt::format("{}; once the window is full, up to {} of the new lines are dropped by mistake", made.size, rate));
  }
  if (can.grows && options.state.empty())
    return say(fmt::format("the filter grows with the input; false drops: at most {} of the distinct lines", rate));
  if (can.grows) {
    const std::string drops = loses_few(p) ? fmt::format("expected false drops: fewer than {} lines", default_losses)
                                           : fmt::format("false drops: at most {} of the distinct lines", rate);
    return say(fmt::format("{}: {} so far; the filter grows; {}", options.state, counted(before, "line"), drops));
  }
  const std::string losses = fmt::format("expected false drops until it is full: {} lines",
                                         losses_text(losses_between(p, before, std::max(p.capacity, before))));
  const std::string so_far = before == 0 ? "" : fmt::format(", {} keys present", count_text(before));
  say(fmt::format("{}{}; {}", made.size, so_far, losses));
  if (before < p.capacity || before == 0) return;
  say(fmt::format(
      "warning: the filter is full: at the current FPR of {}, at least this share of the new lines is dropped by "
      "mistake; start another filter with a larger --capacity",
      rate_text(expected_fpr(p, estimate_distinct(p, before)))));
}

void say_before_hashing(const dedup_options& options) {
  if (options.common.quiet || options.common.json) return;
  const double most = std::sqrt(default_losses / losses_by_hash(1));
  say(fmt::format(
      "remembers {} bits of the hash of each line; expected false drops: fewer than {} for up to {:.0f} billion "
      "distinct lines",
      64 + key_table<hash_slot>::partition_bits, default_losses, std::floor(most / 1e9)));
}

void warn_of_repeated_lines(std::uint64_t lines) {
  if (lines == 0) return;
  say(
      fmt::format("warning: up to {} may have been printed twice, because a connection to the server was lost or a "
                  "part of the filter "
                  "is being repaired",
                  counted(lines, "line")));
}

exit_status say_after(const dedup_options& options, const dedup_result& r) {
  const std::uint64_t dropped = r.lines_in - r.lines_out;
  const std::string broken = broken_promise(r);
  const exit_status status = broken.empty() && r.uncertain_lines == 0 ? exit_status::found : exit_status::target_missed;
  if (options.common.json) {
    std::fputs(json_of(r, static_cast<double>(dropped), status == exit_status::found).c_str(), stderr);
  } else if (!options.common.quiet) {
    const std::string layers =
        r.layers > 0 ? fmt::format("; {} in {}", bytes_text(r.bytes), counted(r.layers, "layer")) : "";
    say(fmt::format("{}{} in, {} out, {} dropped; {}{}", r.finished ? "" : "interrupted: ", counted(r.lines_in, "line"),
                    count_text(r.lines_out), count_text(dropped), text_of_losses(r, static_cast<double>(dropped)),
                    layers));
  }
  if (options.common.json) return status;
  warn_of_repeated_lines(r.uncertain_lines);
  if (!broken.empty())
    say(fmt::format(
        "warning: target missed: {}; give a larger --capacity, or leave out --capacity, --rate and --max-loss",
        broken));
  return status;
}

}  // namespace bloomery::cli
