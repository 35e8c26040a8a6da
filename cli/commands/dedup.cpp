// bloomery dedup: the first occurrence of each line, in order, in a few bits per line.
//
//   $ bloomery dedup urls.txt > distinct.txt
// bloomery: 100,000,000 keys at 0.01 %: 281 MiB (split_block512, 23.61 bits a key); expects to drop 1,463 distinct
// lines wrongly ... bloomery: 100,000,000 lines in, 70,003,738 out, 29,996,262 dropped; expected wrongly dropped: 127
// lines (0.000181 % of ...
//
//   $ bloomery dedup --state redis://cache/seen -n 100M urls.txt > mine.txt
//
// With --state a filter in a file or on servers remembers lines from run to run. A file never runs ahead of the output:
// a killed run repeats lines but loses none. Servers are asked first: of two machines that have the same line, one
// prints it. seen_lines.hpp has the rules.
#include "cli/commands/dedup.hpp"

#include "app/numbers.hpp"
#include "cli/commands/grammar.hpp"
#include "cli/commands/key_changes.hpp"
#include "cli/commands/open_handle.hpp"
#include "cli/commands/seen_lines.hpp"
#include "cli/commands/window.hpp"
#include "cli/text/error_text.hpp"

#include <bloomery/error.hpp>
#include <bloomery/filter_facts.hpp>
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

std::string losses_text(double lines) {
  return lines < 100 ? fmt::format("{:.3g}", lines) : count_text(static_cast<std::uint64_t>(std::llround(lines)));
}

// Ends the last line of a file that is appended to (>>), after a run that was killed within it: without an end the next
// line would be glued to it.
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
  say("note: the output ended within a line; the line is ended here");
  out.write({&line_end, 1});
}

// ---- one pass -------------------------------------------------------------------------------------------------------

// Writes the new lines of a batch to the output and the others to the suspects, if they are wanted.
class line_sorter {
 public:
  line_sorter(output& out, output* suspects, char line_end)
      : kept_(out, line_end), suspects_(suspects), end_(line_end) {}

  // Returns the number of new lines.
  std::uint64_t write(const key_batch& batch) {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < batch.lines.size(); ++i) {
      if (batch.is_new[i] != 0) {
        kept_.add(batch.lines[i]);
        ++count;
      } else if (suspects_ != nullptr) {
        suspects_->write(batch.lines[i]);
        suspects_->write({&end_, 1});
      }
    }
    kept_.finish(batch.text.text().data() + batch.text.size);
    return count;
  }

 private:
  line_writer kept_;
  output* suspects_;
  char end_;
};

// Whether more lines are in than the filter is for. Then it warns.
bool warn_if_full(const filter_handle& filter, std::uint64_t lines) {
  const capabilities can = filter.capabilities();
  const params& p = filter.parameters();
  if (can.is_remote || can.grows) return false;  // servers are asked at the end
  if (can.has_window) return warn_of_generations("", *filter.local());
  if (p.capacity == 0 || lines <= p.capacity) return false;
  say(fmt::format("warning: more distinct lines than the {} the filter was made for; error now {}; give a larger -n",
                  count_text(p.capacity), rate_text(expected_fpr(p, lines))));
  return true;
}

// The lines of a batch that failed on servers.
[[noreturn]] void throw_undecided(const error& e, std::uint64_t before, std::size_t lines, const char* are) {
  error_text text = e.text();
  const std::string to_do = hint_text(e);
  text.hint = fmt::format("lines {} to {} of the input are {}{}", count_text(before + 1), count_text(before + lines),
                          are, to_do.empty() ? "" : "; " + to_do);
  throw error(e.code(), text);
}

// The FPR at the end, and the distinct lines that were expected to be dropped wrongly.
void set_rate_and_losses(dedup_result& result, seen_lines& seen, const filter_summary& now, bool in_file,
                         std::uint64_t before) {
  filter_handle& filter = seen.filter();
  const capabilities can = filter.capabilities();
  const params& p = filter.parameters();
  result.rate = now.fpr;
  if (can.is_remote) {
    // At most: the filter was emptier, and much of what it had seen was not new.
    result.losses_are_at_most = true;
    const double rate = now.fpr.value_or(1);
    if (rate < 1) result.expected_losses = static_cast<double>(result.lines_out) * rate / (1 - rate);
  } else if (can.has_window || (can.grows && in_file)) {
    result.expected_losses = seen.expected_losses();
  } else if (can.grows) {
    const filter_facts facts = filter.info(info_depth::counts);
    result.expected_losses = facts.expected_losses.value_or(0);
    result.layers = facts.layers.size();
    result.bytes = facts.bytes;
  } else {
    const std::uint64_t distinct = estimate_distinct(p, before + result.lines_out);
    result.expected_losses = losses_between(p, estimate_distinct(p, before), distinct);
    result.rate = expected_fpr(p, distinct);
  }
}

