// bloomery dedup: prints the first occurrence of each line, in order.
//
//   $ bloomery dedup urls.txt > distinct.txt                 exact
//   $ tail -f log | bloomery dedup                           by 70 bits of each line's hash
//   $ bloomery dedup -p 1e-4 urls.txt > distinct.txt         in a filter, 24 bits per line
//   $ bloomery dedup --state redis://cache/seen -n 100M urls.txt > mine.txt
//
// With --state a filter in a file or on servers remembers lines between runs. Lines are stored in a file only after
// they were printed: a killed run repeats lines but loses none. Lines are stored on servers before they are printed: if
// two machines have the same line, one of them prints it. seen_lines.hpp has the details.
#include "cli/commands/dedup.hpp"

#include "app/numbers.hpp"
#include "cli/commands/fpr_watch.hpp"
#include "cli/commands/grammar.hpp"
#include "cli/commands/key_changes.hpp"
#include "cli/commands/line_output.hpp"
#include "cli/commands/open_handle.hpp"
#include "cli/commands/record_clock.hpp"
#include "cli/commands/seen_lines.hpp"
#include "cli/commands/window.hpp"
#include "cli/io/csv_header_printer.hpp"
#include "cli/text/error_text.hpp"

#include <bloomery/error.hpp>
#include <bloomery/filter_facts.hpp>
#include <bloomery/memory.hpp>
#include <bloomery/rebuilding_filter.hpp>
#include <bloomery/redis/address.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <utility>

