// bloomery build, add and remove with a filter that many machines share.
//
//   $ bloomery build -n 1M -p 1% -o redis://cache/users users.txt
//   $ printf 'bob\n' | bloomery add redis://cache/users
//
// build makes the filter if there is none of that name, and else adds to the one there is. What is in is in at once, for
// everybody: whatever is killed can be run again.
#include "cli/commands/shared_filter.hpp"

#include "cli/commands/counting.hpp"
#include "cli/commands/window.hpp"
#include "cli/io/temporary_file.hpp"
#include "cli/text/numbers.hpp"

#include <bloomery/error.hpp>

#include "redis/filter/meta.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace bloomery::cli {
namespace {

constexpr double default_rate = 0.01;

keys_done add_all(redis_filter& filter, const input_options& inputs, const common_options& common, const char* verb) {
  return change_keys(
      filter.parameters().filter.keys, inputs, common, verb,
      [&](key_batch& batch, std::size_t first, std::size_t count) { return insert_some(filter, batch, first, count); });
}

// Keys to expect, if nobody says. A pipe is kept in `text` meanwhile.
std::uint64_t capacity_of(const build_options& options, input_options& inputs, std::optional<temporary_file>& text) {
  if (options.wanted.capacity) return *options.wanted.capacity;
  if (wants_window(options.wanted)) return window_capacity_said(options.wanted);
  if (!can_reread(inputs)) inputs.files = {text.emplace(spool_text(inputs)).path()};
  const std::uint64_t lines = std::max<std::uint64_t>(count_lines(inputs), 1);
  if (options.sharing.most_keys) return std::min(std::max(lines, growing_from), *options.sharing.most_keys);
  return options.wanted.growing ? std::max(lines, growing_from) : lines;
}

// As far as they are known.
void add_size_and_rate(nlohmann::ordered_json& result, const std::optional<redis_info>& now) {
  result["size"] = now ? nlohmann::ordered_json(now->inserted) : nlohmann::ordered_json(nullptr);
  result["rate"] = now ? number_or_null(now->rate_now) : nlohmann::ordered_json(nullptr);
}

}  // namespace

exit_status build_shared(const build_options& options) {
  if (options.wanted.scheme == chain_scheme) return build_chain(options);
  const redis_address address = redis_address::parse(options.filter);
  refuse_what_files_have(options);
  check_shared_promise(options.wanted, options.sharing);
  { const reader readable(options.inputs); }  // a file that is missing is said to be missing, before all else
  input_options inputs = options.inputs;
  std::optional<temporary_file> text;
  making_options wanted = options.wanted;
  const bool quiet = options.common.quiet;
  // Asked first: who has to count keys should not learn afterwards that there is no server.
  std::optional<redis_filter> there = find_shared(address, options.server, wanted.secret, quiet);
  const bool made = !there;
  std::uint64_t capacity = 0;
  if (there) {
    refuse_another_life(address, redis::meta_key(address.name), options.sharing, options.server);
    const params& p = there->parameters().filter;
    capacity = wanted.capacity.value_or(p.capacity);
    if (!wanted.rate) wanted.rate = p.target_rate;
    there.reset();
  } else {
    capacity = capacity_of(options, inputs, text);
  }
  redis_filter filter = redis_filter::create(address, shared_params(wanted, options.sharing, capacity, default_rate),
                                             options_for(address, options.server, wanted.secret, quiet));
  keys_done done = add_all(filter, inputs, options.common, "build");
  const redis_params& p = filter.parameters();
  const std::optional<redis_info> now = info_after(done, address, filter);
  if (now) warn_if_overfull(address, *now);
  if (options.common.json) {
    nlohmann::ordered_json result = {{"filter", address.text()},
                                     {"made", made},
                                     {"keys", done.keys},
                                     {"new", done.changed},
                                     {"capacity", p.filter.capacity},
                                     {"bytes", bytes_for(p.filter.geometry.bits)},
                                     {"target_rate", p.filter.target_rate},
                                     {"rate", now ? number_or_null(now->rate_now) : nlohmann::ordered_json(nullptr)},
                                     {"layout", p.filter.layout},
                                     {"bits", p.filter.geometry.bits},
                                     {"probes", p.filter.geometry.probes},
                                     {"shards", p.shards}};
    add_end(result, done);
    print_result(result);
  } else if (!quiet && !done.failure) {
    say(fmt::format("{}: {}{}, {} new; {} for {}", address.text(),
                    done.finished ? "" : "interrupted: ", counted(done.keys, "line"), count_text(done.changed),
                    made ? "made" : "it was there already, made", shared_size_text(p)));
  }
  if (done.failure) throw *done.failure;
  return exit_status::found;
}

exit_status add_to_shared(const add_options& options) {
  if (is_chain(options.chain)) return add_to_chain(options);
  const redis_address address = redis_address::parse(options.filter);
  const bool quiet = options.common.quiet;
  refuse_time(options.now);
  redis_filter filter = open_shared(address, options.server, options.secret, quiet);
  keys_done done = add_all(filter, options.inputs, options.common, "add");
  const std::optional<redis_info> now = info_after(done, address, filter);
  if (now) warn_if_overfull(address, *now);
  if (options.common.json) {
    nlohmann::ordered_json result = {{"filter", address.text()}, {"keys", done.keys}, {"new", done.changed}};
    add_size_and_rate(result, now);
    add_end(result, done);
    print_result(result);
  } else if (!quiet && !done.failure) {
    say(fmt::format(
        "{}: {}{} read, {} new{}", address.text(), done.finished ? "" : "interrupted: ", counted(done.keys, "key"),
        count_text(done.changed),
        now ? fmt::format(", {} {}, error now {}", count_text(now->inserted),
                          now->parameters.filter.window_milliseconds != 0 ? "held" : "in all", rate_text(now->rate_now))
            : ""));
  }
  if (done.failure) throw *done.failure;
  return exit_status::found;
}

exit_status remove_from_shared(const remove_options& options) {
  const redis_address address = redis_address::parse(options.filter);
  const bool quiet = options.common.quiet;
  redis_filter filter = open_shared(address, options.server, options.secret, quiet);
  const params& p = filter.parameters().filter;
  check_can_remove(address.text(), p);
  keys_done done = change_keys(
      p.keys, options.inputs, options.common, "remove",
      [&](key_batch& batch, std::size_t first, std::size_t count) { return remove_some(filter, batch, first, count); });
  const std::uint64_t not_found = done.keys - done.changed;
  const std::optional<redis_info> now = info_after(done, address, filter);
  if (not_found > 0) {
    say(
        fmt::format("{}: warning: {} not there; only what was added may be removed: other such keys may have gone "
                    "unnoticed, and have taken others' along",
                    address.text(), those_not_there(done.keys, not_found)));
  }
  if (options.common.json) {
    nlohmann::ordered_json result = {
        {"filter", address.text()}, {"keys", done.keys}, {"removed", done.changed}, {"not_found", not_found}};
    add_size_and_rate(result, now);
    add_end(result, done);
    print_result(result);
  } else if (!quiet && !done.failure) {
    say(fmt::format(
        "{}: {}{} removed{}", address.text(), done.finished ? "" : "interrupted: ", counted(done.changed, "key"),
        now ? fmt::format(", {} left, error now {}", count_text(now->inserted), rate_text(now->rate_now)) : ""));
  }
  if (done.failure) throw *done.failure;
  return not_found == 0 ? exit_status::found : exit_status::nothing;
}

}  // namespace bloomery::cli
