#include "cli/commands/window.hpp"

#include "app/numbers.hpp"
#include "app/signals.hpp"
#include "cli/commands/fpr_watch.hpp"
#include "cli/io/output.hpp"

#include <bloomery/detail/generations.hpp>
#include <bloomery/error.hpp>
#include <bloomery/filter_handle.hpp>
#include <bloomery/hash.hpp>
#include <bloomery/layered_filter.hpp>
#include <bloomery/layouts/sliding.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <span>

namespace bloomery::cli {
namespace {

[[noreturn]] void refuse(const std::string& what, const std::string& option, const std::string& found,
                         const std::string& hint) {
  throw error(errc::invalid_argument, {what, option, "", found, hint});
}

bool is_window_layout(const std::string& name) { return capabilities_of({.layout = name}).has_window; }

std::uint64_t oldest_epoch(const window_facts& f) { return f.epoch - std::min<std::uint64_t>(f.epoch, window_slices); }

nlohmann::ordered_json generations_json(const window_facts& f) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (std::uint64_t epoch = f.epoch + 1; epoch-- > oldest_epoch(f);) {
    list.push_back({{"epoch", epoch}, {"keys", f.keys[epoch % window_generations]}});
  }
  return list;
}

}  // namespace

std::string length_text(const window_length& length) {
  return length.by_time() ? duration_text(length.count) : "the last " + count_text(length.count);
}

std::vector<std::string> generation_lines(const window_facts& f) {
  std::vector<std::string> lines;
  for (std::uint64_t epoch = f.epoch + 1; epoch-- > oldest_epoch(f);) {
    lines.push_back(fmt::format("{}, {}: {}", epoch == f.epoch ? "newest" : fmt::format("{} ago", f.epoch - epoch),
                                generation_text(f, epoch), counted(f.keys[epoch % window_generations], "key")));
  }
  return lines;
}

bool wants_window(const making_options& wanted) { return wanted.window.length.has_value(); }

void refuse_with_window(const making_options& wanted, const std::string& option) {
  if (!wants_window(wanted)) return;
  refuse("a sliding-window filter cannot have " + option, wanted.window.option(), option,
         "leave out one of the two options");
}

void check_window(const making_options& wanted) {
  const window_options& w = wanted.window;
  if (!wants_window(wanted)) {
    if (is_window_layout(wanted.layout)) {
      refuse("this layout is for sliding-window filters", "--layout", wanted.layout,
             "add --window 24h or --window-keys N");
    }
    if (w.now) refuse("requires a sliding-window filter", "--now", "", "add --window 24h, or leave out --now");
    return;
  }
  if (w.length->count == 0) refuse("the window is empty", w.option(), "0", "give at least 1 key");
  if (!wanted.scheme.empty()) refuse_with_window(wanted, "--scheme");
  if (const char* const option = wanted.removal_option()) refuse_with_window(wanted, option);
  if (wanted.growing) refuse_with_window(wanted, "--grow");
  if (wanted.bits) refuse_with_window(wanted, "--bits");
  if (wanted.probes) refuse_with_window(wanted, "--probes");
  if (wanted.prefer) refuse_with_window(wanted, "--prefer");
  if (!wanted.layout.empty() && !is_window_layout(wanted.layout)) {
    refuse("this layout has no window", "--layout", wanted.layout, "use sliding or sliding64, or leave out --layout");
  }
  if (!w.length->by_time() && w.now)
    refuse("--window-keys and --now exclude each other", "", "", "leave out one of the two options");
}

std::uint64_t window_capacity(const making_options& wanted) {
  return wanted.capacity ? *wanted.capacity : wanted.window.length.value_or(window_length{}).keys();
}

std::uint64_t window_capacity_said(const making_options& wanted) {
  const std::uint64_t capacity = window_capacity(wanted);
  if (capacity != 0) return capacity;
  throw error(errc::invalid_argument,
              {"a window of time needs a capacity", "--capacity",
               "the number of distinct keys to expect within a window", "none", "for example: --capacity 100M"});
}

