#include "cli/commands/key_changes.hpp"

#include "app/numbers.hpp"
#include "app/signals.hpp"
#include "cli/commands/fpr_watch.hpp"
#include "cli/commands/shared_filter.hpp"
#include "cli/commands/window.hpp"
#include "cli/text/error_text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace bloomery::cli {
namespace {

// "keys 1 to 3,000"
std::string range_text(std::uint64_t before, std::uint64_t count) {
  if (count == 1) return "key " + count_text(before + 1);
  return fmt::format("keys {} to {}", count_text(before + 1), count_text(before + count));
}

// The error with the numbers of keys that are done, and of those that may be.
error with_numbers(const error& e, const keys_done& done, bool removes, bool counts_copies) {
  error_text text = e.text();
  std::string to_do = hint_text(e);
  const auto add = [&](const std::string& more) { to_do += (to_do.empty() ? "" : "; ") + more; };
  if (done.keys > 0) {
    add(fmt::format("{} of the input {} done, {} of them {}", range_text(0, done.keys), done.keys == 1 ? "is" : "are",
                    count_text(done.changed), removes ? "removed" : "added"));
  }
  if (done.undecided > 0) {
    const bool in_vain = e.code() == errc::too_large || e.code() == errc::damaged;
    add(fmt::format("{} of the input may or may not be done{}", range_text(done.keys, done.undecided),
                    removes         ? ": run 'bloomery check' before removing them again"
                    : in_vain       ? ""
                    : counts_copies ? ": if you add them again, those already added count twice"
                                    : ": add them again"));
  }
  text.hint = std::move(to_do);
  return {e.code(), text};
}

// The error of a filter that commits as a whole, before its commit.
error nothing_changed(const error& e) {
  error_text text = e.text();
  const std::string to_do = hint_text(e);
  text.hint = to_do + (to_do.empty() ? "" : "; ") + "the filter is unchanged";
  return {e.code(), text};
}

nlohmann::ordered_json number_if_known(const std::optional<std::uint64_t>& number) {
  return number ? nlohmann::ordered_json(*number) : nlohmann::ordered_json(nullptr);
}

}  // namespace

keys_done change_keys(filter_handle& filter, const input_options& inputs, const common_options& common,
                      const std::string& verb, const std::function<change_result(key_batch& batch)>& change,
                      const std::function<void()>& after) {
  keys_done done;
  const pass_options pass{common.threads, common.progress && !common.quiet, verb};
  const bool commits_whole = filter.capabilities().commits_whole;
  const bool counts_copies = filter.capabilities().counts_copies;
  const auto take = [&](const change_result& some) {
    done.keys += some.keys;
    done.changed += some.changed;
  };
  try {
    done.finished = for_each_batch(
        filter, inputs, pass, [](key_batch&) {},
        [&](key_batch& batch) {
          take(change(batch));
          after();
          return true;
        });
  } catch (const partial_error& e) {
    if (commits_whole) throw nothing_changed(e);
    take(e.done());
    done.undecided = e.undecided();
    done.finished = false;
    done.failure = with_numbers(e, done, verb == "remove", counts_copies);
  } catch (const error& e) {
    if (commits_whole) throw nothing_changed(e);
    done.finished = false;
    done.failure = with_numbers(e, done, verb == "remove", counts_copies);
  }
  if (commits_whole && !done.finished) throw interrupted();
  return done;
}

filter_summary summary_after(keys_done& done, const std::string& name, filter_handle& filter) {
  if (done.failure) return {};
  try {
    filter.settle();
  } catch (const error& e) {
    done.failure = e;
  }
  try {
    return filter.summary();
  } catch (const error& e) {
    count_failed(done, name, e);
    return {};
  }
}

void commit(const keys_done& done, filter_handle& filter) {
  try {
    filter.commit();
  } catch (const error& e) {
    if (!done.failure) throw;
    say("warning: " + sentence_of(e));
  }
}

void count_failed(keys_done& done, const std::string& name, const error& why) {
  if (why.code() == errc::damaged || why.code() == errc::not_found) {
    if (!done.failure) done.failure = why;
    return;
  }
  say(fmt::format("{}: warning: the operation succeeded, but the number of keys is unknown: {}", name,
                  sentence_of(why)));
}

void add_end(nlohmann::ordered_json& result, const keys_done& done) {
  result["complete"] = done.finished;
  if (done.failure) result["undecided"] = done.undecided;
}

nlohmann::ordered_json json_of(const keys_done& done, const std::string& name, const char* changed,
                               const filter_handle& filter, const filter_summary& now) {
  nlohmann::ordered_json result = {{"filter", name}};
  if (now.growths) result["scheme"] = chain_scheme;
  result.update({{"keys", done.keys}, {changed, done.changed}});
  const params& p = filter.parameters();
  if (now.growths) {
    result.update({{"capacity", p.capacity},
                   {"target_rate", p.target_fpr},
                   {"bits", p.geometry.bits},
                   {"probes", p.geometry.probes},
                   {"growths", *now.growths}});
  } else {
    result["size"] = number_if_known(now.window ? now.window->keys_held() : now.insert_count);
  }
  result["rate"] = now.fpr ? number_or_null(*now.fpr) : nlohmann::ordered_json(nullptr);
  if (now.rebuilds) result.update({{"capacity", now.capacity}, {"rebuilds", *now.rebuilds}});
  add_end(result, done);
  if (now.window) result["window"] = window_json(*now.window);
  return result;
}

void print_result(const keys_done& done, const nlohmann::ordered_json& result) {
  try {
    print_result(result);
  } catch (...) {
    if (!done.failure) throw;
  }
  if (done.failure) throw *done.failure;
}

void warn_if_overfull(const std::string& name, const filter_handle& filter, const filter_summary& now) {
  fpr_watch watch(name);
  watch.judge(filter, now);
  watch.end();
}

std::string new_keys_text(const keys_done& done, const filter_summary& now) {
  const auto others = static_cast<double>(done.keys - done.changed);
  const bool is_exact = others * now.fpr.value_or(1) < noticeable_losses;
  return (is_exact ? "" : "at least ") + count_text(done.changed);
}

std::string state_text(const filter_handle& filter, const filter_summary& now, const std::string& noun) {
  std::string text;
  if (now.insert_count) {
    const capabilities can = filter.capabilities();
    text += fmt::format(", {} {}", distinct_text(filter, now),
                        can.has_window                                ? "held"
                        : can.counts_copies && !now.count_is_estimate ? noun + " with copies"
                                                                      : noun);
  }
  if (now.growths) {
    text += fmt::format("; {} of {}", counted(*now.growths + 1, "bitmap"),
                        bytes_text(filter.parameters().geometry.bits / 8));
  }
  if (now.fpr) text += ", current FPR " + rate_text(*now.fpr);
  if (now.rebuilds.value_or(0) > 0)
    text += fmt::format("; grew {}, capacity now {}", times_text(*now.rebuilds), counted(now.capacity, "key"));
  return text;
}

}  // namespace bloomery::cli