dedup_result dedup_in_one_pass(const dedup_options& options, output& out, output* suspects) {
  dedup_filter made = open_or_make(options);
  const capabilities can = made.filter->capabilities();
  const bool in_file = !options.state.empty() && !can.is_remote;
  const std::uint64_t before = can.is_remote ? 0 : made.filter->summary().insert_count.value_or(0);
  say_before(options, made, before);
  const char line_end = options.inputs.line_end();
  if (!options.state.empty()) end_torn_line(out, line_end);

  window_clock clock;
  if (const auto now = options.wanted.window.now) clock = [now] { return *now; };
  seen_lines seen(std::move(made.filter), in_file, out, std::move(clock));
  line_sorter sorter(out, suspects, line_end);
  const pass_options pass{options.common.threads, options.common.progress && !options.common.quiet && !out.watched(),
                          "dedup"};
  dedup_result result;
  bool warned = false;
  result.finished = for_each_batch(
      seen.filter(), options.inputs, pass, [](key_batch&) {},
      [&](key_batch& batch) {
        const char* lines_are = "not printed, and may be remembered";
        try {
          seen.take(batch);
          lines_are = "remembered, and those of them that were new may not be printed";
          result.lines_out += sorter.write(batch);
          if (out.watched() || batch.text.may_wait || can.is_remote) out.flush();
        } catch (const error& e) {
          if (!can.is_remote) throw;
          throw_undecided(e, result.lines_in, batch.lines.size(), lines_are);
        }
        result.lines_in += batch.lines.size();
        seen.written();
        if (!warned) warned = warn_if_full(seen.filter(), before + result.lines_out);
        return true;
      });
  if (suspects != nullptr) suspects->flush();  // before the state has their keys
  seen.finish();

  keys_done done;
  const std::string name = shown_name(options.state);
  const filter_summary now = summary_after(done, name, seen.filter());
  result.failure = done.failure;
  if (can.is_remote) warn_if_overfull(name, seen.filter(), now);
  set_rate_and_losses(result, seen, now, in_file, before);
  try {
    seen.close();
  } catch (const error& e) {
    if (!result.failure) throw;
    say("warning: " + sentence_of(e));
  }
  return result;
}

void say_after(const dedup_options& options, const dedup_result& r) {
  const std::uint64_t dropped = r.lines_in - r.lines_out;
  // Above 50%, hardly any line is certainly new, and the few that are say nothing about the others.
  const bool known = options.exact || (r.rate && *r.rate <= 0.5);
  const double losses = std::min(r.expected_losses, static_cast<double>(dropped));
  if (options.common.json) {
    const nlohmann::ordered_json expected = known ? nlohmann::ordered_json(losses) : nlohmann::ordered_json(nullptr);
    const nlohmann::ordered_json rate = r.rate ? nlohmann::ordered_json(*r.rate) : nlohmann::ordered_json(nullptr);
    nlohmann::ordered_json report = {{"lines_in", r.lines_in}, {"lines_out", r.lines_out},
                                     {"dropped", dropped},     {"expected_wrongly_dropped", expected},
                                     {"rate", rate},           {"rescued", r.rescued},
                                     {"exact", options.exact}, {"complete", r.finished}};
    if (r.layers > 0) {
      report["bytes"] = r.bytes;
      report["layers"] = r.layers;
    }
    std::fputs(json_line(report).c_str(), stderr);
    return;
  }
  if (options.common.quiet) return;
  std::string lost;
  if (options.exact) {
    lost = fmt::format("none wrongly; {} of the filter kept", counted(r.rescued, "false alarm"));
  } else if (known) {
    const double distinct = static_cast<double>(r.lines_out) + losses;
    const std::string share =
        r.lines_out == 0 ? "" : fmt::format(" ({} of the distinct)", share_text(losses, distinct));
    lost = fmt::format("expected wrongly dropped: {}{} lines{}", r.losses_are_at_most ? "at most " : "",
                       losses_text(losses), share);
  } else if (r.rate) {
    lost = fmt::format("how many wrongly is unknown: the filter is far too small, error now {}; give a larger -n",
                       rate_text(*r.rate));
  } else {
    lost = "how many wrongly is unknown: the filter's bits were not counted";
  }
  if (r.layers > 0) lost += fmt::format("; {} in {}", bytes_text(r.bytes), counted(r.layers, "layer"));
  say(fmt::format("{}{} in, {} out, {} dropped; {}", r.finished ? "" : "interrupted: ", counted(r.lines_in, "line"),
                  count_text(r.lines_out), count_text(dropped), lost));
}

}  // namespace

