// bloomery build -o FILTER: creates a filter from keys.
//
//   $ bloomery build -o users.bloom -p 0.1% users.txt
//   bloomery: users.bloom: 1,000,000 lines, 1,000,000 keys; capacity 1,000,000 keys at 0.1%: 2.01 MiB (...)
//
// A file appears when it is complete. Without -n, the keys of input files are counted first. Standard input, which can
// be read only once, is kept as hashes in a temporary file until its distinct keys are counted. With --grow, but
// without --quotient, the hashes go to the key log, and the filter is built from the log. Filters on servers are in
// redis_add.cpp.
#include "cli/commands/build.hpp"
#include "app/numbers.hpp"
#include "app/signals.hpp"
#include "cli/commands/common.hpp"
#include "cli/commands/fpr_watch.hpp"
#include "cli/commands/grammar.hpp"
#include "cli/commands/key_changes.hpp"
#include "cli/commands/logged.hpp"
#include "cli/commands/record_clock.hpp"
#include "cli/commands/removal.hpp"
#include "cli/commands/shared_filter.hpp"
#include "cli/commands/window.hpp"
#include "cli/io/hash_spool.hpp"
#include "cli/io/key_batch.hpp"
#include "cli/io/temporary_file.hpp"

#include <bloomery/error.hpp>
#include <bloomery/fold.hpp>
#include <bloomery/rebuilding_filter.hpp>

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