namespace bloomery::cli {
namespace {

// Completes an unfinished last line of an output that is appended to (>>), which a killed run left. Otherwise the next
// line would be joined to it.
void end_torn_line(output& out, char line_end) {
  struct stat status {};
  if (!out.regular_file() || ::fstat(out.fd(), &status) != 0 || status.st_size == 0) return;
  if ((::fcntl(out.fd(), F_GETFL) & O_APPEND) == 0 && ::lseek(out.fd(), 0, SEEK_CUR) != status.st_size) return;
  const int copy = ::open(("/proc/self/fd/" + std::to_string(out.fd())).c_str(), O_RDONLY | O_CLOEXEC);
  if (copy < 0) return;
  char last = line_end;
  const bool known = ::pread(copy, &last, 1, status.st_size - 1) == 1;
  ::close(copy);
  if (!known || last == line_end) return;
  say("note: the output ended with an incomplete line, which was completed with a line end");
  out.write({&line_end, 1});
}

// ---- one pass -------------------------------------------------------------------------------------------------------

// Warns if the filter exceeds its target FPR. A filter in a file gets its lines late, so their number is used.
// @param lines  distinct lines in the filter
// @param window_broken  whether a window exceeded it; set here
void warn_of_fpr(fpr_watch& watch, filter_handle& filter, std::uint64_t lines, bool& window_broken) {
  const capabilities can = filter.capabilities();
  const params& p = filter.parameters();
  if (can.is_remote || can.grows) return;  // filters on servers are checked at the end
  if (can.has_window) {
    if (!window_broken) window_broken = warn_of_generations("", *filter.local());
    return;
  }
  if (p.capacity != 0 && lines > p.capacity) watch.look(p, expected_fpr(p, lines), counted(lines, "line"));
}

// Throws the error of a batch that failed on servers, with the numbers of its lines.
[[noreturn]] void throw_undecided(const error& e, std::uint64_t before, std::size_t lines, const char* are) {
  error_text text = e.text();
  const std::string to_do = hint_text(e);
  text.hint = fmt::format("lines {} to {} of the input are {}{}", count_text(before + 1), count_text(before + lines),
                          are, to_do.empty() ? "" : "; " + to_do);
  throw error(e.code(), text);
}

// Sets the FPR at the end and the expected false drops.
void set_rate_and_losses(dedup_result& result, seen_lines& seen, const filter_summary& now, bool in_file,
                         std::uint64_t before) {
  filter_handle& filter = seen.filter();
  const capabilities can = filter.capabilities();
  const params& p = filter.parameters();
  result.rate = now.fpr;
  if (can.is_remote) {
    // An upper bound: the filter was emptier before, and many of the lines were not new.
    result.losses_are_at_most = true;
    const double rate = now.fpr.value_or(1);
    if (rate < 1) result.expected_losses = static_cast<double>(result.lines_out) * rate / (1 - rate);
    result.stated_losses = result.expected_losses;
  } else if (can.has_window || (can.grows && in_file)) {
    result.expected_losses = seen.expected_losses();
    result.stated_losses = p.target_fpr * static_cast<double>(result.lines_out);
  } else if (can.grows) {
    const filter_facts facts = filter.info(info_depth::counts);
    result.expected_losses = facts.expected_losses.value_or(0);
    result.stated_losses = p.target_fpr * static_cast<double>(result.lines_out);
    result.layers = facts.layers.size();
    result.bytes = facts.bytes;
  } else {
    const std::uint64_t distinct = estimate_distinct(p, before + result.lines_out);
    result.expected_losses = losses_between(p, estimate_distinct(p, before), distinct);
    result.stated_losses = losses_between(p, before, std::max(p.capacity, before));
    result.rate = expected_fpr(p, distinct);
  }
}

dedup_result dedup_in_one_pass(const dedup_options& options, output& out, output* suspects) {
  dedup_filter made = open_or_make(options);
  const capabilities can = made.filter->capabilities();
  check_times(options.inputs, made.filter->parameters());
  const bool in_file = !options.state.empty() && !can.is_remote;
  const std::uint64_t before = can.is_remote ? 0 : made.filter->summary().insert_count.value_or(0);
  say_before(options, made, before);
  const char line_end = options.inputs.line_end();
  if (!options.state.empty()) end_torn_line(out, line_end);

  window_clock clock;
  if (const auto now = options.wanted.window.now) clock = [now] { return *now; };
  if (options.inputs.time.is_set()) clock = [] { return std::uint64_t{0}; };  // the records have the time
  seen_lines seen(std::move(made.filter), in_file, out, std::move(clock));
  line_sorter sorter(out, suspects, line_end);
  const pass_options pass{options.common.threads, options.common.progress && !options.common.quiet && !out.watched(),
                          "dedup"};
  dedup_result result;
  result.max_loss = options.max_loss;
  fpr_watch watch(shown_name(options.state));
  csv_header_printer header;
  result.finished = for_each_batch(
      seen.filter(), options.inputs, pass, [](key_batch&) {},
      [&](key_batch& batch) {
        const char* lines_are = "not printed, but may have been remembered";
        try {
          seen.take(batch);
          header.print(batch.text, out);
          lines_are = "remembered, but the new ones may not have been printed";
          result.lines_out += sorter.write(batch);
          if (out.watched() || batch.text.may_wait || can.is_remote) out.flush();
        } catch (const error& e) {
          if (!can.is_remote) throw;
          warn_of_repeated_lines(seen.uncertain_lines());
          throw_undecided(e, result.lines_in, batch.lines.size(), lines_are);
        }
        result.lines_in += batch.lines.size();
        seen.written();
        warn_of_fpr(watch, seen.filter(), before + result.lines_out, result.overfull);
        return true;
      });
  if (suspects != nullptr) suspects->flush();  // before the state has their keys
  seen.finish();
  options.inputs.notes->late = seen.late_records();
  result.uncertain_lines = seen.uncertain_lines();

  keys_done done;
  const std::string name = shown_name(options.state);
  const filter_summary now = summary_after(done, name, seen.filter());
  result.failure = done.failure;
  if (can.is_remote) {
    warn_if_overfull(name, seen.filter(), now);
    result.overfull = now.is_overfull;
  }
  set_rate_and_losses(result, seen, now, in_file, before);
  try {
    seen.close();
  } catch (const error& e) {
    if (!result.failure) throw;
    say("warning: " + sentence_of(e));
  }
  return result;
}

// The file of --suspects must not be the output, the state or its log, under any name or link.
void check_suspects(const dedup_options& options) {
  if (options.suspects.empty()) return;
  const auto named = [](const std::string& path) { return std::filesystem::weakly_canonical(path); };
  const auto same = [&](const std::string& path) {
    std::error_code none;
    return std::filesystem::equivalent(options.suspects, path, none) || named(options.suspects) == named(path);
  };
  const auto refuse = [](const char* what) {
    throw error(errc::invalid_argument, {what, "--suspects", "", "", "choose another name"});
  };
  if (std::error_code none; std::filesystem::is_regular_file("/proc/self/fd/1", none) && same("/proc/self/fd/1"))
    refuse("the file would overwrite the output");
  if (options.state.empty() || redis_address::is_one(options.state)) return;
  if (same(options.state) || same(rebuilding_filter::log_path(options.state)))
    refuse("the file would overwrite the state");
}

// Not an error: the capacity does not change the result.
void say_if_capacity_is_unused(const dedup_options& options, dedup_mode mode) {
  if (mode == dedup_mode::filter || !options.wanted.capacity || options.common.quiet) return;
  say(fmt::format(
      "note: --capacity is ignored, because {}; it applies to a filter, which --rate, --max-loss or --state selects",
      mode == dedup_mode::exact ? "lines are compared exactly" : "the hash of each line is remembered"));
}

dedup_result dedup_as_asked(const dedup_options& options, output& out, output* suspects) {
  say_if_capacity_is_unused(options, mode_of(options));
  switch (mode_of(options)) {
    case dedup_mode::exact: return dedup_exactly(options, out, suspects);
    case dedup_mode::hashes: say_before_hashing(options); return dedup_by_hash(options, out, suspects);
    case dedup_mode::filter: break;
  }
  return dedup_in_one_pass(options, out, suspects);
}

exit_status dedup(const dedup_options& options) {
  check_dedup_filter(options);
  check_times(options.inputs, options.state, options.wanted.window.now);
  { const reader readable(options.inputs); }  // report a missing file before anything else
  check_not_an_input(options.suspects, "--suspects", options.inputs);
  check_not_an_input(options.state, "--state", options.inputs);
  check_not_the_key(options.suspects, "--suspects", options.wanted.secret);
  check_suspects(options);
  check_output(options.inputs, options.state);
  output out(STDOUT_FILENO, "standard output");
  std::unique_ptr<output_file> suspects;
  if (!options.suspects.empty()) suspects = std::make_unique<output_file>(options.suspects);
  output* const to = suspects ? &suspects->lines() : nullptr;
  const dedup_result result = dedup_as_asked(options, out, to);
  const exit_status status = say_after(options, result);
  if (result.failure) throw error(*result.failure);
  return status;
}

}  // namespace

dedup_result dedup_exactly(const dedup_options& options, output& out, output* suspects) {
  dedup_options counted = options;
  std::optional<temporary_file> text;
  const auto room = [] {
    return fmt::format("{} ({} free)", temporary_file::folder(), bytes_text(temporary_file::room()));
  };
  if (!name_standard_input(counted.inputs)) {
    if (!options.common.quiet) say("copying the input to " + room());
    text.emplace(spool_text(counted.inputs));
    counted.inputs.files = {text->path()};
  }
  const text_size size = measure_text(counted.inputs, options.common.threads);
  counted.wanted.capacity = std::max<std::uint64_t>(size.lines, 1);
  const params filter = params_of_exact(counted);
  const std::uint64_t memory = options.memory ? *options.memory / 8 : available_memory().bytes / 2;
  if (memory_to_remember(size) <= memory) return dedup_in_memory(counted, filter, out, suspects);
  if (!options.common.quiet) {
    say(fmt::format("the input ({}) may not fit into {} of memory; comparing repeated lines in {}",
                    bytes_text(size.bytes), bytes_text(memory), room()));
  }
  return dedup_on_disk(counted, filter, std::max<std::uint64_t>(size.lines, 1), out, suspects);
}

dedup_mode mode_of(const dedup_options& options) {
  const making_options& wanted = options.wanted;
  if (options.exact) return dedup_mode::exact;
  if (!options.state.empty() || options.max_loss || wanted.rate || !wanted.layout.empty() || wanted.prefer ||
      wanted.window.length)
    return dedup_mode::filter;
  return can_reread(options.inputs) && !wanted.growing ? dedup_mode::exact : dedup_mode::hashes;
}

void add_dedup(command_line& line) {
  command& c = line.root.subcommand("dedup", "print the first occurrence of each line, in order");
  auto& o = line.options_of(c, dedup);
  add_size(c, o.wanted, false);
  parsed(c, "--max-loss", o.max_loss, parse_rate, "RATE",
         "maximum share of distinct lines dropped by mistake; replaces -p");
  c.option("--state", o.state, "FILTER", "filter that remembers lines between runs; created if missing").file();
  c.option("--suspects", o.suspects, "FILE", "write the dropped lines to this file").file();
  c.flag("--grow", o.wanted.growing, "let the filter grow instead of counting the lines before the run");
  add_window(c, o.wanted.window);
  add_times(c, o.inputs);
  c.flag("--exact", o.exact, "never drop a distinct line: compare whole lines, even from a pipe");
  parsed(c, "--memory", o.memory, parse_bits, "SIZE", "memory that --exact may use; default: half of the free memory");
  add_kind(c, o.wanted);
  add_secret(c, o.wanted.secret);
  add_no_lock(c);
  add_inputs(line, c, o.inputs);
  add_common(c, o.common, "print only errors and warnings");
  add_sharing(c, o.sharing);
  add_waiting(c, o.server);
  add_server(c, o.server);
  c.example("bloomery dedup urls.txt > distinct.txt");
  c.example("bloomery dedup --state seen.bloom today.txt > new.txt");
  c.example("bloomery dedup --window 24h -n 10M --state day.bloom < events.log");
  c.footer(
      "By default, dedup compares the lines of files exactly. For a pipe, it remembers 70 bits of the hash of each "
      "line, and prints each new line immediately. -p or --max-loss selects a Bloom filter instead, which needs less "
      "memory but drops a few distinct lines by mistake (false drops).\n"
      "With --state, the expected number of false drops is below 0.01, unless -p or --max-loss is given.\n"
      "If the state is on Redis, several machines can share it, and each line is printed by only one of them. If a run "
      "with such a state is killed, no machine prints the up to 256 KiB of lines that it was about to write. If a run "
      "with a state file is killed, no line is lost, but the next run may print some lines a second time. If a "
      "connection to Redis is lost and dedup cannot find out whether lines are new, it prints them, perhaps for the "
      "second time, and the exit status is 3.\n"
      "Exit status: 0 on success, 2 on error, 3 if more false drops are expected than --max-loss allows, if their "
      "expected number is at least one and has more than doubled during the run, or if lines may have been printed "
      "twice.");
}

}  // namespace bloomery::cli
