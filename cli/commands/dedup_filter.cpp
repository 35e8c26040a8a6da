// The filter of dedup: in memory, in a file or on servers, opened or created.
#include "app/numbers.hpp"
#include "cli/commands/dedup.hpp"
#include "cli/commands/logged.hpp"
#include "cli/commands/open_handle.hpp"
#include "cli/commands/shared_filter.hpp"
#include "cli/commands/window.hpp"

#include <bloomery/any_filter.hpp>
#include <bloomery/error.hpp>
#include <bloomery/filter_facts.hpp>
#include <bloomery/rebuilding_filter.hpp>
#include <bloomery/redis/handle.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

namespace bloomery::cli {
namespace {

constexpr double rate_without_option = 1e-4;  // of windows and of filters on servers

[[noreturn]] void refuse(const std::string& why, const std::string& option, const std::string& found,
                         const std::string& to_do) {
  throw error(errc::invalid_argument, {why, option, "", found, to_do});
}

// ---- parameters -----------------------------------------------------------------------------------------------------

// A pipe of unknown length needs a filter that grows, and so do more lines than -n. A filter with a requested layout
// does not grow.
bool grows_in_memory(const dedup_options& options) {
  const making_options& wanted = options.wanted;
  if (!options.state.empty() || wanted.window.length) return false;
  if (wanted.growing) return true;
  if (!can_reread(options.inputs)) return !wanted.capacity;
  return wanted.capacity && wanted.layout.empty() && !wanted.prefer && count_lines(options.inputs) > *wanted.capacity;
}

// A state grows from run to run unless an option determines its size.
bool grows_in_file(const making_options& wanted) {
  if (wanted.growing) return true;
  return !wanted.capacity && !wanted.window.length && wanted.layout.empty() && !wanted.prefer;
}

std::uint64_t lines_to_expect(const dedup_options& options) {
  if (options.wanted.capacity) return *options.wanted.capacity;
  if (wants_window(options.wanted) && window_capacity(options.wanted) != 0) return window_capacity(options.wanted);
  if (!can_reread(options.inputs)) {
    throw error(errc::invalid_argument,
                {"the lines of a pipe cannot be counted first", "--capacity", "the number of distinct lines to expect",
                 "none", "give --capacity 100M, for example, or a file, or leave out --state for a filter that grows"});
  }
  return std::max<std::uint64_t>(count_lines(options.inputs), 1);
}

std::uint64_t shared_lines_to_expect(const dedup_options& options) {
  if (options.wanted.capacity) return *options.wanted.capacity;
  if (wants_window(options.wanted)) return window_capacity_said(options.wanted);
  if (options.sharing.most_keys) return std::min(growing_from, *options.sharing.most_keys);
  if (options.wanted.growing) return growing_from;
  throw error(errc::invalid_argument,
              {"the number of lines on all machines is unknown", "--capacity", "the number of distinct lines to expect",
               "none", "give --capacity 100M, for example, or --grow"});
}

// The target FPR at which the expected false drops of a filter that fills up with n lines are `share` of n.
double rate_for_losses(making_options wanted, std::uint64_t n, double share) {
  const auto lost = [&](double log_rate) {
    wanted.rate = std::exp(log_rate);
    return losses_between(params_for(wanted, n, rate_without_option), 0, n) / static_cast<double>(n);
  };
  // Losses are roughly between n * rate / (probes + 1) and n * rate, so the rate is within a factor of 2^10 of share.
  double low = std::log(share);
  double high = std::min(std::log(share) + 7, std::log(0.5));
  if (!(low < high)) return share;
  for (int i = 0; i < 40; ++i) {
    const double middle = (low + high) / 2;
    (lost(middle) <= share ? low : high) = middle;
  }
  return std::exp(low);
}

// A filter for n lines, of fixed size.
params fixed_params(const dedup_options& options, std::uint64_t n) {
  if (options.wanted.rate || options.wanted.window.length) return params_for(options.wanted, n, rate_without_option);
  const double share = options.max_loss.value_or(default_losses / static_cast<double>(n));
  making_options wanted = options.wanted;
  if (wanted.layout.empty()) {
    // The rate depends on the layout and the layout on the rate. Two steps suffice: a layout for a guess of the rate,
    // the rate of that layout, and the layout for that rate.
    const auto layout_at = [&](double rate) {
      making_options guess = options.wanted;
      guess.rate = rate;
      return params_for(guess, n, rate_without_option).layout;
    };
    wanted.layout = layout_at(share);
    wanted.layout = layout_at(rate_for_losses(wanted, n, share));
  }
  return params_for(wanted, n, rate_for_losses(wanted, n, share));
}

// For shared filters and filters that grow: with the allowed share as FPR, no larger share is lost.
making_options with_loss_as_rate(const dedup_options& options) {
  making_options wanted = options.wanted;
  if (options.max_loss) wanted.rate = options.max_loss;
  return wanted;
}

// ---- in memory ------------------------------------------------------------------------------------------------------

std::unique_ptr<filter_handle> make_scalable(const dedup_options& options) {
  const making_options wanted = with_loss_as_rate(options);
  params p = hashing_of(options);
  p.target_fpr = wanted.rate.value_or(rate_without_option);
  std::unique_ptr<filter_handle> filter = make_scalable_handle(std::move(p));
  const std::string& layout = filter->parameters().layout;
  const std::string why = "the layers of a scalable filter have layout " + layout;
  if (!wanted.layout.empty() && wanted.layout != layout)
    refuse(why, "--layout", wanted.layout, "leave out --layout, or give --capacity and leave out --grow");
  if (wanted.prefer)
    refuse(why, "--prefer", name_of(*wanted.prefer), "leave out --prefer, or give --capacity and leave out --grow");
  return filter;
}

std::unique_ptr<filter_handle> make_in_memory(const dedup_options& options) {
  if (grows_in_memory(options)) return make_scalable(options);
  return make_handle(any_filter(fixed_params(options, lines_to_expect(options))));
}

// ---- existing filters -----------------------------------------------------------------------------------------------

bool asks_for_another(const dedup_options& options, const params& p, bool grows_in_file) {
  const making_options& w = options.wanted;
  const auto prefers_another = [&] {
    if (!w.prefer || p.capacity == 0 || !(p.target_fpr > 0 && p.target_fpr < 1)) return false;
    return complete({.capacity = p.capacity, .target_fpr = p.target_fpr}, *w.prefer).layout != p.layout;
  };
  return (w.capacity && *w.capacity != p.capacity && !grows_in_file) || (w.rate && *w.rate != p.target_fpr) ||
         options.max_loss || (!w.layout.empty() && w.layout != p.layout) || (!w.hash.empty() && w.hash != p.hash) ||
         (w.seed != 0 && w.seed != p.seed) || prefers_another() || asks_for_another_window(w, p);
}

// Refuses an existing filter that contradicts the options, and notes differences that are ignored.
void check_existing(const dedup_options& options, const dedup_filter& there) {
  const making_options& wanted = options.wanted;
  const std::string name = shown_name(options.state);
  const capabilities can = there.filter->capabilities();
  const params& p = there.filter->parameters();
  if (can.commits_whole) {
    throw error(errc::incompatible, {"a filter with removal cannot be the state of dedup", name, "a filter of bits",
                                     p.layout, "choose another name"});
  }
  if (can.has_window)
    refuse_another_window(wanted, p, name);
  else
    refuse_state_without_window(wanted, name);
  check_now(wanted.window.now, p);
  warn_of_clock(name, *there.filter, wanted.window.now);
  const bool grows_in_file = can.grows && !can.is_remote;
  if (asks_for_another(options, p, grows_in_file) && !options.common.quiet) {
    const std::string kept = can.is_remote ? there.size
                             : can.grows   ? rate_text(p.target_fpr) + "; 'bloomery rebuild' changes its parameters"
                                           : there.size + "; remove it to start another";
    say(fmt::format("{}: note: options that contradict the existing filter are ignored; it has {}", name, kept));
  }
  if (!p.scheme.empty()) {
    throw error(errc::incompatible, {"the state of dedup must be a filter with a layout", name, "a layout",
                                     kind_text(p), "choose another file, or remove this one"});
  }
}

// ---- in a file ------------------------------------------------------------------------------------------------------

std::unique_ptr<filter_handle> as_handle(rebuilding_filter filter, const std::string& path) {
  if (loses_few(filter.parameters())) filter.set_growing_target(growing_target);
  return make_handle(std::move(filter), path);
}

std::unique_ptr<filter_handle> make_file(const dedup_options& options) {
  if (grows_in_file(options.wanted)) {
    making_options wanted = with_loss_as_rate(options);
    if (!wanted.rate && !wanted.capacity) wanted.capacity = growing_from;
    const params p = growing_params(wanted, growing_target(wanted.capacity.value_or(growing_from)));
    return as_handle(rebuilding_filter::create(options.state, p, {.replace = false, .no_lock = no_lock()}),
                     options.state);
  }
  const params p = fixed_params(options, lines_to_expect(options));
  return make_handle(any_filter::create(options.state, p, {.reserve = true, .replace = false, .no_lock = no_lock()}));
}

// Null if the file exists, perhaps because another process created it first.
std::unique_ptr<filter_handle> make_file_if_missing(const dedup_options& options) {
  for (std::error_code unknown; !std::filesystem::exists(options.state, unknown) && !unknown;) {
    try {
      return make_file(options);
    } catch (const error& e) {
      const bool others = e.code() == errc::already_exists || e.code() == errc::locked;
      if (others && std::filesystem::exists(options.state, unknown)) break;
      if (e.code() != errc::locked) throw;  // also a dangling link, and a log without its filter
    }
    wait_for_writer(options.state);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return nullptr;
}

// Warnings of the library are printed even with --quiet.
rebuilding_filter open_logged(const std::string& path, const std::string& keyfile, bool quiet) {
  return rebuilding_filter::open(path, {.mode = access::read_write,
                                        .check = file_check::payload,
                                        .waiting = wait_for_writer,
                                        .secret = secret_of(keyfile),
                                        .notes =
                                            [quiet](const std::string& text) {
                                              if (!quiet || text.find(": warning: ") != std::string::npos) say(text);
                                            },
                                        .no_lock = no_lock()});
}

dedup_filter open_or_make_file(const dedup_options& options) {
  const making_options& wanted = options.wanted;
  const bool quiet = options.common.quiet;
  if (wanted.growing) check_growing(wanted);
  check_locks(options.state);
  if (auto made = make_file_if_missing(options)) return {std::move(made)};
  // With --grow a filter without a log is refused before its file is touched.
  std::error_code none;
  const bool has_log = std::filesystem::exists(rebuilding_filter::log_path(options.state), none);
  dedup_filter there{
      wanted.growing || has_log
          ? as_handle(open_logged(options.state, wanted.secret, quiet), options.state)
          : open_handle({.name = options.state, .secret = wanted.secret, .quiet = quiet}, access::read_write)};
  if (there.filter->capabilities().grows) check_growing(wanted);
  there.size = size_text(there.filter->parameters());
  check_existing(options, there);
  return there;
}

// ---- on servers -----------------------------------------------------------------------------------------------------

dedup_filter open_or_make_shared(const dedup_options& options) {
  const redis_address address = redis_address::parse(options.state);
  const bool quiet = options.common.quiet;
  const auto as_handle = [&](redis_filter filter) {
    warn_of_eviction(address, options.server);
    std::string size = shared_size_text(filter.parameters());
    return dedup_filter{redis::make_handle(std::move(filter)), std::move(size)};
  };
  if (auto there = find_shared(address, options.server, options.wanted.secret, quiet)) {
    refuse_another_sharing(address, there->parameters(), options.wanted.growing, options.sharing, options.server);
    dedup_filter existing = as_handle(std::move(*there));
    check_existing(options, existing);
    return existing;
  }
  const redis_params p =
      shared_params(with_loss_as_rate(options), options.sharing, shared_lines_to_expect(options), rate_without_option);
  return as_handle(
      redis_filter::create(address, p, options_for(address, options.server, options.wanted.secret, quiet)));
}

}  // namespace

params hashing_of(const dedup_options& options) {
  const making_options& wanted = options.wanted;
  params p;
  p.hash = wanted.hash;
  p.keys = wanted.keys;
  p.seed = wanted.seed;
  p.secret = secret_of(wanted.secret);
  p.target_fpr = rate_without_option;
  return p;
}

params params_of_exact(const dedup_options& options) {
  constexpr double few_suspects = 0.01;
  return params_for(options.wanted, *options.wanted.capacity, few_suspects);
}

// Each capacity c is 1.24 times the previous one, so about 0.2 c keys are inserted at an FPR of at most t / c + c /
// 2^64. The first term contributes 0.2 t per growth, and 45 growths lead from 65,536 keys to 10^9.
double growing_target(std::uint64_t capacity) {
  const auto c = static_cast<double>(capacity);
  return default_losses / 8 / c + c * 0x1p-64;
}

bool loses_few(const params& p) {
  return p.target_fpr <= 1.01 * growing_target(std::max<std::uint64_t>(p.capacity, 1));
}

// Exact mode has no FPR and chooses its own filter, whose memory is part of --memory.
void check_exact(const dedup_options& options) {
  const making_options& wanted = options.wanted;
  const auto refuse_with = [](const char* option, const std::string& why) {
    refuse(why, option, "--exact", std::string("leave out ") + option + " or --exact");
  };
  const char* const own_filter = "exact mode chooses its own filter";
  refuse_with_window(wanted, "--exact");
  if (wanted.rate) refuse_with("--rate", "exact mode has no false drops, and so no false-positive rate");
  if (options.max_loss) refuse_with("--max-loss", "exact mode has no false drops");
  if (!wanted.layout.empty()) refuse_with("--layout", own_filter);
  if (wanted.prefer) refuse_with("--prefer", own_filter);
  if (wanted.growing) refuse_with("--grow", "exact mode counts lines first, so its filter does not grow");
  if (!options.state.empty()) {
    refuse("exact mode compares lines, and a filter does not contain the lines of earlier runs", "--exact", "",
           "leave out --state or --exact");
  }
}

void check_dedup_filter(const dedup_options& options) {
  if (options.exact) check_exact(options);
  if (options.wanted.hash == xxh3_64::name && mode_of(options) == dedup_mode::hashes) {
    refuse("dedup without a filter remembers 70 bits of the hash of each line, and this hash has 64 bits", "--hash",
           options.wanted.hash, "leave out --hash, or give --rate");
  }
  if (options.max_loss) refuse_with_window(options.wanted, "--max-loss");
  if (options.memory && mode_of(options) != dedup_mode::exact)
    refuse("only exact mode keeps lines in memory", "--memory", "", "leave out --memory, or add --exact");
  if (options.wanted.growing && options.wanted.capacity && options.state.empty()) {
    refuse("a filter that grows needs no capacity", "--capacity", count_text(*options.wanted.capacity),
           "leave out --capacity or --grow");
  }
  if (options.max_loss && options.wanted.rate)
    refuse("--rate and --max-loss exclude each other", "", "", "give one of them");
  std::error_code unknown;
  const bool is_made = options.state.empty() || !std::filesystem::exists(options.state, unknown);
  const auto& window = options.wanted.window.length;
  if (options.inputs.time.is_set() && is_made && !(window && window->by_time()))
    refuse("times need a window of time", "--time-field", "", "add --window 24h");
  check_server_options(options.state, options.server, options.sharing);
  making_options wanted = options.wanted;
  // An existing filter decides whether it has a window of time.
  if (std::error_code none; !options.state.empty() && std::filesystem::exists(options.state, none))
    wanted.window.now.reset();
  if (redis_address::is_one(options.state))
    check_shared_promise(wanted, options.sharing);
  else
    check_target_fpr(wanted);
}

dedup_filter open_or_make(const dedup_options& options) {
  dedup_filter result = options.state.empty()                  ? dedup_filter{make_in_memory(options)}
                        : redis_address::is_one(options.state) ? open_or_make_shared(options)
                                                               : open_or_make_file(options);
  if (result.size.empty()) result.size = size_text(result.filter->parameters());
  return result;
}

}  // namespace bloomery::cli