namespace bloomery::cli {
namespace {

// Result of a build, for the report.
struct built {
  params parameters = {};
  filter_summary now = {};
  std::uint64_t keys = 0;                       // lines read
  std::uint64_t new_keys = 0;                   // of these lines; the size of a counting filter counts all copies
  std::string distinct = {};                    // number of distinct keys in words
  std::optional<std::uint64_t> log_bytes = {};  // of a filter that keeps a key log
  std::optional<file_info> replaced = {};       // the filter that was replaced
};

// Called when all keys have been read: remembers the filter that will be replaced. An input without keys is usually a
// mistake, such as a query that failed.
void check_replacement(const build_options& options, built& b) {
  b.replaced = replaced_filter(options.filter, "--output");
  if (!b.replaced || b.keys > 0 || options.allow_empty) return;
  throw error(errc::already_exists, {"an empty filter would replace the filter " + options.filter, "--output",
                                     "input with keys", "no key", "give --allow-empty to replace it anyway"});
}

pass_options pass(const build_options& options, const char* verb) {
  return {options.common.threads, options.common.progress && !options.common.quiet, verb};
}

// ---- in memory ------------------------------------------------------------------------------------------------------

std::unique_ptr<filter_handle> make(const build_options& options, std::uint64_t capacity) {
  params p = params_for(options.wanted, std::max<std::uint64_t>(capacity, 1), default_fpr);
  if (options.foldable) p.geometry = foldable_geometry(p, 64);
  check_room(options.filter, bytes_for(p.geometry.bits));
  warn_of_size(options.filter, p);
  any_filter filter(p);
  set_now(filter, options.wanted.window.now);
  return make_handle(std::move(filter));
}

std::unique_ptr<filter_handle> build_directly(const build_options& options, std::uint64_t capacity, built& b,
                                              fpr_watch& watch) {
  std::unique_ptr<filter_handle> filter = make(options, capacity);
  timed_insertion into(*filter, options.inputs);
  const bool whole = for_each_batch(
      *filter, options.inputs, pass(options, "build"), [](key_batch&) {},
      [&](key_batch& batch) {
        const change_result done = into.insert(batch);
        b.keys += done.keys;
        b.new_keys += done.changed;
        watch.after_batch(*filter);
        return true;
      });
  if (!whole) throw interrupted();
  return filter;
}

std::unique_ptr<filter_handle> build_by_way_of_hashes(const build_options& options, built& b) {
  hash_spool spool;
  making_options hashing = options.wanted;
  hashing.bits.reset();
  hashing.probes.reset();
  b.keys = for_each_hash(params_for(hashing, 1, default_fpr), options.inputs, pass(options, "read"),
                         [&](std::span<const key_hash> hashes) { spool.append(hashes); });
  const bool counts_copies = capabilities_of({.layout = layout_for(options.wanted)}).counts_copies;
  std::unique_ptr<filter_handle> filter = make(options, counts_copies ? b.keys : spool.count_distinct());
  spool.each([&](std::span<const key_hash> hashes) { b.new_keys += filter->insert(hashes).changed; });
  return filter;
}

// Schemes hash the keys themselves, so the text is kept.
std::unique_ptr<filter_handle> build_by_way_of_text(build_options options, built& b, fpr_watch& watch) {
  const temporary_file text = spool_text(options.inputs);
  options.inputs.files = {text.path()};
  return build_directly(options, count_lines(options.inputs, options.common.threads), b, watch);
}

std::unique_ptr<filter_handle> build_from(const build_options& options, built& b, fpr_watch& watch) {
  if (wants_window(options.wanted)) return build_directly(options, window_capacity_said(options.wanted), b, watch);
  if (options.wanted.capacity) return build_directly(options, *options.wanted.capacity, b, watch);
  if (can_reread(options.inputs))
    return build_directly(options, count_lines(options.inputs, options.common.threads), b, watch);
  if (options.wanted.scheme.empty()) return build_by_way_of_hashes(options, b);
  return build_by_way_of_text(options, b, watch);
}

built build_in_memory(const build_options& options, fpr_watch& watch) {
  built b;
  std::unique_ptr<filter_handle> filter;
  try {
    filter = build_from(options, b, watch);
  } catch (const partial_error& e) {
    throw in_filter(e, options.filter);
  }
  check_replacement(options, b);
  filter->settle();
  b.parameters = filter->parameters();
  b.now = filter->summary();
  point_of_no_return();
  filter->local()->save(options.filter, create_options{.metadata = options.note, .no_lock = no_lock()});
  watch.judge(*filter, b.now);
  b.distinct =
      filter->capabilities().counts_copies ? text_of_new_keys(b.new_keys, b.now) : distinct_text(*filter, b.now);
  return b;
}

// ---- with a key log -------------------------------------------------------------------------------------------------

void check_two_files(const build_options& options) {
  std::error_code none;
  if (std::filesystem::exists(options.filter, none) && !std::filesystem::is_regular_file(options.filter, none)) {
    throw error(errc::not_permitted, {"a filter with a key log consists of two files", options.filter, "a file name",
                                      "a device, pipe or directory", "choose another name"});
  }
  key_log::check_replaceable(rebuilding_filter::log_path(options.filter));
}

built build_with_log(const build_options& options, fpr_watch& watch) {
  check_growing(options.wanted);
  check_two_files(options);
  params p = growing_params(options.wanted, default_fpr);
  p.capacity = options.wanted.capacity.value_or(0);
  built b;
  rebuilding_filter filter = rebuilding_filter::build(options.filter, p,
                                                      [&](const std::function<void(key_span)>& record) {
                                                        b.keys = for_each_hash(p.without_log(), options.inputs,
                                                                               pass(options, "build"), record);
                                                        check_replacement(options, b);
                                                      },
                                                      {.metadata = options.note, .no_lock = no_lock()});
  b.parameters = filter.parameters();
  b.new_keys = filter.insert_count();
  b.now.fpr = filter.expected_fpr();
  b.distinct = distinct_text(b.parameters, b.new_keys, false);
  watch.judge(b.parameters, *b.now.fpr, of_keys(b.distinct));
  b.log_bytes = filter.log().bytes();
  filter.close();
  return b;
}

// ---- options and report ---------------------------------------------------------------------------------------------

void check_file_options(const build_options& options) {
  const auto refuse = [](const char* what, const std::string& found, const char* hint) {
    throw error(errc::invalid_argument, {what, "--foldable", "", found, hint});
  };
  if (options.wanted.scheme == chain_scheme) {
    throw error(errc::invalid_argument,
                {"a Guava chain is stored on Redis, and this is a file", "--output", "redis://HOST/NAME",
                 "'" + options.filter + "'", "use --scheme guava, or give an address"});
  }
  if (options.foldable) {
    constexpr const char* leave_out = "leave out one of the two options";
    if (options.wanted.bits) {
      refuse("a given size is not rounded up", "--bits",
             "give --bits a multiple of 64 blocks, or leave out one of the two options");
    }
    if (const char* const option = options.wanted.removal_option())
      refuse("a filter with removal cannot be folded", option, leave_out);
    if (options.wanted.growing)
      refuse("a filter with a key log is not folded, because 'bloomery rebuild' changes its size", "--grow", leave_out);
    refuse_with_window(options.wanted, "--foldable");
  }
  check_target_fpr(options.wanted);
  check_not_an_input(options.filter, "--output", options.inputs);
  check_not_the_key(options.filter, "--output", options.wanted.secret);
  replaced_filter(options.filter, "--output");  // refuses a file that is not a filter before the keys are read
}

std::string replaced_text(const file_info& old) {
  const params& p = old.parameters;
  const std::string keys = !old.clean               ? "an unknown number of keys"
                           : old.counts.is_estimate ? "about " + counted(old.counts.inserted, "key")
                                                    : counted(old.counts.inserted, "key");
  return fmt::format("replaced a filter ({}{}) with {}{}", kind_text(p), p.log_id() == 0 ? "" : ", with a log", keys,
                     p.target_fpr > 0 ? ", target FPR " + rate_text(p.target_fpr) : "");
}

nlohmann::ordered_json json_of(const file_info& old) {
  const params& p = old.parameters;
  nlohmann::ordered_json keys = nullptr;
  if (old.clean) keys = old.counts.inserted;
  return {{"layout", p.layout},
          {"scheme", p.scheme},
          {"keys", keys},
          {"capacity", p.capacity},
          {"target_rate", p.target_fpr}};
}

void report(const build_options& options, const built& b, const fpr_judgement& judgement) {
  const params& p = b.parameters;
  if (options.common.json) {
    nlohmann::ordered_json result = {{"filter", options.filter},
                                     {"keys", b.keys},
                                     {"new", b.new_keys},
                                     {"capacity", p.capacity},
                                     {"bytes", bytes_for(p.geometry.bits)},
                                     {"target_rate", p.target_fpr},
                                     {"rate", *b.now.fpr},
                                     {"layout", p.layout},
                                     {"scheme", p.scheme},
                                     {"bits", p.geometry.bits},
                                     {"probes", p.geometry.probes}};
    add_verdict(result, judgement);
    if (b.log_bytes) result["log_bytes"] = *b.log_bytes;
    if (b.now.window) result["window"] = window_json(*b.now.window);
    if (b.replaced) result["replaced"] = json_of(*b.replaced);
    print_result(result);
  } else if (!options.common.quiet) {
    const std::string room =
        b.log_bytes ? fmt::format("{}; key log {}", size_text(p), bytes_text(*b.log_bytes)) : size_text(p);
    say(fmt::format("{}: {}, {}; {}", options.filter, counted(b.keys, "line"), of_keys(b.distinct), room));
    if (b.replaced) say(fmt::format("{}: {}", options.filter, replaced_text(*b.replaced)));
  }
}

// Before anything is read.
void check_build_times(const build_options& options) {
  check_times(options.inputs, options.filter, options.wanted.window.now);
  const auto& window = options.wanted.window.length;
  if (!options.inputs.time.is_set() || (window && window->by_time())) return;
  throw error(errc::invalid_argument, {"times need a window of time", "--time-field", "", "", "add --window 24h"});
}

exit_status build(const build_options& options) {
  check_build_times(options);
  if (is_shared(options.filter, options.server, options.sharing)) return build_shared(options);
  check_file_options(options);
  check_locks(options.filter);
  fpr_watch watch(options.filter);
  const bool keeps_log = options.wanted.growing && !options.wanted.quotient;
  const built b = keeps_log ? build_with_log(options, watch) : build_in_memory(options, watch);
  report(options, b, watch.judgement());
  return watch.end();
}

}  // namespace

void add_build(command_line& line) {
  command& c = line.root.subcommand("build", "build a filter from keys");
  auto& o = line.options_of(c, build);
  c.option("-o,--output", o.filter, "FILE", "file (an existing one is replaced) or address (keys are added)")
      .required()
      .file();
  add_size(c, o.wanted, true);
  add_kind(c, o.wanted);
  c.option("--scheme", o.wanted.scheme, "NAME", "as another system: see 'info --build'; on Redis: guava-chain")
      .suggest(scheme_names() + ", guava-chain")
      .not_empty()
      .group(of_size);
  c.flag(
       "--u64", [&] { o.wanted.keys = key_kind::u64le; }, "keys are integers from 0 to 2^64-1, in decimal")
      .group(of_input);
  c.flag("--counting", o.wanted.counting, "use counters so that keys can be removed; takes 4 times the memory")
      .group(of_size);
  c.flag("--quotient", o.wanted.quotient, "use fingerprints so that keys can be removed; limits their number")
      .group(of_size);
  c.flag("--grow", o.wanted.growing, "let the filter grow: with --quotient up to -n, otherwise with a log")
      .group(of_size);
  add_window(c, o.wanted.window);
  add_times(c, o.inputs);
  c.flag("--foldable", o.foldable, "round up the size so that 'fold' can halve it at least six times").group(of_size);
  c.flag("--allow-empty", o.allow_empty, "replace an existing filter even if the input has no keys");
  add_secret(c, o.wanted.secret);
  add_no_lock(c);
  c.option("--note", o.note, "TEXT", "a comment stored in the file");
  add_inputs(line, c, o.inputs);
  add_common(c, o.common, "print only errors and warnings");
  add_sharing(c, o.sharing);
  add_waiting(c, o.server);
  add_server(c, o.server);
  c.example("bloomery build -o users.bloom -p 0.1% users.txt");
  c.example("bloomery build -o orders.bloom --csv -f customer,order orders.csv");
  c.example("bloomery build -o redis://cache/users -n 10M users.txt");
  c.footer(
      "Without -n, the lines are counted first. -p defaults to 1% unless -m is given.\n"
      "Exit status: 0 if the filter was built, 2 on error, 3 if the filter was built but exceeds its target FPR "
      "because it has too many keys for its capacity.\n");
  c.footer(addresses);
}

}  // namespace bloomery::cli
