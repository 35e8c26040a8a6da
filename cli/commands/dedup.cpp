// bloomery dedup: the first occurrence of each line, in order, in a few bits a line.
//
//   $ bloomery dedup urls.txt > distinct.txt
// bloomery: 100,000,000 keys at 0.01 %: 281 MiB (split_block512, 23.61 bits a key); expects to drop 1,463 distinct
// lines wrongly ... bloomery: 100,000,000 lines in, 70,003,738 out, 29,996,262 dropped; expected wrongly dropped: 127
// lines (0.000181 % of ...
//
// With --state the filter is a file and remembers from run to run. It never runs ahead of the output: a line's bits are
// set only after the line is written (and on disk, if the output is a regular file), so a killed run repeats lines but
// loses none.
#include "cli/commands/dedup.hpp"

#include "app/numbers.hpp"
#include "app/signals.hpp"
#include "cli/commands/counting.hpp"
#include "cli/commands/logged_state.hpp"
#include "cli/commands/shared_filter.hpp"
#include "cli/commands/window.hpp"
#include "cli/io/hash_set.hpp"

#include <bloomery/error.hpp>
#include <bloomery/filter_facts.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <concepts>
#include <filesystem>
#include <memory>
#include <thread>

namespace bloomery::cli {
namespace {

constexpr double default_rate = 1e-4;

// Lines written but not yet in the state file: bounded in number for memory, in bytes so that a killed run repeats
// little.
constexpr std::size_t most_pending = std::size_t{512} << 10;
constexpr std::uint64_t most_pending_bytes = std::uint64_t{64} << 20;

std::uint64_t lines_to_expect(const dedup_options& options) {
  if (options.wanted.capacity) return *options.wanted.capacity;
  if (wants_window(options.wanted) && window_capacity(options.wanted) != 0) return window_capacity(options.wanted);
  if (!can_reread(options.inputs)) {
    throw error(errc::invalid_argument,
                {"a pipe cannot be counted beforehand", "-n", "the number of distinct lines to expect", "none",
                 "say -n 100M, or more to be safe, or name a file, or leave out --state for a filter that grows"});
  }
  // By time all lines may come within one generation, which has a seventh of what the window has.
  const std::uint64_t lines = std::max<std::uint64_t>(count_lines(options.inputs), 1);
  return wants_window(options.wanted) ? lines * window_parts : lines;
}

// The rate at which a filter of `wanted` is expected to lose `share` of n distinct lines, integrated over the fill.
double rate_for_losses(making_options wanted, std::uint64_t n, double share) {
  const auto lost = [&](double log_rate) {
    wanted.rate = std::exp(log_rate);
    return losses_between(params_for(wanted, n, default_rate), 0, n) / static_cast<double>(n);
  };
  // Losses lie below n * rate and above n * rate / (probes + 1), roughly: 2^-10 .. 1 of the rate brackets them.
  double low = std::log(share);
  double high = std::min(std::log(share) + 7, std::log(0.5));
  if (!(low < high)) return share;
  for (int i = 0; i < 40; ++i) {
    const double middle = (low + high) / 2;
    (lost(middle) <= share ? low : high) = middle;
  }
  return std::exp(low);
}

params params_of(const dedup_options& options, std::uint64_t n) {
  if (!options.max_loss) return params_for(options.wanted, n, default_rate);
  if (options.wanted.rate) {
    throw error(errc::invalid_argument, {"two promises", "--max-loss", "", "", "give -p or --max-loss"});
  }
  making_options wanted = options.wanted;
  if (wanted.layout.empty()) {
    // The rate depends on the layout and the layout on the rate. So twice: a layout by a guess at the rate, the rate of
    // that layout, and the layout for that rate.
    const auto layout_at = [&](double rate) {
      making_options guess = options.wanted;
      guess.rate = rate;
      return params_for(guess, n, default_rate).layout;
    };
    wanted.layout = layout_at(*options.max_loss);
    wanted.layout = layout_at(rate_for_losses(wanted, n, *options.max_loss));
  }
  return params_for(wanted, n, rate_for_losses(wanted, n, *options.max_loss));
}

// One pass in memory: a line goes out if its key is certainly new.
class memory_dedup {
 public:
  explicit memory_dedup(const params& p) : filter_(p) {}

