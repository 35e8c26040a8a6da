#include "cli/commands/fpr_watch.hpp"

#include "app/numbers.hpp"
#include "cli/commands/common.hpp"

#include <bloomery/any_filter.hpp>
#include <bloomery/filter_facts.hpp>
#include <bloomery/layouts/classic.hpp>
#include <bloomery/layouts/sliding.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace bloomery::cli {
namespace {

// Above this FPR too few keys are certainly new to estimate the number of the others.
constexpr double uncountable = 0.5;

// "current FPR 2.1%, target 1%, with about 1,200 keys; the capacity is 1,000 keys"
std::string comparison(const params& p, double fpr, const std::string& keys) {
  std::string text = fmt::format("current FPR {}, target {}", rate_text(fpr), rate_text(p.target_fpr));
  if (!keys.empty()) text += ", with " + keys;
  if (p.capacity != 0) {
    text += fmt::format("{} capacity is {}{}", keys.empty() ? "; its" : "; the", counted(p.capacity, "key"),
                        p.has_window() ? " in a window" : "");
  }
  return text;
}

std::string keys_in(const filter_handle& filter, const filter_summary& now) {
  const std::string number = distinct_text(filter, now);
  if (number.empty()) return "";
  return of_keys(number) + (now.window ? " in the window" : "");
}

}  // namespace

std::string distinct_text(const params& p, std::uint64_t counted, bool is_estimate) {
  if (p.geometry.probes > layouts::classic::most_chosen_probes) return "at least " + count_text(counted);
  const std::uint64_t distinct = estimate_distinct(p, counted);
  const capabilities can = capabilities_of(p);
  const bool counts_each = !can.can_insert || can.counts_copies;
  if (!counts_each && (distinct >= beyond_counting || expected_fpr(p, distinct) > uncountable))
    return "at least " + count_text(counted);
  const bool is_exact = !is_estimate && (counts_each || losses_between(p, 0, distinct) < noticeable_losses);
  return (is_exact ? "" : "about ") + count_text(distinct);
}

std::string of_keys(const std::string& distinct) { return distinct + (distinct == "1" ? " key" : " keys"); }

std::string distinct_text(const filter_handle& filter, const filter_summary& now) {
  if (now.window) return text_of_new_keys(now.window->keys_held(), now);
  if (!now.insert_count) return "";
  if (filter.local() != nullptr) return distinct_text(filter.parameters(), *now.insert_count, now.count_is_estimate);
  return text_of_new_keys(*now.insert_count, now);  // of several layers or shards
}

std::string text_of_new_keys(std::uint64_t count, const filter_summary& now) {
  const bool is_exact = !now.count_is_estimate && static_cast<double>(count) * now.fpr.value_or(1) < noticeable_losses;
  return (is_exact ? "" : "about ") + count_text(count);
}

void warn_of_size(const std::string& name, const params& p) {
  const fpr_judgement size = judge_size(p);
  if (!size.is_broken()) return;
  say(fmt::format(
      "{}: warning: with {} the FPR will be {}, target {}, because {} does not suit this number of keys; leave "
      "out --scheme, or give a smaller --capacity",
      name, counted(p.capacity, "key"), rate_text(size.fpr), rate_text(size.target), kind_text(p)));
}

void fpr_watch::say_with_name(const std::string& text) const { say(name_.empty() ? text : name_ + ": " + text); }

void fpr_watch::after_batch(filter_handle& filter) {
  const any_filter* const local = filter.local();
  if (local == nullptr || filter.capabilities().counts_copies) return;
  const std::uint64_t insertions =
      local->parameters().has_window() ? window_state::of(local->bytes().data()).insertions : local->insert_count();
  if (insertions < next_look_) return;
  next_look_ = insertions + insertions / 16 + 1;
  if (!filter.is_overfull()) return;
  const filter_summary now = filter.summary();
  if (now.fpr) look(filter.parameters(), *now.fpr, keys_in(filter, now));
}

void fpr_watch::look(const params& p, double fpr, const std::string& keys) {
  if (fpr < next_warning_ || !judge_fpr(p, fpr).is_broken()) return;
  next_warning_ = 2 * fpr;
  say_with_name("warning: " + comparison(p, fpr, keys));
}

void fpr_watch::judge(const filter_handle& filter, const filter_summary& now) {
  if (now.growths) return;  // the target FPR of a Guava chain is that of one bitmap, and the chain adds bitmaps
  if (now.fpr) judge(filter.parameters(), *now.fpr, keys_in(filter, now));
}

void fpr_watch::judge(const params& p, double fpr, const std::string& keys) {
  judgement_ = judge_fpr(p, fpr);
  last_line_.clear();
  if (!judgement_.is_broken()) return;
  last_line_ =
      fmt::format("warning: the filter exceeds its target FPR: {}; build a larger filter", comparison(p, fpr, keys));
}

exit_status fpr_watch::end() const {
  if (last_line_.empty()) return exit_status::found;
  say_with_name(last_line_);
  return exit_status::target_missed;
}

void add_verdict(nlohmann::ordered_json& result, const fpr_judgement& judgement) {
  result["fpr_verdict"] = name_of(judgement.verdict);
}

}  // namespace bloomery::cli