params window_params(const making_options& wanted, std::uint64_t capacity, double default_rate) {
  params p;
  p.layout = wanted.layout.empty() ? std::string(layouts::sliding::name) : wanted.layout;
  p.hash = wanted.hash;
  p.keys = wanted.keys;
  p.seed = wanted.seed;
  p.secret = secret_of(wanted.secret);
  p.capacity = capacity;
  p.target_fpr = wanted.rate.value_or(default_rate);
  if (wanted.window.length) p.extra = *wanted.window.length;
  return complete(p);
}

void check_now(const std::optional<std::uint64_t>& now, const params& p) {
  if (now && !p.window().by_time())
    refuse("the filter has no window of time", "--now", kind_text(p), "leave out --now");
}

void set_now(any_filter& filter, const std::optional<std::uint64_t>& now) {
  check_now(now, filter.parameters());
  if (now) filter.set_clock([now] { return *now; });
}

void refuse_another_window(const making_options& wanted, const params& p, const std::string& state) {
  if (!wants_window(wanted) || wanted.window.length->unit == p.window().unit) return;
  throw error(errc::incompatible, {"the state has another kind of window", state, wanted.window.option(),
                                   "keys" + window_text(p), "choose another file, or remove this one"});
}

bool asks_for_another_window(const making_options& wanted, const params& p) {
  return wants_window(wanted) && *wanted.window.length != p.window();
}

void refuse_state_without_window(const making_options& wanted, const std::string& state) {
  if (!wants_window(wanted) && !wanted.window.now) return;
  throw error(errc::incompatible,
              {"the state has no window", state, std::string("a filter built with ") + wanted.window.option(), "",
               "choose another file, or remove this one"});
}

std::string window_option(const params& p) {
  const window_length length = p.window();
  if (!length.by_time()) return fmt::format(" --window-keys {}", length.count);
  std::string time = duration_text(length.count);
  time.erase(std::remove(time.begin(), time.end(), ' '), time.end());
  return " --window " + time;
}

std::string window_text(const params& p) { return p.has_window() ? " in " + length_text(p.window()) : ""; }

std::string generation_text(const window_facts& f, std::uint64_t epoch) {
  if (f.length.by_time()) return fmt::format("from {}", moment_text(epoch * f.slice));
  return fmt::format("insertions {} to {}", count_text(epoch * f.slice + 1), count_text((epoch + 1) * f.slice));
}

nlohmann::ordered_json window_json(const window_facts& f) {
  // In seconds or insertions.
  const auto number = [&](std::uint64_t count) {
    return f.length.by_time() ? nlohmann::ordered_json(static_cast<double>(count) / 1000)
                              : nlohmann::ordered_json(count);
  };
  nlohmann::ordered_json window;
  window[f.length.by_time() ? "seconds" : "keys"] = number(f.length.count);
  window["part"] = number(f.slice);
  window["epoch"] = f.epoch;
  window["insertions"] = f.insertions;
  window["keys_held"] = f.keys_held();
  window["keys_allowed"] = f.keys_per_slice;
  window["overfull"] = f.has_overfull_generation();
  window["generations"] = generations_json(f);
  return window;
}

std::string window_line(const filter_facts& f) {
  if (f.window_copy)
    return fmt::format("{}, in slices of {}", length_text(f.window_copy->length), duration_text(f.window_copy->slice));
  return fmt::format("{}, in 7 generations of {} and a current one", length_text(f.window->length),
                     f.window->length.by_time() ? duration_text(f.window->slice) : count_text(f.window->slice));
}

std::optional<std::uint64_t> fix_time(filter_handle& filter, const std::optional<std::uint64_t>& now) {
  const layered_filter* const copy = layered_filter_of(filter);
  if (copy == nullptr || !copy->parameters().filter.has_window()) return std::nullopt;
  const std::uint64_t time = std::max(now.value_or(milliseconds_since_1970()), copy->parameters().copied_at);
  filter.tick(time);
  return time;
}