  any_filter& filter() { return filter_; }
  std::uint64_t lines_held() const { return filter_.size(); }

  template <class Keep, class Drop>
  void take(key_batch& batch, Keep keep, Drop drop) {
    insert(filter_, batch);
    for (std::size_t i = 0; i < batch.lines.size(); ++i) {
      if (batch.is_new[i] != 0)
        keep(batch.lines[i]);
      else
        drop(batch.lines[i]);
    }
  }

  void commit(output&) {}
  void finish(output& out) { out.flush(); }

 private:
  any_filter filter_;
};

// The same against a file. New lines are remembered exactly until they are written, then their bits are set.
template <class Filter>  // any_filter or logged_state
class state_dedup {
  static constexpr bool grows = std::same_as<Filter, logged_state>;

 public:
  explicit state_dedup(Filter filter) : filter_(std::move(filter)), seen_(most_pending) {}

  any_filter& filter() {
    if constexpr (grows)
      return filter_.hasher();
    else
      return filter_;
  }
  Filter& state() { return filter_; }
  std::uint64_t lines_held() const { return grows ? 0 : filter_.size() + pending_.size(); }

  template <class Keep, class Drop>
  void take(key_batch& batch, Keep keep, Drop drop) {
    batch.maybe.resize((batch.keys.size() + 63) / 64);
    filter_.may_contain_hashes(batch.hashes, batch.maybe);
    for (std::size_t i = 0; i < batch.lines.size(); ++i) {
      const key_hash hash = batch.hashes[i];
      if (batch.may_contain(i) || !seen_.insert(hash)) {
        drop(batch.lines[i]);
        continue;
      }
      keep(batch.lines[i]);
      pending_.push_back(hash);
      pending_bytes_ += batch.lines[i].size() + 1;
    }
  }

  // Half the room is left for the next batch: a chunk of input has not so many distinct lines.
  void commit(output& out) {
    if (pending_.size() >= most_pending / 2 || pending_bytes_ >= most_pending_bytes) write_down(out);
  }

  void finish(output& out) {
    write_down(out);
    filter_.close();
  }

 private:
  void write_down(output& out) {
    out.sync();
    filter_.insert_hashes(pending_);
    pending_.clear();
    pending_bytes_ = 0;
    seen_.clear();
  }

