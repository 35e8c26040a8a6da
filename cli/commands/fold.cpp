// bloomery fold FILTER -o OUT: halves a filter that is too large, without its keys.
//
//   $ bloomery fold large.bloom -o small.bloom -p 1%
//
// Each halving combines neighboring blocks. The result has the same bits as a filter built with the smaller size. The
// filter is halved as long as the exact FPR of the halved bits does not exceed the target.
#include "app/numbers.hpp"
#include "app/signals.hpp"
#include "cli/commands/common.hpp"
#include "cli/commands/grammar.hpp"
#include "cli/commands/open_handle.hpp"
#include "cli/commands/shared_filter.hpp"

#include <bloomery/error.hpp>
#include <bloomery/filter_facts.hpp>
#include <bloomery/fold.hpp>
#include <bloomery/mapped_storage.hpp>
#include <bloomery/measure.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <utility>

namespace bloomery::cli {
namespace {

struct fold_options {
  std::string filter;
  std::string output;
  std::optional<double> rate;
  std::optional<std::uint64_t> times;
  file_check check = file_check::payload;
  bool quiet = false;
  bool json = false;
};

constexpr const char* scheme_sizes = "the size of a scheme is defined by its library and cannot be halved";

exit_status fold_filter(const fold_options& options) {
  refuse_shared(options.filter, "fold");
  refuse_shared(options.output, "fold");
  if (options.times && options.rate) {
    throw error(errc::invalid_argument, {"--times and --rate exclude each other", "", "", "", "give one of them"});
  }
  const file_version replaced = check_replaceable(options.output, "--output");
  check_locks(options.output);
  const std::unique_ptr<filter_handle> file =
      open_handle({.name = options.filter, .facts_only = true, .check = options.check});
  const file_info& info = *file->local()->opened_from();
  params p = info.parameters;
  refuse_unless_plain(p, options.filter, "fold", "build it again with another size");
  std::optional<heap_storage> halved;
  const auto bytes = [&] {
    return halved ? std::span<const std::uint8_t>(halved->data(), halved->size()) : file->local()->bytes();
  };
  const std::uint64_t bytes_before = bytes().size();
  const double rate = options.rate.value_or(p.target_fpr);
  if (!options.times && rate == 0) {
    throw error(errc::invalid_argument, {"the filter has no target FPR", options.filter, "--rate or --times", "neither",
                                         "give the maximum FPR with --rate"});
  }
  if (options.times && *options.times > times_foldable(p)) {
    throw error(errc::invalid_argument,
                {"a filter of this size cannot be halved this many times", options.filter,
                 "--times of at most " + std::to_string(times_foldable(p)), std::to_string(*options.times),
                 p.scheme.empty() ? "'bloomery build --foldable' makes filters that can" : scheme_sizes});
  }

  fill_statistics now = measure_fill(p, bytes());
  unsigned times = 0;
  const char* why = now.current_fpr > rate ? "the filter exceeds it already" : "the size cannot be halved further";
  while (times < times_foldable(info.parameters)) {
    if (options.times && times == *options.times) break;
    if (stop_signal() != 0) throw interrupted();
    heap_storage half = fold(p, bytes(), 1);
    const params half_params = folded(p, 1);
    const fill_statistics then = measure_fill(half_params, {half.data(), half.size()});
    if (!options.times && then.current_fpr > rate) {
      if (now.current_fpr <= rate) why = "halving once more would exceed it";
      break;
    }
    halved = std::move(half);
    p = half_params;
    now = then;
    ++times;
  }
  // The new target FPR, and the capacity at which the smaller filter reaches it.
  if (times > 0) {
    if (options.rate) p.target_fpr = rate;
    if (p.target_fpr > 0) p.capacity = std::max<std::uint64_t>(keys_within(p, p.target_fpr), 1);
  }
  // Fewer of these keys would have been new to a smaller filter. After an unclean end the stored count is outdated.
  const bool has_count = info.clean && !file->local()->has_changed();
  const double keys = has_count ? static_cast<double>(estimate_distinct(info.parameters, info.counts.inserted))
                                : estimated_keys(p, now.ones).value;
  const std::uint64_t inserted = times == 0 && has_count ? info.counts.inserted : counted_of_estimate(p, keys);
  if (stop_signal() != 0) throw interrupted();
  point_of_no_return();
  save_file(options.output, p, bytes(), {.inserted = inserted, .is_estimate = info.counts.is_estimate || !has_count},
            create_options{.metadata = info.metadata, .expected = replaced, .no_lock = no_lock()});

  if (options.json) {
    print_result({{"filter", options.output},
                  {"times", times},
                  {"bytes_before", bytes_before},
                  {"bytes", bytes().size()},
                  {"bits", p.geometry.bits},
                  {"rate", now.current_fpr},
                  {"capacity", p.capacity},
                  {"target_rate", p.target_fpr},
                  {"times_foldable", times_foldable(p)}});
  }
  if (!options.quiet) {
    const std::string result = times == 0 ? "not halved" : "halved " + times_text(times);
    say(fmt::format("{}: {}: {}, was {}; current FPR {}{}", options.output, result, bytes_text(bytes().size()),
                    bytes_text(bytes_before), rate_text(now.current_fpr),
                    options.times ? "" : fmt::format(" (maximum {}: {})", rate_text(rate), why)));
    if (times == 0 && times_foldable(p) == 0) {
      say(fmt::format(
          "{}: note: {}", options.filter,
          p.scheme.empty() ? "'bloomery build --foldable' makes filters that can be halved" : scheme_sizes));
    }
  }
  return exit_status::found;
}

}  // namespace

void add_fold(command_line& line) {
  command& c = line.root.subcommand("fold", "halve the size of a filter; its keys are not needed");
  auto& o = line.options_of(c, fold_filter);
  c.positional("FILTER", o.filter, "file of the filter").required().file();
  c.option("-o,--output", o.output, "FILE", "new file, which may be FILTER itself").required().file();
  parsed(c, "-p,--rate", o.rate, parse_rate, "RATE", "maximum false-positive rate; default: the filter's target rate");
  parsed(c, "--times", o.times, parse_count, "N", "halve this many times, regardless of the resulting rate");
  add_no_lock(c);
  add_no_verify(c, o.check);
  c.flag("-q,--quiet", o.quiet, "print only errors and warnings").group(of_all_verbs);
  c.flag("--json", o.json, "print the result as one JSON object").group(of_all_verbs);
  c.example("bloomery fold large.bloom -o small.bloom -p 1%");
}

}  // namespace bloomery::cli