void note_if_expired(const std::string& name, const filter_handle& filter, std::uint64_t time) {
  const layered_filter& copy = *layered_filter_of(filter);
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < copy.layers().size(); ++i) last = std::max(last, copy.expiry_of(i));
  if (last > time) return;
  say(fmt::format("{}: note: no key is found, because the last slice expired {}", name, moment_text(last)));
}

nlohmann::ordered_json seconds_json(std::uint64_t milliseconds) { return static_cast<double>(milliseconds) / 1000; }

nlohmann::ordered_json window_copy_json(const filter_facts& f) {
  const std::uint64_t clock = milliseconds_since_1970();
  nlohmann::ordered_json slices = nlohmann::ordered_json::array();
  for (auto slice = f.layers.rbegin(); slice != f.layers.rend(); ++slice) {
    slices.push_back({{"start", seconds_json(slice->start)},
                      {"expires_at", seconds_json(slice->expires_at)},
                      {"has_expired", slice->expires_at <= clock},
                      {"bits", slice->geometry.bits},
                      {"bits_set", slice->cells_set.value_or(0)}});
  }
  return {{"seconds", seconds_json(f.window_copy->length.count)},
          {"part", seconds_json(f.window_copy->slice)},
          {"copied_at", seconds_json(f.window_copy->copied_at)},
          {"slices", std::move(slices)}};
}

std::vector<std::string> slice_lines(const filter_facts& f) {
  const std::uint64_t clock = milliseconds_since_1970();
  std::vector<std::string> lines;
  if (!f.window_copy) return lines;
  for (auto slice = f.layers.rbegin(); slice != f.layers.rend(); ++slice) {
    const double fill = static_cast<double>(slice->cells_set.value_or(0)) / static_cast<double>(slice->geometry.bits);
    lines.push_back(fmt::format("from {}: {:.1f}% of the bits, {} {}", moment_text(slice->start), 100 * fill,
                                slice->expires_at <= clock ? "expired" : "expires", moment_text(slice->expires_at)));
  }
  return lines;
}

void warn_of_clock(const std::string& name, const filter_handle& filter, const std::optional<std::uint64_t>& now) {
  const any_filter* const local = filter.local();
  if (local == nullptr || !local->parameters().window().by_time()) return;
  const std::uint64_t slice = local->parameters().window().slice_length();
  const std::uint64_t newest = window_state::of(local->bytes().data()).newest;
  const std::uint64_t clock = milliseconds_since_1970();
  if (newest * slice <= std::max(clock, now.value_or(0)) + most_ahead) return;
  say(fmt::format(
      "{}: warning: the newest keys have the time {}, but the clock of this machine shows {}; no key expires before "
      "{}; "
      "correct the clock, or if it is right, build the filter again",
      name, moment_text(newest * slice), moment_text(clock / 1000 * 1000), moment_text((newest + 1) * slice)));
}

bool warn_of_generations(const std::string& where, const any_filter& filter) {
  // Checks the counts first, because computing the rate takes longer.
  const window_state s = window_state::of(filter.bytes().data());
  const std::uint64_t allowed = filter.capacity() / window_slices + (filter.capacity() % window_slices != 0 ? 1 : 0);
  if (filter.capacity() == 0 || *std::max_element(s.keys.begin(), s.keys.end()) <= allowed) return false;
  const window_facts f = *filter.window();
  const params& p = filter.parameters();
  if (!judge_fpr(p, f.rate).is_broken()) return false;
  const double fpr = measure_window_fill(p, filter.bytes(), f.epoch).current_fpr;  // lower if keys recur
  fpr_watch(where).look(p, fpr, counted(f.keys_held(), "key") + " in the window");
  return judge_fpr(p, fpr).is_broken();
}

}  // namespace bloomery::cli
