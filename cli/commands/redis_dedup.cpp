// bloomery dedup with a state that many machines share: each line goes out at one of them only.
//
//   $ bloomery dedup --state redis://cache/seen -n 100M urls.txt > mine.txt
//
// Lines of a batch are remembered first, all at once, and those that were new go out then: so of two machines that have
// the same line one prints it. A file's state is the other way round, for nobody else looks at it.
#include "cli/commands/shared_filter.hpp"

#include "app/numbers.hpp"
#include "cli/commands/window.hpp"
#include "cli/text/error_text.hpp"

#include <bloomery/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

namespace bloomery::cli {
namespace {

constexpr double default_rate = 1e-4;

std::uint64_t capacity_of(const dedup_options& options) {
  if (options.wanted.capacity) return *options.wanted.capacity;
  if (wants_window(options.wanted)) return window_capacity_said(options.wanted);
  if (options.sharing.most_keys) return std::min(growing_from, *options.sharing.most_keys);
  if (options.wanted.growing) return growing_from;
  throw error(errc::invalid_argument,
              {"nobody knows how many lines all machines have", "-n", "the number of distinct lines to expect", "none",
               "say -n 100M, or more to be safe, or --grow"});
}

redis_filter make_or_open(const redis_address& address, const dedup_options& options) {
  const bool quiet = options.common.quiet;
  if (auto there = find_shared(address, options.server, options.wanted.secret, quiet)) {
    const redis_params& p = there->parameters();
    if (p.filter.window_milliseconds == 0) refuse_state_without_window(options.wanted, address.text());
    refuse_another_sharing(address, p, options.wanted.growing, options.sharing, options.server);
    if (asks_for_another(options, p.filter) && !quiet) {
      say(fmt::format("{}: note: it stays as it was made, for {}", address.text(), shared_size_text(p)));
    }
    return std::move(*there);
  }
  making_options wanted = options.wanted;
  if (options.max_loss) {
    if (wanted.rate)
      throw error(errc::invalid_argument, {"two promises", "--max-loss", "", "", "give -p or --max-loss"});
    wanted.rate = options.max_loss;  // no line is lost with a higher rate than the promise
  }
  return redis_filter::create(address, shared_params(wanted, options.sharing, capacity_of(options), default_rate),
                              options_for(address, options.server, wanted.secret, quiet));
}

// The lines of a batch whose end was not reached.
[[noreturn]] void throw_undecided(const error& e, std::uint64_t before, std::size_t lines, const char* are) {
  error_text text = e.text();
  const std::string to_do = hint_text(e);
  text.hint = fmt::format("lines {} to {} of the input are {}{}", count_text(before + 1), count_text(before + lines),
                          are, to_do.empty() ? "" : "; " + to_do);
  throw error(e.code(), text);
}

}  // namespace

dedup_result dedup_in_shared(const dedup_options& options, output& out, output* suspects) {
  const redis_address address = redis_address::parse(options.state);
  redis_filter state = make_or_open(address, options);
  const redis_params& p = state.parameters();
  const bool talks = !options.common.quiet && !options.common.json;
  if (talks) say(fmt::format("{}: {}; it is shared", address.text(), shared_size_text(p)));
  const char line_end = options.inputs.line_end();
  line_writer kept(out, line_end);
  const pass_options pass{1, options.common.progress && !options.common.quiet && !out.watched(), "dedup"};
  end_torn_line(out, line_end);
  dedup_result result;
  result.finished = for_each_batch(p.filter.keys, options.inputs, pass, [&](key_batch& batch) {
    const char* lines_are = "not printed, and may be remembered";
    try {
      insert(state, batch);
      lines_are = "remembered, and those of them that were new may not be printed";
      for (std::size_t i = 0; i < batch.lines.size(); ++i) {
        if (batch.is_new[i] != 0) {
          kept.add(batch.lines[i]);
          ++result.lines_out;
        } else if (suspects != nullptr) {
          suspects->write(batch.lines[i]);
          suspects->write({&line_end, 1});
        }
      }
      kept.finish(batch.text.text().data() + batch.text.size);
      out.flush();  // what is remembered is printed as soon as may be
    } catch (const error& e) {
      throw_undecided(e, result.lines_in, batch.lines.size(), lines_are);
    }
    result.lines_in += batch.lines.size();
    return true;
  });
  if (suspects != nullptr) suspects->flush();
  keys_done all;
  const std::optional<redis_info> now = info_after(all, address, state);
  if (all.failure) throw error(*all.failure);
  if (now) warn_if_overfull(address, *now);
  result.rate = now ? now->rate_now : p.filter.target_fpr;
  // At most: the filter has been emptier, and much of what it had seen was not new.
  result.expected_losses =
      result.rate < 1 ? static_cast<double>(result.lines_out) * result.rate / (1 - result.rate) : 0;
  result.losses_are_at_most = true;
  return result;
}

}  // namespace bloomery::cli