void say_before(const dedup_options& options, const dedup_filter& made, std::uint64_t before) {
  if (options.common.quiet || options.common.json) return;
  const capabilities can = made.filter->capabilities();
  const params& p = made.filter->parameters();
  const std::string rate = rate_text(p.target_fpr);
  if (can.is_remote) return say(fmt::format("{}: {}; it is shared", shown_name(options.state), made.size));
  if (can.has_window) {
    return say(
        fmt::format("{}; once a window is full, up to {} of the new lines are dropped wrongly", made.size, rate));
  }
  if (can.grows && options.state.empty()) return say(fmt::format("grows with its input, at most {} in total", rate));
  if (can.grows) {
    return say(fmt::format("{}: {} so far; it grows, and drops at most {} of the distinct lines wrongly", options.state,
                           counted(before, "line"), rate));
  }
  const std::string losses = options.exact
                                 ? "suspects are looked at again, nothing is lost"
                                 : fmt::format("expects to drop {} distinct lines wrongly while it fills up",
                                               losses_text(losses_between(p, before, std::max(p.capacity, before))));
  const std::string so_far = before == 0 ? "" : fmt::format(", {} of them taken", count_text(before));
  say(fmt::format("{}{}; {}", made.size, so_far, losses));
  if (before < p.capacity || before == 0) return;
  say(fmt::format(
      "warning: it is full, error now {}: new lines will be dropped wrongly at this rate and more; start another, "
      "with a larger -n",
      rate_text(expected_fpr(p, estimate_distinct(p, before)))));
}

namespace {

// Suspects must not overwrite the output, the state or its log, under whatever name or link.
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
    refuse("the output would be overwritten");
  if (options.state.empty() || redis_address::is_one(options.state)) return;
  if (same(options.state) || same(rebuilding_filter::log_path(options.state))) refuse("the state would be overwritten");
}

exit_status dedup(const dedup_options& options) {
  check_dedup_filter(options);
  { const reader readable(options.inputs); }  // a missing file is reported before all else
  check_not_an_input(options.suspects, "--suspects", options.inputs);
  check_not_an_input(options.state, "--state", options.inputs);
  check_not_the_key(options.suspects, "--suspects", options.wanted.secret);
  check_suspects(options);
  check_output(options.inputs, options.state);
  output out(STDOUT_FILENO, "standard output");
  std::unique_ptr<output_file> suspects;
  if (!options.suspects.empty()) suspects = std::make_unique<output_file>(options.suspects);
  output* const to = suspects ? &suspects->lines() : nullptr;
  const dedup_result result = options.exact ? dedup_exactly(options, out, to) : dedup_in_one_pass(options, out, to);
  say_after(options, result);
  if (result.failure) throw error(*result.failure);
  return exit_status::found;
}

}  // namespace

void add_dedup(command_line& line) {
  auto& c = *line.app.add_subcommand("dedup", "print the first occurrence of each line, in order");
  auto& o = line.options_of(c, dedup);
  add_size(c, o.wanted, false);
  parsed(c, "--max-loss", o.max_loss, parse_rate,
         "instead of -p: share of the distinct lines that may be dropped wrongly");
  c.add_option("--state", o.state,
               "a filter file that remembers, or an address, of one that many machines share: made if missing, else "
               "gone on with")
      ->check(check_name);
  c.add_option("--suspects", o.suspects, "write the lines that the filter seemed to have seen to this file")
      ->check(check_name);
  c.add_flag(
      "--grow", o.wanted.growing,
      "a filter that grows, instead of counting lines first; with --state a log of all keys' hashes is beside it");
  add_window(c, o.wanted.window);
  c.add_flag("--exact", o.exact, "lose nothing: look at every suspect again, with temporary files");
  add_kind(c, o.wanted);
  add_secret(c, o.wanted.secret);
  add_no_lock(c);
  add_inputs(line, c, o.inputs);
  add_common(c, o.common, "say nothing but errors and warnings");
  add_sharing(c, o.sharing);
  add_waiting(c, o.server);
  add_server(c, o.server);
  c.footer(
      "Without -n a file's lines are counted, and for a pipe the filter grows. The rate is 1e-4 unless -p or\n"
      "--max-loss is given.\n"
      "With an address a line goes out at one of the machines only. What a killed run was just about to write, up to\n"
      "256 KiB of lines, is remembered and goes out nowhere; with a file it would go out again.\n"
      "Example: bloomery dedup --state seen.bloom today.txt > new.txt");
}

}  // namespace bloomery::cli