  Filter filter_;
  hash_set seen_;
  std::vector<key_hash> pending_;
  std::uint64_t pending_bytes_ = 0;
};

struct totals {
  std::uint64_t in = 0;
  std::uint64_t out = 0;
};

template <class Dedup>
bool run(const dedup_options& options, Dedup& dedup, output& out, output* suspects, totals& lines) {
  const std::uint64_t capacity = dedup.filter().capacity();
  const char line_end = options.inputs.line_end();
  bool warned = capacity == 0;
  line_writer kept(out, line_end);
  const pass_options pass{options.common.threads, options.common.progress && !options.common.quiet && !out.watched(),
                          "dedup"};
  const bool finished = for_each_batch(
      dedup.filter(), options.inputs, pass, [](key_batch&) {},
      [&](key_batch& batch) {
        dedup.take(
            batch,
            [&](std::string_view line) {
              kept.add(line);
              ++lines.out;
            },
            [&](std::string_view line) {
              if (suspects == nullptr) return;
              suspects->write(line);
              suspects->write({&line_end, 1});
            });
        kept.finish(batch.text.text().data() + batch.text.size);
        lines.in += batch.lines.size();
        if (out.watched() || batch.text.may_wait) out.flush();
        dedup.commit(out);
        if (!warned && dedup.lines_held() > capacity) {
          warned = true;
          say(fmt::format(
              "warning: more distinct lines than the {} the filter was made for; error now {}; give a larger -n",
              count_text(capacity), rate_text(dedup.filter().expected_fpr(dedup.lines_held()))));
        }
        return true;
      });
  dedup.finish(out);
  if (suspects != nullptr) suspects->flush();
  return finished;
}

}  // namespace

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

bool asks_for_another(const dedup_options& options, const params& p) {
  const making_options& w = options.wanted;
  const auto prefers_another = [&] {
    if (!w.prefer || p.capacity == 0 || !(p.target_fpr > 0 && p.target_fpr < 1)) return false;
    return complete({.capacity = p.capacity, .target_fpr = p.target_fpr}, *w.prefer).layout != p.layout;
  };
  return (w.capacity && *w.capacity != p.capacity) || (w.rate && *w.rate != p.target_fpr) || options.max_loss ||
         (!w.layout.empty() && w.layout != p.layout) || (!w.hash.empty() && w.hash != p.hash) ||
         (w.seed != 0 && w.seed != p.seed) || prefers_another() || asks_for_another_window(w, p);
}

namespace {

// Makes the state file, unless another process was quicker: then that one is gone on with.
any_filter make_or_open_state(const dedup_options& options) {
  if (is_counting(options.state)) {
    throw error(errc::incompatible, {"a counting filter is no state for dedup, which removes nothing", options.state,
                                     "a filter of bits", "a counting filter", "choose another name"});
  }
  for (std::error_code unknown; !std::filesystem::exists(options.state, unknown) && !unknown;) {
    try {
      const params p = params_of(options, lines_to_expect(options));
      return any_filter::create(options.state, p, "", {.reserve = true, .replace = false});
    } catch (const error& e) {
      // A link to nowhere is there and yet does not exist: trying again would go on for ever.
      if (e.code() != errc::already_exists || std::filesystem::is_symlink(options.state)) throw;
    }
  }
  return open_filter(options.state, options.wanted.secret, access::read_write, file_check::payload, wait_for_writer);
}

any_filter open_state(const dedup_options& options) {
  any_filter filter = make_or_open_state(options);
  if (filter.opened_from() == nullptr) return filter;
  if (!filter.window()) refuse_state_without_window(options.wanted, options.state);
  if (filter.window()) refuse_another_window(options.wanted, filter.parameters(), options.state);
  if (!options.common.quiet) say_if_dirty(options.state, *filter.opened_from());
  if (asks_for_another(options, filter.parameters()) && !options.common.quiet) {
    say(fmt::format("{}: note: it stays as it was made, for {}; remove it to start another", options.state,
                    size_text(filter.parameters())));
  }
  if (!filter.uses_hashes()) {
    throw error(errc::incompatible, {"dedup keeps its state in a filter with a layout", options.state, "a layout",
                                     kind_text(filter.parameters()), "choose another file, or remove this one"});
  }
  return filter;
}

std::string losses_text(double lines) {
  return lines < 100 ? fmt::format("{:.3g}", lines) : count_text(static_cast<std::uint64_t>(std::llround(lines)));
}

void say_before(const dedup_options& options, const params& p, std::uint64_t already, double expected) {
  if (options.common.quiet || options.common.json) return;
  const std::string so_far = already == 0 ? "" : fmt::format(", {} of them taken", count_text(already));
  say(fmt::format("{}{}; {}", size_text(p), so_far,
                  options.exact ? "suspects are looked at again, nothing is lost"
                                : fmt::format("expects to drop {} distinct lines wrongly while it fills up",
                                              losses_text(expected))));
  if (already < p.capacity || already == 0) return;
  say(fmt::format(
      "warning: it is full, error now {}: new lines will be dropped wrongly at this rate and more; start another, "
      "with a larger -n",
      rate_text(expected_fpr(p, estimate_distinct(p, already)))));
}

void say_after(const dedup_options& options, const dedup_result& r) {
  const std::uint64_t dropped = r.lines_in - r.lines_out;
  // Past half, hardly any line is certainly new, and the few that are tell nothing of the others.
  const bool known = options.exact || r.rate <= 0.5;
  const double losses = std::min(r.expected_losses, static_cast<double>(dropped));
  if (options.common.json) {
    const nlohmann::ordered_json expected = known ? nlohmann::ordered_json(losses) : nlohmann::ordered_json(nullptr);
    nlohmann::ordered_json report = {{"lines_in", r.lines_in}, {"lines_out", r.lines_out},
                                     {"dropped", dropped},     {"expected_wrongly_dropped", expected},
                                     {"rate", r.rate},         {"rescued", r.rescued},
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
  } else {
    lost = fmt::format("how many wrongly is unknown: the filter is far too small, error now {}; give a larger -n",
                       rate_text(r.rate));
  }
  if (r.layers > 0) lost += fmt::format("; {} in {}", bytes_text(r.bytes), counted(r.layers, "layer"));
  say(fmt::format("{}{} in, {} out, {} dropped; {}", r.finished ? "" : "interrupted: ", counted(r.lines_in, "line"),
                  count_text(r.lines_out), count_text(dropped), lost));
}

// Within a window, in memory; with a state file there, too.
dedup_result dedup_in_window(const dedup_options& options, any_filter filter, std::optional<any_filter> file,
                             output& out, output* suspects) {
  const params p = filter.parameters();
  set_now(filter, options.wanted.window.now);
  if (!options.common.quiet && !options.common.json) {
    say(fmt::format("{}; once a window is full, up to {} of the new lines are dropped wrongly", size_text(p),
                    rate_text(p.target_fpr)));
  }
  window_clock clock;
  if (const auto now = options.wanted.window.now) clock = [now] { return *now; };
  window_dedup dedup(std::move(filter), std::move(file), out, std::move(clock));
  if (!options.state.empty()) end_torn_line(out, options.inputs.line_end());
  totals lines;
  dedup_result result;
  result.finished = run(options, dedup, out, suspects, lines);
  result.lines_in = lines.in;
  result.lines_out = lines.out;
  result.expected_losses = dedup.losses();
  result.rate = dedup.rate();
  return result;
}

dedup_result dedup_in_memory(const dedup_options& options, output& out, output* suspects) {
  const std::uint64_t n = lines_to_expect(options);
  const params p = params_of(options, n);
  if (wants_window(options.wanted)) return dedup_in_window(options, any_filter(p), std::nullopt, out, suspects);
  say_before(options, p, 0, losses_between(p, 0, p.capacity));
  memory_dedup dedup(p);
  totals lines;
  dedup_result result;
  result.finished = run(options, dedup, out, suspects, lines);
  result.lines_in = lines.in;
  result.lines_out = lines.out;
  const std::uint64_t distinct = estimate_distinct(p, lines.out);
  result.expected_losses = losses_between(p, 0, distinct);
  result.rate = expected_fpr(p, distinct);
  return result;
}

// Makes the state and its log, unless another process was quicker.
rebuilding_filter make_or_open_growing(const dedup_options& options) {
  for (std::error_code unknown; !std::filesystem::exists(options.state, unknown) && !unknown;) {
    making_options wanted = options.wanted;
    if (options.max_loss && wanted.rate) params_of(options, 1);  // says that these are two promises
    if (options.max_loss) wanted.rate = options.max_loss;        // no line is lost with a higher rate than the promise
    try {
      return rebuilding_filter::create(options.state, growing_params(wanted, default_rate), "", false);
    } catch (const error& e) {
      const bool others = e.code() == errc::already_exists || e.code() == errc::locked;
      if (others && std::filesystem::exists(options.state, unknown)) break;
      if (e.code() != errc::locked) throw;
      wait_for_writer(options.state);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  return open_logged(options.state, options.wanted.secret, options.common.quiet);
}

dedup_result dedup_with_log(const dedup_options& options, output& out, output* suspects) {
  check_growing(options.wanted);
  refuse_state_without_window(options.wanted, options.state);
  state_dedup<logged_state> dedup(logged_state(make_or_open_growing(options)));
  const params& p = dedup.state().filter().parameters();
  const std::uint64_t before = dedup.state().size();
  dedup_options asked = options;
  asked.wanted.capacity.reset();  // it grows
  if (before > 0 && asks_for_another(asked, p) && !options.common.quiet) {
    say(fmt::format("{}: note: it stays as it was made, with {}; bloomery rebuild makes it another", options.state,
                    rate_text(p.target_fpr)));
  }
  if (!options.common.quiet && !options.common.json) {
    say(fmt::format("{}: {} so far; it grows, and drops at most {} of the distinct lines wrongly", options.state,
                    counted(before, "line"), rate_text(p.target_fpr)));
  }
  end_torn_line(out, options.inputs.line_end());
  totals lines;
  dedup_result result;
  result.finished = run(options, dedup, out, suspects, lines);
  result.lines_in = lines.in;
  result.lines_out = lines.out;
  result.expected_losses = dedup.state().expected_losses();
  result.rate = dedup.state().rate();
  return result;
}

dedup_result dedup_with_state(const dedup_options& options, output& out, output* suspects) {
  if (options.wanted.growing || keeps_log(options.state)) return dedup_with_log(options, out, suspects);
  any_filter state = open_state(options);
  if (state.window()) {
    any_filter in_memory = any_filter::load(options.state, secret_of(options.wanted.secret));
    return dedup_in_window(options, std::move(in_memory), std::move(state), out, suspects);
  }
  state_dedup<any_filter> dedup(std::move(state));
  const params p = dedup.filter().parameters();
  const std::uint64_t before = dedup.filter().size();
  say_before(options, p, before, losses_between(p, before, std::max(p.capacity, before)));
  end_torn_line(out, options.inputs.line_end());
  totals lines;
  dedup_result result;
  result.finished = run(options, dedup, out, suspects, lines);
  result.lines_in = lines.in;
  result.lines_out = lines.out;
  const std::uint64_t distinct = estimate_distinct(p, before + lines.out);
  result.expected_losses = losses_between(p, estimate_distinct(p, before), distinct);
  result.rate = expected_fpr(p, distinct);
  return result;
}

dedup_result dedup_with_second_look(const dedup_options& options, output& out, output* suspects) {
  if (!options.state.empty()) {
    throw error(errc::invalid_argument,
                {"lines can be compared only with lines, and a state file has none of earlier runs", "--exact", "", "",
                 "leave out --state or --exact"});
  }
  input_options inputs = options.inputs;
  std::optional<temporary_file> text;
  const std::string room =
      fmt::format("in {}, where {} are free", temporary_file::folder(), bytes_text(temporary_file::room()));
  if (!name_standard_input(inputs)) {
    if (!options.common.quiet) say("--exact reads its input three times: a copy of the pipe is kept " + room);
    text.emplace(spool_text(inputs));
    inputs.files = {text->path()};
  }
  const text_size size = measure_text(inputs);
  if (!options.common.quiet) {
    say(fmt::format("--exact may need {} of disk, if most lines are repeated, {}",
                    bytes_text(size.bytes + size.lines * exact_bytes_a_line), room));
  }
  const std::uint64_t lines = std::max<std::uint64_t>(size.lines, 1);
  const params p = params_of(options, options.wanted.capacity.value_or(lines));
  say_before(options, p, 0, 0);
  return dedup_exactly(options, p, inputs, lines, out, suspects);
}

}  // namespace

exit_status dedup(const dedup_options& options) {
  if (options.exact) refuse_with_window(options.wanted, "--exact");
  if (options.max_loss) refuse_with_window(options.wanted, "--max-loss");
  const bool shared = is_shared(options.state, options.server, options.sharing);
  if (shared && options.exact) {
    throw error(errc::invalid_argument, {"lines can be compared only with lines, and a shared filter has none",
                                         "--exact", "", "", "leave out --state or --exact"});
  }
  making_options wanted = options.wanted;
  // Whether a state that is there goes by time it says itself.
  if (std::error_code none; !options.state.empty() && std::filesystem::exists(options.state, none))
    wanted.window.now.reset();
  if (shared)
    check_shared_promise(wanted, options.sharing);
  else
    check_promise(wanted);
  { const reader readable(options.inputs); }  // a file that is missing is said to be missing, before all else
  check_not_an_input(options.suspects, "--suspects", options.inputs);
  check_not_an_input(options.state, "--state", options.inputs);
  check_not_the_key(options.suspects, "--suspects", options.wanted.secret);
  const auto named = [](const std::string& path) { return std::filesystem::weakly_canonical(path); };
  if (!options.suspects.empty() && !options.state.empty() && named(options.suspects) == named(options.state)) {
    throw error(errc::invalid_argument,
                {"the state would be overwritten", "--suspects", "", "", "choose another name"});
  }
  check_output(options.inputs, options.state);
  output out(STDOUT_FILENO, "standard output");
  std::unique_ptr<output_file> suspects;
  if (!options.suspects.empty()) suspects = std::make_unique<output_file>(options.suspects);
  output* const to = suspects ? &suspects->lines() : nullptr;
  const dedup_result result = shared                  ? dedup_in_shared(options, out, to)
                              : dedup_grows(options)  ? dedup_growing(options, out, to)
                              : options.exact         ? dedup_with_second_look(options, out, to)
                              : options.state.empty() ? dedup_in_memory(options, out, to)
                                                      : dedup_with_state(options, out, to);
  say_after(options, result);
  return exit_status::found;
}

}  // namespace bloomery::cli
